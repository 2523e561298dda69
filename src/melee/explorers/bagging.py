"""Bagging: several learners, each on its own bootstrap of the rounds, take a vote."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats, Scratch, Words
from melee.compiled import implements
from melee.distributions import vote
from melee.explorers.base import LearningExplorer, Problem
from melee.explorers.interface import distribution, learn
from melee.learners.interface import predict_all
from melee.learners.offers import n_choices
from melee.policy_optimizers import fit
from melee.rng import poisson_1
from melee.settings import count, flag


class BaggingState(NamedTuple):
    """One policy optimizer with a block of K rows per bag."""

    polopt: Any
    scores: Scratch  # (K,)
    bags: int
    greedify: bool


@dataclass(frozen=True, kw_only=True)
class Bagging(LearningExplorer):
    """Play an action as often as the bags choose it (online bootstrap; Oza, 2001).

    Every bag counts a round Poisson(1) times; the vote of the bags is the distribution.

    Parameters
    ----------
    bags
        Number of bags; 16 is the paper's bag size.
    greedify
        Whether the first bag counts every round exactly once, which explores less.
    """

    name: ClassVar[str] = "bagging"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    bags: int = count(16, 1, 1024)
    greedify: bool = flag(False)

    @property
    def n_models(self) -> int:
        """One per bag."""
        return self.bags

    def start(self, problem: Problem) -> BaggingState:
        """A fresh learner per bag."""
        return BaggingState(
            self.new_optimizer(problem, self.bags),
            np.zeros(problem.n_actions),
            self.bags,
            self.greedify,
        )


@implements(distribution, BaggingState)
def bagging_distribution(state: BaggingState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """The share of bags that choose each action."""
    pmf[:] = 0.0
    scores = state.scores[: pmf.shape[0]]
    for bag in range(state.bags):
        predict_all(state.polopt.learner, x, bag * pmf.shape[0], scores)
        vote(scores, 1.0 / state.bags, pmf)


@implements(learn, BaggingState)
def bagging_learn(
    state: BaggingState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Fit every bag as many times as its Poisson draw says."""
    n_actions = n_choices(x, state.scores.shape[0])
    for bag in range(state.bags):
        times = poisson_1(rng)
        if bag == 0 and state.greedify:
            times = 1
        if times > 0:
            fit(state.polopt, x, bag * n_actions, n_actions, action, reward, p, float(times))
