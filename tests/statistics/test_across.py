import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from melee.benchmark.results import Results
from melee.errors import InputError, UnknownNameError
from melee.statistics import (
    average_ranks,
    cdf,
    critical_difference,
    mean_differences,
    rank_diagram,
    relative_rewards,
    wilcoxon_holm,
)
from melee.statistics.across import cliques, clustered_mean, holm
from melee.statistics.inputs import family_means
from tests.statistics.made import cell, drawn, from_means

SOME = st.lists(
    st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=3, max_size=3),
    min_size=2,
    max_size=8,
)
ALL = [relative_rewards, mean_differences, wilcoxon_holm, average_ranks, rank_diagram]


@pytest.mark.parametrize("statistic", ALL)
def test_what_cannot_be_compared_is_refused_with_a_way_out(statistic):
    with pytest.raises(InputError, match="hold 1 explorer; a comparison needs at least 2"):
        statistic(from_means([[0.1], [0.2]]))
    failed = Results.of([cell("d", name, 0, [], problem="broken") for name in "ab"])
    with pytest.raises(InputError, match=r"none of the 1 datasets .* finish the benchmark"):
        statistic(failed)


# --- relative rewards -------------------------------------------------------------------------


@given(SOME)
def test_relative_rewards_run_from_the_worst_to_the_best(means):
    relative = relative_rewards(from_means(means))
    for row, original in zip(relative, np.array(means), strict=True):
        low, high = original.min(), original.max()
        expected = [(y - low) / (high - low) if high > low else 1.0 for y in original]
        assert_allclose(row, expected, atol=1e-9)


@given(SOME)
def test_the_cdf_counts_the_datasets_with_at_least_that_reward(means):
    relative = relative_rewards(from_means(means))
    points = [0.0, 0.25, 0.5, 0.999, 1.0, *relative[0]]
    expected = [[(column >= x).mean() for column in relative.T] for x in points]
    assert_allclose(cdf(relative, points), expected, atol=1e-12)
    assert (cdf(relative)[0] == 1.0).all()
    assert cdf(relative).shape == (101, 3)
    assert (np.diff(cdf(relative), axis=0) <= 0.0).all()


# --- mean differences -------------------------------------------------------------------------


def test_the_clustered_mean_agrees_with_statsmodels():
    # statsmodels 0.15.0:
    #   sm.OLS(values, np.ones(12)).fit(cov_type="cluster", use_t=True,
    #       cov_kwds={"groups": cluster, "df_correction": True}), .params, .bse, .conf_int()
    rng = np.random.default_rng(7)
    values, cluster = rng.normal(0.3, 1.0, 12), np.repeat([0, 1, 2, 3], 3)
    mean, error, freedom = clustered_mean(values[:, None], cluster)
    assert_allclose([mean[0], error[0]], [0.20194459539201975, 0.2355373811819319], rtol=1e-12)
    margin = error[0] * stats.t.ppf(0.975, freedom)
    low, high = -0.5476404731066198, 0.9515296638906592
    assert_allclose([mean[0] - margin, mean[0] + margin], [low, high], rtol=1e-9)


def slow_clustered_mean(values, cluster):
    """Bell and McCaffrey (2002) by matrices, for the regression on a constant."""
    n, X = len(values), np.ones((len(values), 1))
    bread = np.linalg.inv(X.T @ X)
    residual_maker = np.eye(n) - X @ bread @ X.T
    residuals, meat, columns = residual_maker @ values, np.zeros((1, 1)), []
    for one in np.unique(cluster):
        rows = cluster == one
        own = residual_maker[np.ix_(rows, rows)]
        eigenvalues, vectors = np.linalg.eigh(own)
        adjust = vectors @ np.diag(np.maximum(eigenvalues, 1e-12) ** -0.5) @ vectors.T
        score = X[rows].T @ adjust @ residuals[rows]
        meat += np.outer(score, score)
        columns.append(residual_maker[:, rows] @ adjust @ X[rows] @ bread)
    G = np.hstack(columns)
    freedom = np.trace(G.T @ G) ** 2 / np.sum((G.T @ G) ** 2)
    return values.mean(), np.sqrt((bread @ meat @ bread)[0, 0]), freedom


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1, 1), (8, 2, 1, 5), (30, *[1] * 20)])
def test_the_clustered_mean_agrees_with_the_definition(sizes):
    rng = np.random.default_rng(len(sizes))
    cluster = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    values = rng.normal(size=len(cluster)) + rng.normal(size=len(sizes))[cluster]
    found = clustered_mean(values[:, None], cluster)
    expected = slow_clustered_mean(values, cluster)
    assert_allclose([found.mean[0], found.error[0], found.freedom], expected, rtol=1e-9)


def test_families_of_one_give_the_ordinary_t_interval():
    means = np.random.default_rng(0).random((9, 2))
    (found,) = mean_differences(from_means(means), level=0.1)
    expected = stats.ttest_rel(*means.T)
    interval = expected.confidence_interval(0.9)
    assert_allclose(found.p_value, expected.pvalue, rtol=1e-9)
    assert_allclose([found.low, found.high], [interval.low, interval.high], rtol=1e-9)
    assert_allclose(found.mean, (means[:, 0] - means[:, 1]).mean())


def test_intervals_of_lopsided_families_cover_as_often_as_they_say():
    rng = np.random.default_rng(1)
    cluster = np.repeat(np.arange(161), [79, *[1] * 160])
    for shared in (0.0, 0.3, 1.0):
        values = np.sqrt(shared) * rng.normal(size=(161, 3000))[cluster]
        values += np.sqrt(1 - shared) * rng.normal(size=(len(cluster), 3000))
        mean, error, freedom = clustered_mean(values, cluster)
        missed = int((np.abs(mean) > error * stats.t.ppf(0.975, freedom)).sum())
        assert stats.binomtest(missed, 3000, 0.05, alternative="greater").pvalue > 0.001
        assert missed > 40


@given(SOME, st.randoms())
def test_order_of_datasets_does_not_matter(means, random):
    order = list(range(len(means)))
    random.shuffle(order)
    families = [f"f{d % 3}" for d in range(len(means))]
    there = from_means(means, families)
    back = from_means([means[d] for d in order], [families[d] for d in order])
    for statistic in (mean_differences, wilcoxon_holm):
        for a, b in zip(statistic(there), statistic(back), strict=True):
            assert_allclose(list(vars(a).values())[2:], list(vars(b).values())[2:], atol=1e-7)
    assert_allclose(average_ranks(there), average_ranks(back), atol=1e-9)


def test_one_family_has_no_interval():
    with pytest.raises(
        InputError, match=r"belong to one family, 'fri'; .* add datasets of another"
    ):
        mean_differences(from_means([[0.1, 0.2], [0.3, 0.4]], ["fri", "fri"]))


# --- signed ranks -----------------------------------------------------------------------------


def test_wilcoxon_agrees_with_scipy_on_family_means():
    means = np.random.default_rng(2).random((30, 3))
    families = [f"f{max(0, d - 9)}" for d in range(30)]  # the first has 10 members
    results = from_means(means, families)
    by_family = np.vstack([means[:10].mean(axis=0), means[10:]])
    assert_allclose(family_means(results), by_family, atol=1e-11)
    found = wilcoxon_holm(results)
    for one, (i, j) in zip(found, itertools.combinations(range(3), 2), strict=True):
        assert (one.row, one.column) == (f"e{i}", f"e{j}")
        assert_allclose(one.p_value, stats.wilcoxon(by_family[:, i], by_family[:, j]).pvalue)
        assert_allclose(one.difference, np.median(by_family[:, i] - by_family[:, j]), atol=1e-11)
    assert_allclose([one.corrected for one in found], holm(np.array([o.p_value for o in found])))


def test_a_reference_is_compared_with_every_other():
    results = drawn(0, n_explorers=4)
    found = wilcoxon_holm(results, reference="e1")
    assert [(one.row, one.column) for one in found] == [("e0", "e1"), ("e2", "e1"), ("e3", "e1")]
    assert found[0].difference < 0 < found[1].difference
    with pytest.raises(UnknownNameError, match="unknown explorer 'e9'"):
        wilcoxon_holm(results, reference="e9")


@pytest.mark.parametrize("n_datasets", [1, 2, 8])
def test_explorers_that_never_differ_have_a_p_value_of_one(n_datasets):
    (found,) = wilcoxon_holm(from_means([[0.3, 0.3]] * n_datasets))
    assert (found.difference, found.p_value, found.corrected) == (0.0, 1.0, 1.0)


def test_one_dataset_is_no_evidence():
    (found,) = wilcoxon_holm(from_means([[0.3, 0.5]]))
    assert found.p_value == 1.0


def test_holm_agrees_with_statsmodels():
    # statsmodels 0.15.0: multipletests([...], method="holm")[1]
    found = holm(np.array([0.001, 0.2, 0.013, 0.04, 0.04, 0.9]))
    assert_allclose(found, [0.006, 0.4, 0.065, 0.16, 0.16, 0.9])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_holm_lies_between_nothing_and_bonferroni(p_values):
    p = np.array(p_values)
    corrected = holm(p)
    assert (corrected >= p).all()
    assert (corrected <= np.minimum(1.0, len(p) * p) + 1e-15).all()
    assert (np.diff(corrected[np.argsort(p)]) >= 0.0).all()


# --- average ranks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "q_05", "q_10"),  # Demšar (2006), Table 5a
    [
        (2, 1.960, 1.645),
        (3, 2.343, 2.052),
        (4, 2.569, 2.291),
        (7, 2.949, 2.693),
        (10, 3.164, 2.920),
    ],
)
def test_the_critical_difference_is_demsars(k, q_05, q_10):
    unit = np.sqrt(k * (k + 1) / (6 * 14))
    assert_allclose(critical_difference(14, k), q_05 * unit, atol=1.1e-3 * unit)
    assert_allclose(critical_difference(14, k, 0.1), q_10 * unit, atol=1.1e-3 * unit)


def test_a_critical_difference_needs_two_explorers_and_a_dataset():
    for n_datasets, n_explorers in [(0, 3), (5, 1)]:
        with pytest.raises(InputError, match="it needs at least 2 on at least 1"):
            critical_difference(n_datasets, n_explorers)


def test_the_best_has_rank_one_and_equals_share():
    results = from_means([[0.9, 0.5, 0.1], [0.4, 0.4, 0.2]])
    assert average_ranks(results).tolist() == [1.25, 1.75, 3.0]


@given(SOME)
def test_average_ranks_agree_with_scipy_and_sum_to_a_constant(means):
    found = average_ranks(from_means(means))
    assert_allclose(found, np.mean([stats.rankdata(-np.array(row)) for row in means], axis=0))
    assert_allclose(found.sum(), 6.0)


def slow_cliques(ranks, critical):
    """All sets without a significant pair that no other such set contains."""
    n = len(ranks)
    fine = [
        set(chosen)
        for size in range(2, n + 1)
        for chosen in itertools.combinations(range(n), size)
        if max(ranks[i] for i in chosen) - min(ranks[i] for i in chosen) < critical
    ]
    return sorted(sorted(one) for one in fine if not any(one < other for other in fine))


@given(
    st.lists(st.integers(0, 60), min_size=2, max_size=7, unique=True),
    st.integers(1, 40).map(lambda x: x + 0.5),
)
def test_cliques_are_the_largest_sets_without_a_significant_pair(ranks, critical):
    ordered = np.sort(np.array(ranks, dtype=np.float64))
    found = [list(range(first, last + 1)) for first, last in cliques(ordered, critical)]
    assert found == slow_cliques(ordered, critical)


def test_a_rank_diagram_runs_from_best_to_worst():
    means = [[0.1 + d / 100, 0.5 + d / 100, 0.51 + d / 100 * (-1) ** d] for d in range(12)]
    diagram = rank_diagram(from_means(means, [f"f{d // 2}" for d in range(12)]))
    assert diagram.n_families == 6
    assert diagram.explorers[-1] == "e0"
    assert diagram.ranks == sorted(diagram.ranks)
    assert diagram.critical_difference == critical_difference(6, 3)
    assert set(diagram.explorers[:2]) in [set(one) for one in diagram.cliques]
