"""Optimism in the face of uncertainty: LinUCB, and a gated form that knows when to stop."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats, Words
from melee.compiled import implements, kernel
from melee.distributions import greedy, largest
from melee.explorers.base import Problem, RidgeExplorer
from melee.explorers.interface import distribution
from melee.learners.interface import n_rows, predict, predict_all, spread
from melee.learners.offers import n_choices
from melee.settings import number


class LinUcbState(NamedTuple):
    """A ridge learner and the width of the confidence bound."""

    polopt: Any
    alpha: float


class GatedUcbState(NamedTuple):
    """A ridge learner and the gate's two numbers."""

    polopt: Any
    scale: float
    power: float


@dataclass(frozen=True, kw_only=True)
class LinUcb(RidgeExplorer):
    """Play the highest upper confidence bound, mean + α·spread, with one ridge per action.

    Li, Chu, Langford and Schapire (2010), the disjoint form. Exact up to 150 features, then
    with a diagonal covariance as in the paper.

    Parameters
    ----------
    alpha
        Width of the bound; it has a meaning only together with the scaling of the contexts.
    """

    name: ClassVar[str] = "linucb"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    alpha: float = number(0.1, 0.0)

    def start(self, problem: Problem) -> LinUcbState:
        """A fresh ridge per action."""
        return LinUcbState(self.new_optimizer(problem), float(self.alpha))

    def bonuses(self, state: LinUcbState, x: Floats, t: int) -> Floats:
        """α·spread."""
        return state.alpha * spreads(state.polopt.learner, x)


@dataclass(frozen=True, kw_only=True)
class GatedUcb(RidgeExplorer):
    """LinUCB whose bonus fades where the best prediction is good already.

    score_a = mean_a + scale·(1 - m*)^power·spread_a, with m* the best mean, within [0, 1].
    Where something good is known nothing else is tried; where nothing is, what is uncertain.

    Parameters
    ----------
    scale, power
        Size of the bonus, and how fast it fades as m* approaches 1.
    """

    name: ClassVar[str] = "gated-ucb"
    takes_candidates: ClassVar[bool] = True
    scale: float = number(1.2, 0.0)
    power: float = number(4.0, 0.0)

    def start(self, problem: Problem) -> GatedUcbState:
        """A fresh ridge per action."""
        return GatedUcbState(self.new_optimizer(problem), float(self.scale), float(self.power))

    def bonuses(self, state: GatedUcbState, x: Floats, t: int) -> Floats:
        """The spread times what the gate lets through."""
        learner = state.polopt.learner
        means = np.empty(n_choices(x, n_rows(learner)))
        predict_all(learner, x, 0, means)
        return gate(state, largest(means)) * spreads(learner, x)


def spreads(learner: Any, x: Floats) -> Floats:
    """Of every action's prediction."""
    return np.array([spread(learner, x, a) for a in range(n_choices(x, n_rows(learner)))])


@kernel
def gate(state: GatedUcbState, best: float) -> float:
    """What a unit of spread is worth where this is the best prediction."""
    return float(state.scale * (1.0 - min(max(best, 0.0), 1.0)) ** state.power)


@implements(distribution, LinUcbState)
def linucb_distribution(state: LinUcbState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """All mass on the highest bound."""
    learner = state.polopt.learner
    for a in range(pmf.shape[0]):
        pmf[a] = predict(learner, x, a) + state.alpha * spread(learner, x, a)
    greedy(pmf)


@implements(distribution, GatedUcbState)
def gated_ucb_distribution(
    state: GatedUcbState, x: Floats, t: int, rng: Words, pmf: Floats
) -> None:
    """All mass on the highest gated score."""
    learner = state.polopt.learner
    predict_all(learner, x, 0, pmf)
    bonus = gate(state, largest(pmf))
    for a in range(pmf.shape[0]):
        pmf[a] += bonus * spread(learner, x, a)
    greedy(pmf)
