"""Softmax (Boltzmann) exploration: better predictions are exponentially likelier."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from melee.arrays import Floats, Words
from melee.compiled import implements
from melee.distributions import largest
from melee.explorers.base import LearningExplorer, Problem
from melee.explorers.interface import distribution
from melee.learners.interface import predict_all
from melee.settings import number


class SoftmaxState(NamedTuple):
    """A policy optimizer and the temperature."""

    polopt: Any
    temperature: float


@dataclass(frozen=True, kw_only=True)
class Softmax(LearningExplorer):
    """Play a with probability proportional to exp(f_a(x)/temperature).

    Parameters
    ----------
    temperature
        In units of reward: actions whose predictions differ by much less are played alike.
    """

    name: ClassVar[str] = "softmax"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    temperature: float = number(0.1, 0.0, above=True)

    def start(self, problem: Problem) -> SoftmaxState:
        """A fresh learner."""
        return SoftmaxState(self.new_optimizer(problem), float(self.temperature))


@implements(distribution, SoftmaxState)
def softmax_distribution(state: SoftmaxState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """exp(f_a/T) over their sum, shifted by the largest so that nothing overflows."""
    predict_all(state.polopt.learner, x, 0, pmf)
    best = largest(pmf)
    total = 0.0
    for a in range(pmf.shape[0]):
        pmf[a] = math.exp((pmf[a] - best) / state.temperature)
        total += pmf[a]
    for a in range(pmf.shape[0]):
        pmf[a] /= total
