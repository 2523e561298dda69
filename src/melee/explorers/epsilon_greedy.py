"""ε-greedy and ε-decreasing: the learner's best action, with a uniform one now and then."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from melee.arrays import Floats, Words
from melee.compiled import implements
from melee.distributions import greedy, mix_uniform
from melee.explorers.base import LearningExplorer, Problem
from melee.explorers.interface import distribution
from melee.learners.interface import predict_all
from melee.settings import number


class EpsilonState(NamedTuple):
    """A policy optimizer and the schedule ε·t^(-decay)."""

    polopt: Any
    epsilon: float
    decay: float


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(LearningExplorer):
    """Explore uniformly with probability ε, else act greedily on f_t.

    ε = 0 by default: greedy, the paper's setting, after Bietti, Agarwal and Langford (2018).

    Parameters
    ----------
    epsilon
        Probability of a uniform action, in [0, 1].
    """

    name: ClassVar[str] = "epsilon-greedy"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    epsilon: float = number(0.0, 0.0, 1.0)

    def start(self, problem: Problem) -> EpsilonState:
        """A fresh learner and a constant ε."""
        return EpsilonState(self.new_optimizer(problem), float(self.epsilon), 0.0)


@dataclass(frozen=True, kw_only=True)
class EpsilonDecreasing(LearningExplorer):
    """ε-greedy with ε_t = ε₀/t (Sutton and Barto, 1998).

    Parameters
    ----------
    epsilon
        ε₀, in (0, 1]; 0.1 is the paper's setting.
    """

    name: ClassVar[str] = "epsilon-decreasing"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    epsilon: float = number(0.1, 0.0, 1.0, above=True)

    def start(self, problem: Problem) -> EpsilonState:
        """A fresh learner and ε₀/t."""
        return EpsilonState(self.new_optimizer(problem), float(self.epsilon), 1.0)


@implements(distribution, EpsilonState)
def epsilon_distribution(state: EpsilonState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """Mass 1 - ε_t on the best prediction, ε_t spread evenly."""
    predict_all(state.polopt.learner, x, 0, pmf)
    greedy(pmf)
    mix_uniform(pmf, state.epsilon if state.decay == 0.0 else state.epsilon / t**state.decay)
