"""τ-first: explore uniformly at first, then act greedily for good."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from melee.arrays import Floats, Words
from melee.compiled import implements
from melee.distributions import greedy
from melee.errors import InputError
from melee.explorers.base import LearningExplorer, Problem
from melee.explorers.interface import distribution, learn
from melee.learners.interface import n_rows, predict_all
from melee.policy_optimizers import fit
from melee.settings import count, flag, number


class TauFirstState(NamedTuple):
    """A policy optimizer and the last exploring round."""

    polopt: Any
    exploring: int
    stop: bool


@dataclass(frozen=True, kw_only=True)
class TauFirst(LearningExplorer):
    """Uniform for the first τ fraction of the rounds, greedy afterwards.

    Parameters
    ----------
    tau
        The fraction; 0.02 is the paper's setting. It takes a known number of rounds.
    rounds
        The number of exploring rounds itself, where the total is not known; overrides `tau`.
    stop
        Whether learning stops with exploring, which is what the paper's learning curves show.
        By default the learner goes on learning from its greedy rounds.
    """

    name: ClassVar[str] = "tau-first"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    tau: float = number(0.02, 0.0, 1.0)
    rounds: int | None = count(None, 0)
    stop: bool = flag(False)

    def start(self, problem: Problem) -> TauFirstState:
        """A fresh learner, and the round at which exploring ends."""
        exploring = self.rounds
        if exploring is None:
            if problem.n_rounds is None:
                raise InputError(
                    "tau-first: tau is a fraction of the rounds, whose number is not known here; "
                    "give n_rounds, or the number of exploring rounds as tau-first:rounds=N"
                )
            exploring = math.ceil(self.tau * problem.n_rounds)
        return TauFirstState(self.new_optimizer(problem), exploring, self.stop)


@implements(distribution, TauFirstState)
def tau_first_distribution(
    state: TauFirstState, x: Floats, t: int, rng: Words, pmf: Floats
) -> None:
    """Uniform up to the last exploring round, then greedy."""
    if t <= state.exploring:
        pmf[:] = 1.0 / pmf.shape[0]
        return
    predict_all(state.polopt.learner, x, 0, pmf)
    greedy(pmf)


@implements(learn, TauFirstState)
def tau_first_learn(
    state: TauFirstState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Fit f to the round, unless learning has stopped."""
    if t <= state.exploring or not state.stop:
        n_actions = n_rows(state.polopt.learner)
        fit(state.polopt, x, 0, n_actions, action, reward, p, 1.0)
