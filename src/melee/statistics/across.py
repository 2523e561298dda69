"""Explorers across datasets: relative rewards, mean differences, signed ranks, average ranks.

Datasets of one family resemble each other (79 of the paper's are variants of one simulation), so
counting each of them as independent evidence would claim too much. Mean differences weigh all
datasets alike but take their error from the families; rank statistics count a family once.

All assume that runs on datasets of different families are independent. Runs that share the seed
of their exploration share its luck: with one seed for all of the paper's datasets, explorers
differed from themselves at the 5 % level in 26 % of the cases (25 of 96), with a seed for each
dataset in 2 % (1 of 48). So give every dataset random numbers of its own.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats, Ints
from melee.benchmark.results import Results
from melee.errors import InputError, unknown
from melee.extras import needed
from melee.statistics.inputs import check_level, comparable, families, family_means
from melee.statistics.paired import two_sided

with needed("comparing explorers", "bench"):
    from scipy import special, stats


def relative_rewards(results: Results) -> Floats:
    """Mean rewards moved to [0, 1] by the worst and the best explorer of each dataset.

    Shape (complete datasets, explorers). Where all are equal, all are best: 1.
    """
    comparable(results)
    return min_max(results.mean_rewards())


def min_max(rewards: Floats) -> Floats:
    """Each row from its smallest (0) to its largest (1); rows of one value become 1.

    >>> min_max(np.array([[0.2, 0.8, 0.5], [0.4, 0.4, 0.4]]))
    array([[0. , 1. , 0.5],
           [1. , 1. , 1. ]])
    """
    low, high = rewards.min(axis=1, keepdims=True), rewards.max(axis=1, keepdims=True)
    flat = high == low
    return np.where(flat, 1.0, (rewards - low) / np.where(flat, 1.0, high - low))


def cdf(relative: Floats, at: npt.ArrayLike | None = None) -> Floats:
    """The paper's CDF: the share of datasets with at least this relative reward.

    Parameters
    ----------
    relative
        Relative rewards, shape (datasets, explorers).
    at
        Where to evaluate it; 0, 0.01, ..., 1 when left out. The result has a row for each.

    Examples
    --------
    >>> cdf(np.array([[0.0, 1.0], [0.6, 1.0]]), at=[0.0, 0.5, 1.0])
    array([[1. , 1. ],
           [0.5, 1. ],
           [0. , 1. ]])
    """
    points = np.linspace(0.0, 1.0, 101) if at is None else np.asarray(at, dtype=np.float64)
    ordered = np.sort(relative, axis=0)
    below = [np.searchsorted(column, points, side="left") for column in ordered.T]
    return 1.0 - np.stack(below, axis=1) / len(relative)


@dataclass(frozen=True)
class MeanDifference:
    """Mean reward of `row` minus that of `column` over datasets, with a confidence interval."""

    row: str
    column: str
    mean: float
    low: float
    high: float
    p_value: float


def mean_differences(
    results: Results, level: float = 0.05, values: Floats | None = None
) -> list[MeanDifference]:
    """Mean difference of every pair of explorers, with intervals clustered by family.

    Their confidence is 1 - level. Every dataset weighs the same. `values`, such as shares, of
    complete datasets (rows) and explorers, are compared in place of mean rewards.
    """
    check_level(level)
    names, member = families(results)
    if len(names) < 2:
        raise InputError(
            f"all complete datasets belong to one family, '{names[0]}'; the error of a mean over "
            "families needs at least 2: add datasets of another family"
        )
    rewards = results.mean_rewards() if values is None else values
    i, j = np.triu_indices(len(results.explorers), k=1)
    mean, error, freedom = clustered_mean(rewards[:, i] - rewards[:, j], member)
    margin = error * special.stdtrit(freedom, 1.0 - level / 2.0)
    p = two_sided(mean, error, freedom)
    pairs = itertools.combinations(results.explorers, 2)
    return [
        MeanDifference(*pair, float(m), float(m - e), float(m + e), float(p_value))
        for pair, m, e, p_value in zip(pairs, mean, margin, p, strict=True)
    ]


class ClusteredMean(NamedTuple):
    """Means, their standard errors, and the degrees of freedom of these."""

    mean: Floats
    error: Floats
    freedom: float


def clustered_mean(values: Floats, cluster: Ints) -> ClusteredMean:
    """Column means whose errors allow for dependence within clusters of rows.

    Bell and McCaffrey's (2002) correction: residuals are scaled for the weight of their cluster
    (CR2) and the degrees of freedom are Satterthwaite's. With clusters of equal size this is the
    usual estimate with G - 1 degrees of freedom. With one cluster holding a third of the rows,
    as in the paper's suite, the usual 95 % interval misses in 7 to 12 % of the cases, this one
    in 3 to 5 %.

    Parameters
    ----------
    values
        Shape (rows, columns).
    cluster
        The number of each row's cluster, from 0; at least two clusters.

    Examples
    --------
    >>> values = np.array([[1.0], [1.0], [3.0], [3.0]])
    >>> mean, error, freedom = clustered_mean(values, np.array([0, 0, 1, 1]))
    >>> mean, error, round(freedom, 6)
    (array([2.]), array([1.]), 1.0)
    """
    n, sizes = len(values), np.bincount(cluster)
    mean = values.mean(axis=0)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, cluster, values - mean)
    free = 1.0 - sizes / n  # what is left of a cluster's residuals after fitting the mean
    error = np.sqrt((sums**2 / free[:, None]).sum(axis=0)) / n
    # Covariance of the scaled sums if rows were independent with variance 1.
    u = sizes / np.sqrt(n * free)
    covariance = -np.outer(u, u)
    np.fill_diagonal(covariance, sizes)
    return ClusteredMean(mean, error, float(n**2 / (covariance**2).sum()))


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test of two explorers over families of datasets.

    `difference` is the median of the families' differences, row minus column; `corrected` is
    the p-value after Holm's correction for all pairs asked for.
    """

    row: str
    column: str
    difference: float
    p_value: float
    corrected: float


def wilcoxon_holm(
    results: Results, reference: str | None = None, values: Floats | None = None
) -> list[SignedRank]:
    """Wilcoxon's test for every pair, or of every other explorer against a reference.

    One mean per family; families without a difference are left out, as Wilcoxon did. At least 6
    families must differ before any p-value can be below 0.05. `values` as in `mean_differences`.
    """
    means = family_means(results, values)
    names = results.explorers
    if reference is not None and reference not in names:
        raise unknown("explorer", reference, names)
    pairs = [
        (i, j)
        for i, j in itertools.permutations(range(len(names)), 2)
        if (i < j if reference is None else names[j] == reference)
    ]
    apart = [np.round(means[:, i] - means[:, j], 12) for i, j in pairs]
    p = np.array(
        [
            float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0
            for differences in apart
        ]
    )
    return [
        SignedRank(names[i], names[j], float(np.median(differences)), float(raw), float(corrected))
        for (i, j), differences, raw, corrected in zip(pairs, apart, p, holm(p), strict=True)
    ]


def least_p_value(n_families: int) -> float:
    """The smallest two-sided p-value that Wilcoxon's signed-rank test can give with so many.

    All differences have one sign then, which happens by chance once in 2^(n - 1) times.

    >>> least_p_value(5), least_p_value(6)
    (0.0625, 0.03125)
    """
    return float(min(1.0, 2.0 ** (1 - n_families)))


def holm(p_values: Floats) -> Floats:
    """Holm's correction: below a level, all such claims are right but with that probability.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p_values)
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected


def average_ranks(results: Results) -> Floats:
    """The mean rank of every explorer over families, 1 the best; ties share their ranks."""
    ranks = stats.rankdata(-family_means(results), axis=1)
    return np.asarray(ranks.mean(axis=0), dtype=np.float64)


def critical_difference(n_datasets: int, n_explorers: int, level: float = 0.05) -> float:
    """Nemenyi's critical difference of average ranks (Demšar, 2006).

    >>> print(f"{critical_difference(14, 4):.2f}")
    1.25
    """
    check_level(level)
    if n_datasets < 1 or n_explorers < 2:
        raise InputError(
            f"a critical difference was asked for {n_explorers} explorers on {n_datasets} "
            "datasets; it needs at least 2 on at least 1"
        )
    q = float(stats.studentized_range.ppf(1.0 - level, n_explorers, np.inf)) / np.sqrt(2.0)
    return float(q * np.sqrt(n_explorers * (n_explorers + 1) / (6.0 * n_datasets)))


@dataclass(frozen=True)
class RankDiagram:
    """What a critical-difference diagram shows, explorers from best to worst.

    `cliques` are the groups that a bar connects: as large as possible, none of its members
    significantly different from another.
    """

    explorers: list[str]
    ranks: list[float]
    critical_difference: float
    cliques: list[list[str]]
    n_families: int


def rank_diagram(results: Results, level: float = 0.05) -> RankDiagram:
    """Average ranks over families with Nemenyi's critical difference and its cliques."""
    ranks, n_families = average_ranks(results), len(families(results)[0])
    critical = critical_difference(n_families, len(ranks), level)
    order = np.argsort(ranks, kind="stable")
    names = [results.explorers[i] for i in order]
    return RankDiagram(
        names,
        [float(rank) for rank in ranks[order]],
        critical,
        [names[first : last + 1] for first, last in cliques(ranks[order], critical)],
        n_families,
    )


def cliques(ranks: Floats, critical: float) -> list[tuple[int, int]]:
    """First and last of each largest group of sorted ranks within the critical difference.

    >>> cliques(np.array([1.0, 1.5, 2.5, 4.5]), critical=1.2)
    [(0, 1), (1, 2)]
    """
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = int(np.searchsorted(ranks, rank + critical, side="left")) - 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found
