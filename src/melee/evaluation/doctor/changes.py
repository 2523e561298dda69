"""One scale that turns into another within a log: euros into cents, shares into percents."""

import math
from typing import NamedTuple

import numpy as np

from melee.arrays import Floats

FACTOR = 5.0
"""Times by which sizes have to differ before and after."""
_FEW = 20
"""Numbers other than 0 that there have to be before, and after."""


class ScaleChange(NamedTuple):
    """Where another scale begins, as a position among the values, and typical sizes."""

    at: int
    before: float
    after: float


def change_of_scale(values: Floats) -> ScaleChange | None:
    """Where numbers go on as before but for a factor, if they do.

    The place is Pettitt's (1979): where the sum of ranks so far is furthest from what it would be
    by chance. There it has to look like another unit: sizes before and after hardly overlap, have
    the same distribution but for the factor, and the step is sudden. Numbers that are 0 have no
    size, and are passed over.

    >>> prices = np.tile([1.5, 2.0, 4.0, 0.0], 50)
    >>> prices[120:] *= 100.0
    >>> change_of_scale(prices)
    ScaleChange(at=120, before=2.0, after=200.0)
    """
    where = np.flatnonzero(np.isfinite(values) & (values != 0.0))
    if len(where) < 2 * _FEW:
        return None
    # Rounded, so that equal sizes stay equal after they were multiplied.
    sizes = np.log(np.abs(values[where])).round(6)
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - 0.5 * counts)[place]
    step = 1 + int(np.abs(np.cumsum(ranks - ranks.mean())).argmax())
    # Then by sizes: on the one side those nearer to what is typical there, but for a few.
    parts = np.median(sizes[:step]), np.median(sizes[min(step, len(sizes) - 1) :])
    nearer = np.where((sizes < np.mean(parts)) == (parts[0] < parts[1]), 1, -1)
    step = 1 + int(nearer.cumsum().argmax())
    before, after = sizes[:step], sizes[step:]
    if min(len(before), len(after)) < _FEW:
        return None
    factor = float(np.median(after) - np.median(before))
    near = max(_FEW // 2, min(len(before), len(after)) // 5)
    sudden = float(np.median(after[:near]) - np.median(before[-near:])) / factor if factor else 0.0
    luck = math.sqrt(1.0 / len(before) + 1.0 / len(after))
    if (
        abs(factor) < math.log(FACTOR)
        or sudden < 0.7
        or distance(before, after) < 0.8
        or distance((before + factor).round(5), after.round(5)) > 0.1 + 1.6 * luck
    ):
        return None
    typical = (
        float(np.median(np.abs(values[where[part]]))) for part in (slice(step), slice(step, None))
    )
    return ScaleChange(int(where[step]), *typical)


def distance(first: Floats, second: Floats) -> float:
    """The Kolmogorov-Smirnov distance of two samples."""
    every = np.unique(np.concatenate([first, second]))
    below = [np.searchsorted(np.sort(x), every, "right") / len(x) for x in (first, second)]
    return float(np.abs(below[0] - below[1]).max())
