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
them suits the variance that turns out. Winnings of 20 times the stake happen to one of 20 at most,
ever.
"""

import numpy as np

from melee.arrays import Floats

BETS = 2.0 ** -np.arange(1.0, 11.0)
"""The values of λ. Small ones are for many rounds, of a variance that is small beside the bound."""


def evidence(values: Floats, bounds: Floats) -> Floats:
    """Logarithms of e-values after each round, (n, 2): for a mean above 0, and for one below.

    Under the opposite, either exceeds log(1/α) at any time with a chance of α at most.

    Parameters
    ----------
    values
        In the order of rounds, with means within [-1, 1]. Several rows, (m, n), are several ways
        to measure the same means, which share the stake: it need not be known which serves best.
    bounds
        Of each row, (m,): its values are from -bound to bound.

    Examples
    --------
    >>> above, below = evidence(np.tile([1.0, 0.0, 1.0], (1, 40)), np.ones(1))[-1]
    >>> bool(above > np.log(1e6)), bool(below < 0.0)
    (True, True)
    """
    total, spread = values.cumsum(axis=1), (_surprises(values) ** 2).cumsum(axis=1)
    both = [_log_wealth(sign * total, spread, bounds) for sign in (1.0, -1.0)]
    return np.column_stack(both)


def anytime_interval(
    values: Floats, bounds: Floats, confidence: float = 0.95
) -> tuple[float, float, float]:
    """The ends of the confidence sequence at the last round, and the p-value of a mean of 0.

    All three stay valid if it was this very result that made one stop here. Values and bounds are
    those of `evidence`.

    Examples
    --------
    >>> low, high, p = anytime_interval(np.tile([1.0, 0.0, 1.0], (1, 40)), np.ones(1))
    >>> 0.4 < low < 2 / 3 < high < 0.95, p < 1e-5
    (True, True)
    """
    n = values.shape[1]
    total = values.sum(axis=1, keepdims=True)
    spread = (_surprises(values) ** 2).sum(axis=1, keepdims=True)
    # Each side has half of the error.
    enough = np.log(2.0 / (1.0 - confidence))

    def end(sign: float) -> float:
        """The mean furthest below (or above) that bets against it have not won enough from."""
        far, near = -1.0, 1.0
        for _ in range(60):
            middle = 0.5 * (far + near)
            wealth = _log_wealth(sign * total - n * middle, spread, bounds)[0]
            far, near = (middle, near) if wealth > enough else (far, middle)
        return sign * far

    strongest = max(_log_wealth(sign * total, spread, bounds)[0] for sign in (1.0, -1.0))
    return end(1.0), end(-1.0), min(1.0, 2.0 * float(np.exp(-strongest)))


def _surprises(values: Floats) -> Floats:
    """How far each value is from the mean of earlier ones of its row, 0 at first."""
    surprises = values.copy()
    before = values.cumsum(axis=1)[:, :-1] / np.arange(1, values.shape[1])
    surprises[:, 1:] -= np.clip(before, -1.0, 1.0)  # where means can be
    return surprises


def _log_wealth(total: Floats, spread: Floats, bounds: Floats) -> Floats:
    """What all bets have won, as a log, (n,), by sums of values and squared surprises, (m, n)."""
    c = bounds[:, None, None] + 1.0  # a value is at most so far from a guess within [-1, 1]
    cost = -np.log1p(-BETS) - BETS
    won = total[:, :, None] / c * BETS - spread[:, :, None] / c**2 * cost
    most = won.max(axis=(0, 2))
    total_won: Floats = most + np.log(np.exp(won - most[:, None]).mean(axis=(0, 2)))
    return total_won
