"""Evidence about a mean that may be looked at after every round, and acted upon at any time.

An ordinary interval is right once: whoever looks every day, and stops when it excludes 0, is
wrong far more often than it says. A *confidence sequence* holds at all times at once, with the
chance that it promises, so looking and stopping are free. It is about twice as wide.

Values are bounded, of any distribution, and their means may change from round to round, as those
of a policy that learns do; the sequence is about the average of the means so far. It is the
empirical Bernstein one of Howard, Ramdas, McAuliffe and Sekhon (2021, theorem 4), as used for
policies by Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2022): for 0 < λ < 1 and a guess g
of each value that is made before it,

    exp(Σ λ(x - μ)/c - Σ (-log(1 - λ) - λ) ((x - g)/c)²),   x - g ≥ -c,

is a bet that wins nothing on average if the means are μ. Several λ share the stake, so that one of
them suits the variance that turns out. Winnings above 20 happen to one of 20 at most, ever.
"""

import numpy as np

from melee.arrays import Floats

BETS = 2.0 ** -np.arange(1.0, 11.0)
"""The values of λ. Small ones are for many rounds, of a variance that is small beside the bound."""


def evidence(values: Floats, bound: float) -> Floats:
    """Logarithms of e-values after each round, (n, 2): for a mean above 0, and for one below.

    Under the opposite, either exceeds log(1/α) at any time with a chance of α at most.

    Parameters
    ----------
    values
        In the order of rounds, each from -bound to bound, with a mean within [-1, 1].

    Examples
    --------
    >>> above, below = evidence(np.tile([1.0, 0.0, 1.0], 40), bound=1.0)[-1]
    >>> bool(above > np.log(1e6)), bool(below < 0.0)
    (True, True)
    """
    total, spread = np.cumsum(values), np.cumsum((values - _guesses(values)) ** 2)
    c = bound + 1.0
    return np.column_stack([_log_wealth(sign * total, spread, c) for sign in (1.0, -1.0)])


def anytime_interval(
    values: Floats, bound: float, confidence: float = 0.95
) -> tuple[float, float, float]:
    """The ends of the confidence sequence at the last round, and the p-value of a mean of 0.

    All three stay valid if it was this very result that made one stop here.

    Examples
    --------
    >>> low, high, p = anytime_interval(np.tile([1.0, 0.0, 1.0], 40), bound=1.0)
    >>> 0.4 < low < 2 / 3 < high < 0.95, p < 1e-5
    (True, True)
    """
    n, total = len(values), float(values.sum())
    spread = float(((values - _guesses(values)) ** 2).sum())
    # Each side has half of the error.
    enough = np.log(2.0 / (1.0 - confidence))

    def reach(sign: float) -> float:
        """How far the mean may lie from that of the values, until bets against it win enough."""
        near, far = 0.0, 1.0 + sign * total / n
        for _ in range(60):
            middle = 0.5 * (near + far)
            wealth = _log_wealth(np.array([n * middle]), np.array([spread]), bound + 1.0)[0]
            near, far = (middle, far) if wealth < enough else (near, middle)
        return far

    strongest = float(evidence(values, bound)[-1].max())
    p_value = min(1.0, 2.0 * float(np.exp(-strongest)))
    return total / n - reach(1.0), total / n + reach(-1.0), p_value


def _guesses(values: Floats) -> Floats:
    """The mean of earlier values, 0 at first, where means can be."""
    before = np.concatenate([[0.0], np.cumsum(values)[:-1] / np.arange(1, len(values))])
    guesses: Floats = np.clip(before, -1.0, 1.0)
    return guesses


def _log_wealth(total: Floats, spread: Floats, c: float) -> Floats:
    """What all bets have won together after a sum of values and of squared surprises, as a log."""
    cost = -np.log1p(-BETS) - BETS
    won = np.outer(total / c, BETS) - np.outer(spread / c**2, cost)
    most = won.max(axis=1)
    total_won: Floats = most + np.log(np.exp(won - most[:, None]).mean(axis=1))
    return total_won
