import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from melee.benchmark.results import Results
from melee.errors import InputError, UnknownNameError
from melee.statistics import (
    Share,
    a_a,
    check_levels,
    compare_pairs,
    outcomes,
    together,
    win_loss_matrix,
)
from melee.statistics.matrix import TESTS, differences_on, p_values, stack
from tests.statistics.made import cell, drawn

BOTH = pytest.mark.parametrize("test", TESTS)
SEEDS = st.integers(0, 10_000)


def slow_pairs(results, level):
    """The paper's test by SciPy, one pair and dataset at a time."""
    for row, column in itertools.combinations(results.explorers, 2):
        counts = [0, 0, 0]
        for dataset in results.complete_datasets():
            a, b = (
                np.concatenate([results.cell(dataset, one, seed).rewards for seed in results.seeds])
                for one in (row, column)
            )
            different = (a != b).any() and stats.ttest_rel(a, b).pvalue < level
            counts[0 if different and a.mean() > b.mean() else 1 if different else 2] += 1
        yield row, column, *counts


@pytest.mark.parametrize("seed", range(3))
def test_pairs_agree_with_scipy(seed):
    results = drawn(seed, n_datasets=12, n_explorers=4)
    found = [(p.row, p.column, p.wins, p.losses, p.ties) for p in compare_pairs(results)]
    assert found == list(slow_pairs(results, 0.01))
    assert sum(one[3] for one in found) > 0


def test_p_values_of_rounds_agree_with_scipy():
    rng = np.random.default_rng(0)
    runs = [[rng.random(7), rng.random(9)] for _ in range(4)]
    found = p_values(stack([differences_on("d", runs)]), "rounds")[0]
    pooled = [np.concatenate(run) for run in runs]
    expected = [stats.ttest_rel(a, b).pvalue for a, b in itertools.combinations(pooled, 2)]
    assert_allclose(found, expected, rtol=1e-9)


def test_differences_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    runs = [[rng.random(4), rng.random(6)] for _ in range(3)]
    per_seed, mean, variance, n = differences_on("d", runs)
    for i, (a, b) in enumerate(itertools.combinations(runs, 2)):
        apart = np.concatenate(a) - np.concatenate(b)
        assert_allclose(per_seed[i], [np.mean(x) - np.mean(y) for x, y in zip(a, b, strict=True)])
        assert_allclose([mean[i], variance[i]], [apart.mean(), apart.var(ddof=1)])
    assert n == 10


@BOTH
@settings(max_examples=10)
@given(seed=SEEDS)
def test_the_matrix_holds_the_pairs_and_its_net_is_antisymmetric(test, seed):
    results = drawn(seed)
    wins, net = win_loss_matrix(results, test=test)
    assert (net == -net.T).all()
    assert (wins + wins.T <= len(results.datasets)).all()
    pairs = compare_pairs(results, test=test)
    for pair, (i, j) in zip(pairs, itertools.combinations(range(3), 2), strict=True):
        assert (pair.row, pair.column) == (results.explorers[i], results.explorers[j])
        assert (pair.wins, pair.losses, pair.net) == (wins[i, j], wins[j, i], net[i, j])
        assert pair.wins + pair.losses + pair.ties == len(results.datasets)


@BOTH
@settings(max_examples=10)
@given(seed=SEEDS, order=st.permutations(range(6)))
def test_order_of_datasets_does_not_matter(test, seed, order):
    there, back = drawn(seed), drawn(seed, datasets=order)
    assert (win_loss_matrix(there, test=test).wins == win_loss_matrix(back, test=test).wins).all()


@BOTH
def test_order_of_explorers_renames_the_matrix(test):
    results = drawn(0, n_datasets=10)
    turned = Results.of(sorted(results, key=lambda one: one.explorer, reverse=True))
    assert turned.explorers == results.explorers[::-1]
    expected = outcomes(results, test=test)[:, ::-1, ::-1]
    found = outcomes(turned, test=test)
    again = [results.datasets.index(name) for name in turned.datasets]
    assert (found == expected[again]).all()


@BOTH
def test_an_explorer_that_is_always_right_beats_one_that_is_always_wrong(test):
    cells = [
        cell("d", name, seed, np.full(5, reward))
        for name, reward in {"right": 1.0, "wrong": 0.0, "right too": 1.0}.items()
        for seed in range(3)
    ]
    found = compare_pairs(Results.of(cells), test=test)
    assert [(pair.wins, pair.losses, pair.ties) for pair in found] == [
        (1, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
    ]


def test_a_lower_level_calls_fewer_differences():
    results = drawn(1, n_datasets=20)
    calls = [np.abs(outcomes(results, level)).sum() for level in (0.001, 0.01, 0.2)]
    assert calls[0] < calls[1] < calls[2]


def test_incomplete_datasets_are_left_out():
    cells = [*drawn(2, n_explorers=2), cell("broken", "e0", 0, [], problem="no such file")]
    assert (
        sum(vars(compare_pairs(Results.of(cells))[0])[k] for k in ("wins", "losses", "ties")) == 6
    )


@BOTH
def test_what_cannot_be_compared_is_refused_with_a_way_out(test):
    with pytest.raises(InputError, match="hold 1 explorer; a comparison needs at least 2"):
        compare_pairs(drawn(0, n_explorers=1), test=test)
    failed = Results.of([cell("d", name, 0, [], problem="broken") for name in "ab"])
    with pytest.raises(InputError, match=r"none of the 1 datasets has a run of all 2 explorers"):
        compare_pairs(failed, test=test)
    unequal = Results.of(
        cell("d", name, s, np.ones(n)) for name, n in [("a", 3), ("b", 4)] for s in (0, 1)
    )
    with pytest.raises(InputError, match=r"dataset d: its runs have 3 to 4 rounds; .* same rows"):
        compare_pairs(unequal, test=test)
    with pytest.raises(InputError, match=r"level is 1\.5; expected a number between 0 and 1"):
        compare_pairs(drawn(0), 1.5, test)


def test_one_seed_is_enough_for_rounds_but_not_for_seeds():
    results = drawn(0, n_seeds=1)
    assert len(compare_pairs(results)) == 3
    with pytest.raises(InputError, match="given 1 seed; it needs at least 2, better 5: run more"):
        compare_pairs(results, test="seeds")
    with pytest.raises(UnknownNameError, match="unknown test 'round'; did you mean 'rounds'"):
        compare_pairs(results, test="round")  # type: ignore[arg-type]


# --- the A/A check ----------------------------------------------------------------------------


def lucky_runs(rng, n_datasets=150, n_seeds=3, n_rounds=150, luck=0.1):
    """Independent rounds around a chance that each run draws for itself."""
    return {
        f"d{d}": [
            (rng.random(n_rounds) < rng.uniform(0.5 - luck, 0.5 + luck)) * 1.0
            for _ in range(n_seeds)
        ]
        for d in range(n_datasets)
    }


def test_without_luck_both_tests_hold_their_level():
    rng = np.random.default_rng(0)
    check = together(a_a(lucky_runs(rng, luck=0.0), lucky_runs(rng, luck=0.0)) for _ in range(10))
    for found in (check.rounds, check.seeds):
        assert stats.binomtest(found.count, 1500, 0.01).pvalue > 0.001


def test_luck_that_lasts_fools_the_papers_test_but_not_the_one_over_seeds():
    rng = np.random.default_rng(1)
    check = together(a_a(lucky_runs(rng), lucky_runs(rng)) for _ in range(10))
    assert check.rounds.interval[0] > 0.1
    assert stats.binomtest(check.seeds.count, 1500, 0.01, alternative="greater").pvalue > 0.001


def test_identical_runs_are_counted_and_never_called_different():
    runs = lucky_runs(np.random.default_rng(2), n_datasets=3)
    check = a_a(runs, runs)
    assert (check.n_identical, check.rounds, check.seeds) == (3, Share(0, 3), Share(0, 3))


def test_the_check_of_results_is_that_of_their_rewards():
    results, again = drawn(0, n_datasets=8), drawn(1, n_datasets=7)
    checks = check_levels(results, again, 0.2)
    assert list(checks) == results.explorers
    first, second = (
        {d: [of.cell(d, "e1", s).rewards for s in of.seeds] for d in again.datasets}
        for of in (results, again)
    )
    assert checks["e1"] == a_a(first, second, 0.2)
    assert together(checks.values()).rounds.total == 21


def test_clopper_and_pearsons_interval_agrees_with_scipy():
    for k, n in [(0, 10), (1, 253), (10, 10), (30, 253)]:
        expected = stats.binomtest(k, n).proportion_ci(0.95, "exact")
        assert_allclose(Share(k, n).interval, expected, rtol=1e-9)
        assert Share(k, n).share == k / n


def test_runs_that_do_not_match_are_refused():
    runs = lucky_runs(np.random.default_rng(3), n_datasets=3)
    fewer, once = dict(list(runs.items())[:2]), {name: runs[name][:1] for name in runs}
    with pytest.raises(InputError, match="given 3 and 2 datasets, 2 of them the same; give both"):
        a_a(runs, fewer)
    with pytest.raises(InputError, match="given 0 and 0 datasets"):
        a_a({}, {})
    with pytest.raises(InputError, match="given from 2 to 3 seeds a dataset"):
        a_a(runs, runs | {"d0": runs["d0"][:2]})
    with pytest.raises(InputError, match="given 1 seed; it needs at least 2"):
        a_a(once, once)
    with pytest.raises(InputError, match="of 3 explorers under 2 seeds and of 2 under 2; repeat"):
        check_levels(drawn(0), drawn(0, n_explorers=2))
    failed = Results.of([cell("d", f"e{e}", s, [], problem="x") for e in range(3) for s in (0, 1)])
    with pytest.raises(InputError, match="no dataset is complete in both"):
        check_levels(drawn(0), failed)
    with pytest.raises(InputError, match=r"at 2 levels \[0.01, 0.05\]; give some at one level"):
        together([a_a(runs, runs), a_a(runs, runs, 0.05)])
