"""Shares: how far a run went from uniform choice, 0, to the best possible choice, 1.

Rewards of different uses cannot be averaged: a good result is 0.012 for clicks and 0.97 for calls
that succeed. Their shares can, and luck has no part in them, as they count true expected rewards.
"""

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats, Ints

Mask = npt.NDArray[np.bool_]


def uniform_and_best(expected: Floats, open: Mask | None = None) -> tuple[Floats, Floats]:
    """What uniform choice and the best choice among open actions expect in every row.

    >>> uniform_and_best(np.array([[0.0, 1.0, 0.5]]), np.array([[True, False, True]]))
    (array([0.25]), array([0.5]))
    """
    if open is None:
        return expected.mean(axis=1), expected.max(axis=1)
    uniform = np.where(open, expected, 0.0).sum(axis=1) / open.sum(axis=1)
    return uniform, np.where(open, expected, -np.inf).max(axis=1)


def share(expected_rows: Floats, actions: Ints, open_rows: Mask | None = None) -> float:
    """The share of the way from uniform choice to the best that these actions went.

    Parameters
    ----------
    expected_rows
        True expected rewards of the rows that were played, in their order, shape (n, K).
    actions
        What was played, one action per row.
    open_rows
        Which actions could be chosen, shape (n, K); None where all could.

    Returns
    -------
        1 for the best action in every row, about 0 for uniform choice, less for what is worse;
        NaN where no action is better than another in any row.

    Examples
    --------
    >>> rates = np.array([[0.25, 0.75], [0.5, 0.0]])
    >>> share(rates, np.array([1, 0])), share(rates, np.array([0, 1]))
    (1.0, -1.0)
    """
    uniform, best = uniform_and_best(expected_rows, open_rows)
    possible = float((best - uniform).mean())
    if not possible > 0.0:
        return float("nan")
    played = expected_rows[np.arange(len(actions)), actions]
    return float((played - uniform).mean()) / possible
