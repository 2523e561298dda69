"""Hidden units: fixed random features beside a context's own, for any explorer over a ridge.

A linear model of [x, h(x)] bends where a linear model of x cannot. A unit looks at two of the
features z, scaled to unit variance, through max(0, u·z_i + v·z_j + b) with u, v, b drawn from a
normal distribution; as real tables often depend on few columns at a time, two at a time teach
more than mixtures of all. The units of a number of features are always the same ones.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints, Scratch, Words
from melee.compiled import implements, interpreted_as
from melee.explorers.interface import distribution, learn, reveal
from melee.rng import generator


class Units(NamedTuple):
    """Random units over contexts that were divided by the square root of their length."""

    columns: Ints  # (units, 2)
    weights: Floats  # (units, 3): of the two columns, and the offset
    size: float  # √d undoes the division
    share: float  # 1/√units: all of them together weigh as much as the features

    @classmethod
    def draw(cls, n_features: int, n_units: int) -> "Units":
        """The units for contexts of this length.

        >>> Units.draw(3, 4).columns.shape
        (4, 2)
        """
        rng = generator(0, "hidden units", n_features)
        columns = np.zeros((n_units, 2), np.int64)
        weights = np.zeros((n_units, 3))
        for unit in range(n_units):
            columns[unit] = rng.choice(n_features, size=2, replace=n_features == 1)
            weights[unit] = rng.normal(size=3)
        return cls(columns, weights, math.sqrt(n_features), 1.0 / math.sqrt(n_units))


def _widen_at_once(units: Units, x: Floats, wide: Floats) -> None:
    n = x.shape[0] - 1
    wide[:n] = x[:n]
    first, second = x[units.columns[:, 0]], x[units.columns[:, 1]]
    total = units.weights[:, 0] * first + units.weights[:, 1] * second
    total = total * units.size + units.weights[:, 2]
    wide[n:-1] = (np.maximum(total, 0.0) - 0.5) * units.share
    wide[-1] = 1.0


@interpreted_as(_widen_at_once)
def widen(units: Units, x: Floats, wide: Floats) -> None:
    """Overwrite `wide` with the features of x, its hidden units, and a 1 at the end."""
    n = x.shape[0] - 1
    for i in range(n):
        wide[i] = x[i]
    for unit in range(units.columns.shape[0]):
        first, second = x[units.columns[unit, 0]], x[units.columns[unit, 1]]
        total = units.weights[unit, 0] * first + units.weights[unit, 1] * second
        total = total * units.size + units.weights[unit, 2]
        wide[n + unit] = (max(total, 0.0) - 0.5) * units.share
    wide[wide.shape[0] - 1] = 1.0


class Widened(NamedTuple):
    """An explorer's state behind hidden units."""

    inner: Any
    units: Units
    wide: Scratch  # (features + units + 1,)

    @classmethod
    def around(cls, inner: Any, n_features: int, n_units: int) -> "Widened":
        """The state behind fresh units."""
        return cls(inner, Units.draw(n_features, n_units), np.zeros(n_features + n_units + 1))


@implements(distribution, Widened)
def widened_distribution(state: Widened, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """That of the inner explorer in the wider context."""
    widen(state.units, x, state.wide)
    distribution(state.inner, state.wide, t, rng, pmf)


@implements(learn, Widened)
def widened_learn(
    state: Widened, x: Floats, t: int, rng: Words, action: int, reward: float, probability: float
) -> None:
    """The inner explorer learns the wider context."""
    widen(state.units, x, state.wide)
    learn(state.inner, state.wide, t, rng, action, reward, probability)


@implements(reveal, Widened)
def widened_reveal(
    state: Widened, x: Floats, t: int, rng: Words, action: int, rewards: Floats, probability: float
) -> None:
    """The inner explorer is shown the wider context."""
    widen(state.units, x, state.wide)
    reveal(state.inner, state.wide, t, rng, action, rewards, probability)
