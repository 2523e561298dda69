"""Scaling: how raw features become the inputs of a learner."""

import math
from typing import Annotated, NamedTuple

import numpy as np

from melee import standardizing
from melee.arrays import Floats, Ints, Within
from melee.compiled import entry, interpreted_as, kernel
from melee.standardizing import LIMIT, measure
from melee.task import LARGEST

is_constant, scaled = kernel(standardizing.is_constant), kernel(standardizing.scaled)


def _standardize_at_once(rows: Floats, n: int, plain: float, shift_scale: Floats) -> None:
    seen = rows[:n]
    mean = np.add.accumulate(seen / n, axis=0)[-1] + 0.0  # a sum with its terms in order
    size = np.sqrt(np.add.accumulate((seen - mean) * (seen - mean) / n, axis=0)[-1])
    constant = is_constant(size, np.abs(seen).max(axis=0))
    shift_scale[0] = np.where(constant, seen[0], mean)
    shift_scale[1] = np.where(constant, plain, 1.0 / np.where(constant, 1.0, size))


@interpreted_as(_standardize_at_once)
def standardize(rows: Floats, n: int, plain: float, shift_scale: Floats) -> None:
    """Find the scale in which the first n rows have mean 0 and variance 1: `measure` for kernels.

    A column that is constant in these rows is shifted to 0 and scaled by `plain`. Overwrites
    shift_scale (2, d).
    """
    for j in range(rows.shape[1]):
        mean = largest = 0.0
        for i in range(n):
            mean += rows[i, j] / n
            largest = max(largest, abs(rows[i, j]))
        variance = 0.0
        for i in range(n):
            variance += (rows[i, j] - mean) * (rows[i, j] - mean) / n
        size = np.sqrt(variance)
        constant = is_constant(size, largest)
        shift_scale[0, j] = rows[0, j] if constant else mean
        shift_scale[1, j] = plain if constant else 1.0 / size


class Scaling(NamedTuple):
    """How raw features become a learner's inputs: (raw - shift)·scale, cut, divided by √d."""

    shift_scale: Annotated[Floats, Within(-1e170, 1e170)]
    # (2, d); the square of the smallest spread is just above 0, so its inverse is below 1e162
    limit: float
    factor: float

    @classmethod
    def identity(cls, n_features: int) -> "Scaling":
        """Leave features as they are."""
        return cls(np.array([np.zeros(n_features), np.ones(n_features)]), math.inf, 1.0)

    @classmethod
    def fit(cls, contexts: Floats, method: str) -> "Scaling":
        """`standardize` to mean 0 and variance 1, or `minmax` to [0, 1].

        A column that is constant in these rows is only shifted.
        """
        shift, scale, _ = measure(contexts, method)
        return cls(np.array([shift, scale]), LIMIT, 1.0 / math.sqrt(contexts.shape[1]))


def scale_rows_at_once(scaling: Scaling, raw: Floats) -> Floats:
    """Raw features (..., d), scaled, where nothing is compiled."""
    moved = (raw - scaling.shift_scale[0]) * scaling.shift_scale[1]
    return np.asarray(np.minimum(np.maximum(moved, -scaling.limit), scaling.limit) * scaling.factor)


def _scale_row_at_once(scaling: Scaling, raw: Floats, x: Floats) -> None:
    x[:-1] = scale_rows_at_once(scaling, raw)
    x[-1] = 1.0


@interpreted_as(_scale_row_at_once)
def scale_row(scaling: Scaling, raw: Floats, x: Floats) -> None:
    """Overwrite x with the scaled features and a 1 at the end."""
    table = scaling.shift_scale
    for i in range(raw.shape[0]):
        x[i] = scaled(raw[i], table[0, i], table[1, i], scaling.limit) * scaling.factor
    x[raw.shape[0]] = 1.0


@kernel
def scaled_entry(scaling: Scaling, rows: Floats, i: int, j: int) -> float:
    """A single feature of a single row, scaled."""
    table = scaling.shift_scale
    return scaled(rows[i, j], table[0, j], table[1, j], scaling.limit) * scaling.factor


@entry
def scale_rows(scaling: Scaling, contexts: Floats, rows: Ints, x: Floats) -> None:
    """Overwrite x with these rows, scaled one by one."""
    for i in range(rows.shape[0]):
        scale_row(scaling, contexts[rows[i]], x[i])


def _usable_at_once(raw: Floats) -> bool:
    return bool((np.abs(raw) <= LARGEST).all())


@interpreted_as(_usable_at_once)
def usable(raw: Floats) -> bool:
    """Whether every number is one, and not so large that its square would overflow."""
    fine = True
    for value in raw:
        fine &= abs(value) <= LARGEST
    return fine
