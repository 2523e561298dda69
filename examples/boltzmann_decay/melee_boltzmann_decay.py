"""Boltzmann exploration whose temperature falls: an explorer for melee in a package of its own."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from melee.arrays import Floats, Words
from melee.compiled import implements
from melee.explorers import LearningExplorer, Problem, distribution
from melee.learners import predict_all
from melee.settings import number


class BoltzmannDecayState(NamedTuple):
    """A policy optimizer, whose learner predicts rewards, and the schedule T·t^(-decay)."""

    polopt: Any
    temperature: float
    decay: float


@dataclass(frozen=True, kw_only=True)
class BoltzmannDecay(LearningExplorer):
    """Play a with probability proportional to exp(f_a(x)/T_t), where T_t = temperature/t^decay.

    Parameters
    ----------
    temperature
        In round 1, in units of reward: actions whose predictions differ by less are played alike.
    decay
        How fast it falls; 0 keeps it as it is.
    """

    name: ClassVar[str] = "boltzmann-decay"
    temperature: float = number(1.0, 0.0, above=True)
    decay: float = number(0.6, 0.0, 2.0)

    def start(self, problem: Problem) -> BoltzmannDecayState:
        """A fresh learner."""
        optimizer = self.new_optimizer(problem)
        return BoltzmannDecayState(optimizer, float(self.temperature), float(self.decay))


@implements(distribution, BoltzmannDecayState)
def boltzmann_decay(state: BoltzmannDecayState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """exp(f_a/T_t) over their sum, shifted by the largest so that nothing overflows."""
    predict_all(state.polopt.learner, x, 0, pmf)
    temperature = state.temperature / t**state.decay
    largest = -math.inf
    for a in range(pmf.shape[0]):
        largest = max(largest, pmf[a])
    total = 0.0
    for a in range(pmf.shape[0]):
        pmf[a] = math.exp((pmf[a] - largest) / temperature)
        total += pmf[a]
    for a in range(pmf.shape[0]):
        pmf[a] /= total
