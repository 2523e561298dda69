"""Hidden units: fixed random features beside a context's own, for any explorer over a ridge.

A linear model of [x, h(x)] bends where a linear model of x cannot. A unit looks at two of the
features z, scaled to unit variance, each through a ramp that rises from 0 to 1 or falls from 1 to 0
within a standard deviation around a place t: r(z) = ½ ± (z - t), held to [0, 1]. The product of the
two is 1 in a corner of the plane and 0 outside of it, with soft edges: rewards often depend on few
columns at a time, and turn where one of them passes a value, as in the leaves of a tree.

Columns are dealt from a shuffled deck, so that all of them are looked at alike; t is drawn from a
normal distribution. The units of a number of features are always the same ones.

Four times as many are drawn as are used. At first they are the first quarter. An explorer that
keeps its first rounds (see `melee.explorers.rescaled`) learns them again in a better scale, and can
by then tell which units are worth having: those that went most closely with the rewards of single
actions. The *worth* of a unit h is the sum over actions of cov(h, r)² / (var(h) + 1), sums over the
rounds of an action: about how much of the squares of its rewards the unit alone would explain.
Where all units together are worth little more than they would be by luck, as with the first few
clicks, none is chosen: what fits luck best predicts worst.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints, Scratch, Words
from melee.compiled import implements, interpreted_as, kernel
from melee.explorers.interface import distribution, learn, reveal
from melee.rng import generator
from melee.scaling import Scaling, scale_rows_at_once, scaled_entry

SPREAD = 0.8
"""Standard deviation of the places where ramps are, in standard deviations of a feature."""
CENTRE = 0.3
"""Taken from every unit, as they are between 0 and 1."""
SIZE = 2.0
"""All units together then weigh about as much as the features."""


SPARE = 4
"""Units that are drawn for each that is used."""
CHOSEN_FROM = 64
"""Rounds from which on units are chosen by their worth."""
LUCK = 1.15
"""How many times what they would be worth by luck all units are worth, before any is chosen."""
CLOSE = 1e-9
"""Worths that differ by less, beside their size or beside the squares of the rewards' range, are
equal but for rounding: the unit that was drawn first is taken."""


class Units(NamedTuple):
    """Random units over contexts that were divided by the square root of their length."""

    columns: Ints  # (drawn, 2)
    weights: Floats  # (drawn, 4): slope and offset of the first column's ramp, and of the second's
    used: Ints  # (units,), which of them
    share: float  # of a unit in the length of an input

    @classmethod
    def draw(cls, n_features: int, n_units: int) -> "Units":
        """So many units for contexts of this length, before any is chosen.

        >>> Units.draw(3, 4).used
        array([0, 1, 2, 3])
        """
        rng = generator(0, "hidden units", n_features)
        columns = np.zeros((SPARE * n_units, 2), np.int64)
        weights = np.zeros((SPARE * n_units, 4))
        deck: list[int] = []
        for unit in range(SPARE * n_units):
            if len(deck) < 2:
                deck = [0, 0] if n_features == 1 else rng.permutation(n_features).tolist()
            columns[unit] = deck[:2]
            deck = deck[2:]
            weights[unit] = draw_ramps(rng, n_features)
        return cls(columns, weights, np.arange(n_units), SIZE / math.sqrt(n_units))


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
    n, columns = x.shape[0] - 1, units.columns[units.used]
    wide[:n] = x[:n]
    values = corners(units.weights[units.used], x[columns[:, 0]], x[columns[:, 1]])
    wide[n:-1] = values * units.share
    wide[-1] = 1.0


@interpreted_as(_widen_at_once)
def widen(units: Units, x: Floats, wide: Floats) -> None:
    """Overwrite `wide` with the features of x, its hidden units, and a 1 at the end."""
    n = x.shape[0] - 1
    for i in range(n):
        wide[i] = x[i]
    for place in range(units.used.shape[0]):
        unit = units.used[place]
        first, second = x[units.columns[unit, 0]], x[units.columns[unit, 1]]
        wide[n + place] = corner(units.weights, unit, first, second) * units.share
    wide[wide.shape[0] - 1] = 1.0


@kernel
def left_of(sums: Floats) -> float:
    """The variance of rewards around the averages of actions."""
    squares = rounds = 0.0
    for a in range(sums.shape[0]):
        n = sums[a, 0]
        squares += sums[a, 5] - sums[a, 4] * sums[a, 4] / max(n, 1.0)
        rounds += max(n - 1.0, 0.0)
    return max(squares, 0.0) / max(rounds, 1.0)


@kernel
def times_luck(worth: Floats, luck: float) -> float:
    """The sum of worths beside what it would be by luck; 0 where both are nothing but rounding."""
    total = 0.0
    for unit in range(worth.shape[0]):
        total += worth[unit]
    return total / luck if luck > CLOSE else 0.0


def _weigh_at_once(
    units: Units,
    scaling: Scaling,
    contexts: Floats,
    actions: Ints,
    rewards: Floats,
    sums: Floats,
    worth: Floats,
) -> float:
    inputs = scale_rows_at_once(scaling, contexts)
    values = corners(units.weights, inputs[:, units.columns[:, 0]], inputs[:, units.columns[:, 1]])
    paid = np.broadcast_to(rewards[:, None], values.shape)
    parts = np.ones_like(values), values, values * values, values * paid, paid, paid * paid
    totals = np.zeros((6, len(sums), len(worth)))
    for part, total in zip(parts, totals, strict=True):
        np.add.at(total, actions, part)  # one round after the other
    rounds, first, second, both, of_rewards, _ = totals
    rounds = np.maximum(rounds, 1.0)
    covariance = both - first * of_rewards / rounds
    variance = second - first * first / rounds
    worth[:] = np.add.accumulate(covariance * covariance / (variance + 1.0), axis=0)[-1] + 0.0
    sums[:] = totals[:, :, -1].T
    by_unit = (variance / (variance + 1.0)).T.ravel()  # unit by unit, and action by action in each
    luck = float(np.add.accumulate(by_unit)[-1] + 0.0) * left_of(sums)
    return times_luck(worth, luck)


@interpreted_as(_weigh_at_once)
def weigh(
    units: Units,
    scaling: Scaling,
    contexts: Floats,
    actions: Ints,
    rewards: Floats,
    sums: Floats,
    worth: Floats,
) -> float:
    """Overwrite `worth` with that of every unit that was drawn, by rounds that were kept.

    How many times more they are worth, all together, than units are by luck. Shapes: contexts
    (n, d) as they came, actions (n,), rewards (n,), sums (K, 6), worth (drawn,). Overwrites the
    sums too.
    """
    luck = 0.0
    for unit in range(worth.shape[0]):
        first, second = units.columns[unit, 0], units.columns[unit, 1]
        sums[:] = 0.0
        for i in range(actions.shape[0]):
            one = scaled_entry(scaling, contexts, i, first)
            value = corner(units.weights, unit, one, scaled_entry(scaling, contexts, i, second))
            of = sums[actions[i]]
            of[0] += 1.0
            of[1] += value
            of[2] += value * value
            of[3] += value * rewards[i]
            of[4] += rewards[i]
            of[5] += rewards[i] * rewards[i]
        worth[unit] = 0.0
        for a in range(sums.shape[0]):
            of = sums[a]
            rounds = max(of[0], 1.0)
            covariance = of[3] - of[1] * of[4] / rounds
            variance = of[2] - of[1] * of[1] / rounds
            worth[unit] += covariance * covariance / (variance + 1.0)
            luck += variance / (variance + 1.0)
    return times_luck(worth, luck * left_of(sums))


@kernel
def choose(units: Units, worth: Floats) -> None:
    """Use the units of the greatest worth. Overwrites `worth` with -1 where one is used."""
    for place in range(units.used.shape[0]):
        best, least = 0, -1.0
        for unit in range(worth.shape[0]):
            if worth[unit] >= 0.0 and worth[unit] > least:
                best, least = unit, worth[unit] * (1.0 + CLOSE) + CLOSE
        units.used[place] = best
        worth[best] = -1.0


class Widened(NamedTuple):
    """An explorer's state behind hidden units."""

    inner: Any
    units: Units
    wide: Scratch  # (features + units + 1,)
    sums: Scratch  # (K, 6)
    worth: Scratch  # (drawn,)

    @classmethod
    def around(cls, inner: Any, n_features: int, n_actions: int, n_units: int) -> "Widened":
        """The state behind fresh units."""
        return cls(
            inner=inner,
            units=Units.draw(n_features, n_units),
            wide=np.zeros(n_features + n_units + 1),
            sums=np.zeros((n_actions, 6)),
            worth=np.zeros(SPARE * n_units),
        )


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
