"""Scaling: how raw features become the inputs of a learner."""

import math
from typing import NamedTuple

import numpy as np

from melee.arrays import Floats, Ints
from melee.compiled import entry, interpreted_as
from melee.task import LARGEST

LIMIT = 5.0
"""Scaled values are cut at ±5: thirty rows cannot know the tails of a column."""


class Scaling(NamedTuple):
    """How raw features become a learner's inputs: (raw - shift)·scale, cut, divided by √d."""

    shift_scale: Floats  # (2, d)
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
        if method == "standardize":
            shift, size = contexts.mean(axis=0), contexts.std(axis=0)
        else:
            shift, size = contexts.min(axis=0), np.ptp(contexts, axis=0)
        # Rounding leaves a constant column with a tiny spread that must not blow it up.
        constant = size <= 1e-12 * np.abs(contexts).max(axis=0)
        shift = np.where(constant, contexts[0], shift)
        scale = 1.0 / np.where(constant, 1.0, size)
        return cls(np.array([shift, scale]), LIMIT, 1.0 / math.sqrt(contexts.shape[1]))


def _scale_row_at_once(scaling: Scaling, raw: Floats, x: Floats) -> None:
    scaled = (raw - scaling.shift_scale[0]) * scaling.shift_scale[1]
    x[:-1] = np.minimum(np.maximum(scaled, -scaling.limit), scaling.limit) * scaling.factor
    x[-1] = 1.0


@interpreted_as(_scale_row_at_once)
def scale_row(scaling: Scaling, raw: Floats, x: Floats) -> None:
    """Overwrite x with the scaled features and a 1 at the end."""
    table = scaling.shift_scale
    for i in range(raw.shape[0]):
        scaled = (raw[i] - table[0, i]) * table[1, i]
        x[i] = min(max(scaled, -scaling.limit), scaling.limit) * scaling.factor
    x[raw.shape[0]] = 1.0


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
