"""Standardizing: what puts columns of any size on one scale.

All that standardizes does it by this arithmetic: the thirty labelled rows of a preparation and an
explorer that finds its scale on the way (both through `scaling.py`, which compiles it), numbers
that appear late in an agent's contexts (`features.py`), and the model of rewards of a log
(`evaluation/reward_model.py`).
"""

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats

LIMIT = 5.0
"""Scaled values are cut at ±5: thirty rows cannot know the tails of a column."""
ROUNDING = 1e-12
"""A spread of so little, relative to a column's values, is rounding: the column is constant."""


def is_constant(size: float, largest: float) -> bool:
    """Whether a spread is nothing but the rounding of values as large as that."""
    return size <= ROUNDING * largest


def scaled(value: float, shift: float, scale: float, limit: float) -> float:
    """A raw value in its column's scale, cut."""
    return min(max((value - shift) * scale, -limit), limit)


def measure(
    rows: Floats, method: str = "standardize"
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Shift and scale of every column of a table, and which columns are constant.

    `standardize` gives mean 0 and variance 1, `minmax` gives [0, 1]; a constant column is only
    shifted, to 0.
    """
    if method == "standardize":
        shift, size = rows.mean(axis=0), rows.std(axis=0)
    else:
        shift, size = rows.min(axis=0), np.ptp(rows, axis=0)
    constant = size <= ROUNDING * np.abs(rows).max(axis=0)
    shift = np.where(constant, rows[0], shift)
    return shift, 1.0 / np.where(constant, 1.0, size), constant
