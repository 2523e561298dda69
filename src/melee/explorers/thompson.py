"""Thompson sampling over ridge regression, by its action probabilities.

The posterior of action a's reward in context x is N(mean_a, (scale·spread_a)²), independent
across actions because each has a ridge of its own. Thompson sampling draws one number from
each and plays the largest; here the chance of that is computed first, the action is drawn
from it, and so the decision carries its probability.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats, Words
from melee.compiled import implements, kernel
from melee.explorers.base import Problem, RidgeExplorer, number
from melee.explorers.interface import distribution
from melee.learners.interface import predict, spread

N_POINTS = 128
"""Points of the integral over the largest draw, shared among the actions."""
REACH = 6.0
"""Draws further than this many standard deviations from their mean are left out."""


class ThompsonState(NamedTuple):
    """A ridge learner, the scale of its spread, and room for the integral."""

    polopt: Any
    scale: float
    means: Floats  # (K,) scratch
    deviations: Floats  # (K,) scratch
    below: Floats  # (K,) scratch


@dataclass(frozen=True, kw_only=True)
class Thompson(RidgeExplorer):
    """Play each action as often as it is the best of one draw from every posterior.

    Parameters
    ----------
    scale
        Standard deviation of the posterior per unit of spread.
    """

    name: ClassVar[str] = "thompson"
    scale: float = number(0.2, 0.0, above=True)

    def start(self, problem: Problem) -> ThompsonState:
        """A fresh ridge per action."""
        k = problem.n_actions
        return ThompsonState(
            self.new_optimizer(problem), float(self.scale), np.zeros(k), np.zeros(k), np.zeros(k)
        )


@kernel
def probability_of_largest(means: Floats, deviations: Floats, below: Floats, pmf: Floats) -> None:
    """The chance that each of K independent normal draws is the largest.

    The line is cut at points that lie evenly around every mean, in units of its deviation, so
    narrow and wide posteriors are both resolved. The chance of a is the sum over cells of
    P(draw a falls into the cell) times P(the others lie below it), the latter averaged over
    the cell's two ends. `below` is overwritten.
    """
    n_actions = pmf.shape[0]
    low = -math.inf
    for a in range(n_actions):
        low = max(low, means[a] - REACH * deviations[a])
    n_able = 0
    for a in range(n_actions):
        n_able += means[a] + REACH * deviations[a] > low
        below[a] = normal_cdf((low - means[a]) / deviations[a])
        pmf[a] = 0.0
    each = max(N_POINTS // n_able, 16)
    points = np.empty(each * n_able)
    n_points = 0
    for a in range(n_actions):
        if means[a] + REACH * deviations[a] > low:
            for j in range(each):
                z = REACH * (2.0 * (j + 1.0) / each - 1.0)
                points[n_points] = means[a] + deviations[a] * z
                n_points += 1
    points.sort()
    for point in points:
        if point <= low:
            continue
        product = 1.0
        for a in range(n_actions):
            product *= 0.5 * (below[a] + normal_cdf((point - means[a]) / deviations[a]))
        for a in range(n_actions):
            upper = normal_cdf((point - means[a]) / deviations[a])
            if upper > below[a]:
                pmf[a] += (upper - below[a]) * product / (0.5 * (below[a] + upper))
            below[a] = upper
    total = 0.0
    for a in range(n_actions):
        total += pmf[a]
    for a in range(n_actions):
        pmf[a] /= total


@kernel
def normal_cdf(z: float) -> float:
    """P(standard normal < z)."""
    return 0.5 * math.erfc(-z * 0.7071067811865476)


@implements(distribution, ThompsonState)
def thompson_distribution(state: ThompsonState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """The chance of each action to have the largest draw."""
    learner = state.polopt.learner
    for a in range(pmf.shape[0]):
        state.means[a] = predict(learner, x, a)
        state.deviations[a] = max(state.scale * spread(learner, x, a), 1e-12)
    probability_of_largest(state.means, state.deviations, state.below, pmf)
