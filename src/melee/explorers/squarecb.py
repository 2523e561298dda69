"""SquareCB: inverse gap weighting (Foster and Rakhlin, 2020)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from melee.arrays import Floats, Words
from melee.compiled import implements
from melee.distributions import largest
from melee.explorers.base import LearningExplorer, Problem
from melee.explorers.interface import distribution
from melee.learners.interface import noise, predict_all
from melee.settings import number


class SquareCbState(NamedTuple):
    """A policy optimizer and the scale γ₀ of the gaps."""

    polopt: Any
    gamma: float


@dataclass(frozen=True, kw_only=True)
class SquareCb(LearningExplorer):
    """Play a with probability 1/(K + γ_t·gap_a), the best action with what is left.

    gap_a is how far a's prediction is behind the best one, and γ_t = γ₀·√t; over a learner that
    estimates its noise, gaps are in units of it.

    Parameters
    ----------
    gamma
        γ₀; larger values explore less.
    """

    name: ClassVar[str] = "squarecb"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    gamma: float = number(10.0, 0.0)

    def start(self, problem: Problem) -> SquareCbState:
        """A fresh learner."""
        return SquareCbState(self.new_optimizer(problem), float(self.gamma))


@implements(distribution, SquareCbState)
def squarecb_distribution(state: SquareCbState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """Inverse gap weights; tied best actions share what is left."""
    n_actions = pmf.shape[0]
    predict_all(state.polopt.learner, x, 0, pmf)
    best = largest(pmf)
    gamma = state.gamma * math.sqrt(t) / noise(state.polopt.learner)
    left = 1.0
    n_best = 0
    for a in range(n_actions):
        if pmf[a] == best:
            n_best += 1
            pmf[a] = -1.0
        else:
            pmf[a] = 1.0 / (n_actions + gamma * (best - pmf[a]))
            left -= pmf[a]
    for a in range(n_actions):
        if pmf[a] < 0.0:
            pmf[a] = left / n_best
