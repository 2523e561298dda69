"""Two explorers on one dataset: whether their difference is more than chance.

The paper pairs the rounds of two runs and applies a t-test to their differences. Rounds of one
run are not independent: what was learned early, luckily or not, stays. So a run differs from a
repetition of itself by more than its rounds suggest, and the test calls too many differences:
of 248 datasets of the paper's list under 3 seeds, 11 % "significantly" separated an explorer
from itself (nominal 1 %; 8 explorers, 18 % for those that hardly explore).

Seeds are independent repetitions: each shuffles the rows and draws its own exploration. A t-test
over seeds (`seed_t`) needs no more than that, but 3 seeds have 2 degrees of freedom and little
power. `moderated_t` borrows strength from the other datasets, as Smyth (2004) does for genes.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats
from melee.extras import needed

with needed("comparing explorers", "bench"):
    from scipy import optimize, special

FEW_DATASETS = 100
"""With fewer, the prior of `moderated_t` is too uncertain to be trusted alone."""


class Tested(NamedTuple):
    """Mean differences and the two-sided p-values of their being 0."""

    difference: Floats
    p_value: Floats


def two_sided(difference: Floats, error: Floats, freedom: npt.ArrayLike) -> Floats:
    """Two-sided p-values of differences with these standard errors and degrees of freedom.

    No error at all makes any difference certain (0) and no difference no evidence (1); so does
    having no degree of freedom (1).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference == 0.0, 0.0, np.abs(difference) / error)
    freedom = np.broadcast_to(np.asarray(freedom, dtype=np.float64), t.shape)
    p = 2.0 * special.stdtr(np.maximum(freedom, 1.0), -t)
    return np.where(freedom > 0.0, p, 1.0)


def paired_t(a: Floats, b: Floats) -> Tested:
    """The paper's test: paired t over rounds, along the last axis.

    Assumes independent rounds, which those of a bandit are not; see the module.

    >>> paired_t(np.array([1.0, 1, 0, 1, 1]), np.array([0.0, 1, 0, 0, 1])).p_value.round(4)
    np.float64(0.1778)
    """
    return seed_t(np.subtract(a, b))


def seed_t(differences: Floats) -> Tested:
    """A t-test along the last axis, which holds one difference per independent repetition.

    Given the mean differences of seeds it assumes that they are independent and about normal.
    Where rewards are so coarse that seeds agree by chance, it exceeds its level: 4 % for 1 %
    with 2 seeds on the paper's datasets.

    >>> seed_t(np.array([[0.02, 0.03, 0.01], [0.0, 0.0, 0.0]])).p_value.round(4)
    array([0.0742, 1.    ])
    """
    n = differences.shape[-1]
    mean = differences.mean(axis=-1)
    square = ((differences - mean[..., None]) ** 2).sum(axis=-1)
    return Tested(mean, two_sided(mean, np.sqrt(square / max(n - 1, 1) / n), n - 1))


def moderated_t(per_seed: Floats, by_rounds: Floats) -> Tested:
    """A t-test over seeds whose variances borrow strength from all datasets.

    The variance between seeds is a multiple of the one that independent rounds would cause.
    Multiples of different datasets are alike, though not equal: they are taken as draws from a
    scaled inverse chi-square distribution, which is fitted to all datasets, and each dataset's
    own estimate is averaged with it, weighted by degrees of freedom (Smyth, 2004; fitted by
    maximum likelihood, because the few distinct values of coarse rewards upset the moments of
    logarithms). If the datasets disagree, the prior weighs little and this becomes `seed_t`.

    Assumes independent seeds and differences about symmetric around their mean. It cannot know
    of a failure so rare that no seed has met it. The level is the average over the datasets:
    with variances unlike each other, those above the fit are called more often than the others.
    With fewer than 100 datasets a difference counts only if `seed_t` and independent rounds
    would find it, too.

    In simulations of 100 and more datasets it called 0.4 to 1.2 % of chance differences at the
    1 % level with 3 and 5 seeds, and up to 1.7 % with 2 seeds, where few runs fail for good. In
    the A/A check of the module's first paragraph it was 0.2 %.

    Parameters
    ----------
    per_seed
        Mean difference of every seed, shape (datasets, seeds), at least 2 seeds.
    by_rounds
        Variance that independent rounds would give each of these means, shape (datasets,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chance = rng.normal(size=(200, 3))
    >>> chance[0] = 3.0, 3.5, 2.0
    >>> tested = moderated_t(chance, np.ones(200))
    >>> print(f"{tested.p_value[0]:.6f}, alone {seed_t(chance[0]).p_value:.6f}")
    0.000002, alone 0.023376
    """
    n_seeds = per_seed.shape[1]
    alone = seed_t(per_seed)
    varies = by_rounds > 0.0
    freedom = n_seeds - 1.0
    multiples = per_seed[varies].var(axis=1, ddof=1) / by_rounds[varies]
    # Seeds that agree to the last digit show how coarse rewards are, not how certain.
    positive = multiples[multiples > 1e-9]
    prior, prior_freedom = fit_scaled_f(positive, freedom) if len(positive) else (1.0, 0.0)
    shrunk = (prior_freedom * prior + freedom * multiples) / (prior_freedom + freedom)
    total = freedom + min(prior_freedom, freedom * max(len(positive) - 1, 0))
    difference, error = alone.difference[varies], np.sqrt(by_rounds[varies] / n_seeds)
    p = alone.p_value.copy()
    p[varies] = two_sided(difference, error * np.sqrt(shrunk), total)
    if len(positive) < FEW_DATASETS:
        p[varies] = np.maximum(p[varies], two_sided(difference, error, np.inf))
        p = np.maximum(p, alone.p_value)
    return Tested(alone.difference, p)


def fit_scaled_f(values: Floats, freedom: float) -> tuple[float, float]:
    """The scale and the second degrees of freedom of `scale · F(freedom, ·)`, by likelihood.

    Values are positive. The best scale for given degrees of freedom is a root, the best degrees
    of freedom a search. They are at most 1000: beyond, no sample tells them from infinitely many.
    """
    values = np.sort(values)  # so that rounding does not depend on the order of datasets
    unit, half = float(values.mean()), 0.5 * freedom

    def ratios(log_scale: float, second: float) -> Floats:
        return values * (freedom / (unit * second * math.exp(log_scale)))

    def slope(log_scale: float, second: float) -> float:
        r = ratios(log_scale, second)
        return float((half + 0.5 * second) * np.mean(r / (1.0 + r)) - half)

    def best_scale(second: float) -> float:
        return float(optimize.brentq(slope, -100.0, 100.0, args=(second,), xtol=1e-10))

    def loss(log_second: float) -> float:
        second = math.exp(log_second)
        log_scale = best_scale(second)
        grown = np.log1p(ratios(log_scale, second)).mean()
        beta = special.betaln(half, 0.5 * second)
        return float(beta + half * (log_second + log_scale) + (half + 0.5 * second) * grown)

    found = optimize.minimize_scalar(
        loss, bounds=(-5.0, math.log(1000.0)), method="bounded", options={"xatol": 1e-6}
    )
    second = math.exp(found.x)
    return math.exp(best_scale(second)) * unit, second
