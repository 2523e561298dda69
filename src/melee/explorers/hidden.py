"""Hidden units: fixed random features beside a context's own, for any explorer over a ridge.

A linear model of [x, h(x)] bends where a linear model of x cannot. A unit looks at two of the
features z, scaled to unit variance, each through a ramp that rises from 0 to 1 or falls from 1 to 0
within a standard deviation around a place t: r(z) = ½ ± (z - t), held to [0, 1]. The product of the
two is 1 in a corner of the plane and 0 outside of it, with soft edges: rewards often depend on few
columns at a time, and turn where one of them passes a value, as in the leaves of a tree.

Columns are dealt from a shuffled deck, so that all of them are looked at alike; t is drawn from a
normal distribution. The units of a number of features are always the same ones.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints, Scratch, Words
from melee.compiled import implements, interpreted_as, kernel
from melee.explorers.interface import distribution, learn, reveal
from melee.rng import generator

SPREAD = 0.8
"""Standard deviation of the places where ramps are, in standard deviations of a feature."""
CENTRE = 0.3
"""Taken from every unit, as they are between 0 and 1."""
SIZE = 2.0
"""All units together then weigh about as much as the features."""


class Units(NamedTuple):
    """Random units over contexts that were divided by the square root of their length."""

    columns: Ints  # (units, 2)
    weights: Floats  # (units, 4): slope and offset of the first column's ramp, and of the second's
    share: float  # of a unit in the length of an input

    @classmethod
    def draw(cls, n_features: int, n_units: int) -> "Units":
        """The units for contexts of this length.

        >>> Units.draw(3, 4).columns.shape
        (4, 2)
        """
        rng = generator(0, "hidden units", n_features)
        columns = np.zeros((n_units, 2), np.int64)
        weights = np.zeros((n_units, 4))
        deck: list[int] = []
        for unit in range(n_units):
            if len(deck) < 2:
                deck = [0, 0] if n_features == 1 else rng.permutation(n_features).tolist()
            columns[unit] = deck[:2]
            deck = deck[2:]
            weights[unit] = draw_ramps(rng, n_features)
        return cls(columns, weights, SIZE / math.sqrt(n_units))


def draw_ramps(rng: np.random.Generator, n_features: int) -> Floats:
    """Slope and offset of two ramps over features that were divided by √n_features."""
    rises, places = rng.choice((-1.0, 1.0), size=2), SPREAD * rng.normal(size=2)
    return np.stack([rises * math.sqrt(n_features), 0.5 - rises * places], axis=1).ravel()


@kernel
def corner(weights: Floats, unit: int, first: float, second: float) -> float:
    """The product of the two ramps of a unit, less what makes it small on average."""
    first = min(max(first * weights[unit, 0] + weights[unit, 1], 0.0), 1.0)
    second = min(max(second * weights[unit, 2] + weights[unit, 3], 0.0), 1.0)
    return first * second - CENTRE


def corners(weights: Floats, first: Floats, second: Floats) -> Floats:
    """The same for all units at once."""
    first = np.minimum(np.maximum(first * weights[:, 0] + weights[:, 1], 0.0), 1.0)
    second = np.minimum(np.maximum(second * weights[:, 2] + weights[:, 3], 0.0), 1.0)
    return np.asarray(first * second - CENTRE)


def _widen_at_once(units: Units, x: Floats, wide: Floats) -> None:
    n = x.shape[0] - 1
    wide[:n] = x[:n]
    first, second = x[units.columns[:, 0]], x[units.columns[:, 1]]
    wide[n:-1] = corners(units.weights, first, second) * units.share
    wide[-1] = 1.0


@interpreted_as(_widen_at_once)
def widen(units: Units, x: Floats, wide: Floats) -> None:
    """Overwrite `wide` with the features of x, its hidden units, and a 1 at the end."""
    n = x.shape[0] - 1
    for i in range(n):
        wide[i] = x[i]
    for unit in range(units.columns.shape[0]):
        first, second = x[units.columns[unit, 0]], x[units.columns[unit, 1]]
        wide[n + unit] = corner(units.weights, unit, first, second) * units.share
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
