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

from melee.arrays import Floats, Scratch, Words
from melee.compiled import implements, interpreted_as, kernel
from melee.distributions import greedy
from melee.explorers.base import Problem, RidgeExplorer
from melee.explorers.interface import distribution
from melee.learners.interface import predict, spread
from melee.settings import number

N_CELLS = 64
"""Cells of the integral over the largest draw."""
N_FINE = 24
"""Cells across a posterior that is narrower than one of those."""
N_EDGES = N_CELLS + 1 + N_FINE + 1
"""Room for edges, per action: more than enough for one, and for any number together."""
REACH = 6.0
"""Draws further than this many standard deviations from their mean are left out."""


class ThompsonState(NamedTuple):
    """A ridge learner, the scale of its spread, and room for the integral."""

    polopt: Any
    scale: float
    means: Scratch  # (K,)
    deviations: Scratch  # (K,)
    below: Scratch  # (K,)
    edges: Scratch  # (K·N_EDGES,)


@dataclass(frozen=True, kw_only=True)
class Thompson(RidgeExplorer):
    """Play each action as often as it is the best of one draw from every posterior.

    Parameters
    ----------
    scale
        Standard deviation of the posterior per unit of spread.
    """

    name: ClassVar[str] = "thompson"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    scale: float = number(0.2, 0.0, above=True)

    def start(self, problem: Problem) -> ThompsonState:
        """A fresh ridge per action."""
        k = problem.n_actions
        return ThompsonState(
            self.new_optimizer(problem),
            float(self.scale),
            np.zeros(k),
            np.zeros(k),
            np.zeros(k),
            np.zeros(k * N_EDGES),
        )


def _sort_at_once(values: Floats, n: int) -> None:
    values[:n] = np.sort(values[:n])


@interpreted_as(_sort_at_once)
def sort(values: Floats, n: int) -> None:
    """Sort the first n values in place: Shell's method, each gap 5/11 of the one before."""
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap = 1 if gap == 2 else int(gap * 5 // 11)


@kernel
def probability_of_largest(
    means: Floats, deviations: Floats, below: Floats, edges: Floats, pmf: Floats
) -> None:
    """The chance that each of K independent normal draws is the largest.

    The sum over cells of P(draw a falls into the cell)·P(all others lie below its middle),
    from the lowest value that the largest draw can take to the highest. Overwrites the scratch
    below (K) and edges.
    """
    low, high = -math.inf, -math.inf
    for a in range(pmf.shape[0]):
        low = max(low, means[a] - REACH * deviations[a])
        high = max(high, means[a] + REACH * deviations[a])
        pmf[a] = 0.0
    width = (high - low) / N_CELLS
    n = 0
    for cell in range(N_CELLS + 1):
        edges[n] = low + cell * width
        n += 1
    # A posterior that is narrower than a cell brings edges of its own.
    for a in range(pmf.shape[0]):
        if deviations[a] < width and means[a] + REACH * deviations[a] > low:
            for j in range(N_FINE + 1):
                edge = means[a] + REACH * deviations[a] * (2.0 * j / N_FINE - 1.0)
                if low < edge < high:
                    edges[n] = edge
                    n += 1
    sort(edges, n)
    for a in range(pmf.shape[0]):
        below[a] = normal_cdf((low - means[a]) / deviations[a])
    for cell in range(n - 1):
        middle = 0.5 * (edges[cell] + edges[cell + 1])
        product = 1.0
        for a in range(pmf.shape[0]):
            product *= normal_cdf((middle - means[a]) / deviations[a])
        for a in range(pmf.shape[0]):
            upper = normal_cdf((edges[cell + 1] - means[a]) / deviations[a])
            if upper > below[a]:
                own = normal_cdf((middle - means[a]) / deviations[a])
                pmf[a] += (upper - below[a]) * product / own
            below[a] = upper
    total = 0.0
    for a in range(pmf.shape[0]):
        total += pmf[a]
    if not total > 0.0:  # means so large that no spread changes them
        for a in range(pmf.shape[0]):
            pmf[a] = means[a]
        greedy(pmf)
        return
    for a in range(pmf.shape[0]):
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
    probability_of_largest(state.means, state.deviations, state.below, state.edges, pmf)
