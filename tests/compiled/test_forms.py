"""Kernels that are interpreted in another form than they are compiled in: the same bits."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from melee import distributions, growth
from melee.compiled import kernels
from melee.explorers import Problem, candidates, cover, hidden, rescaled, thompson
from melee.explorers.cover import Cover
from melee.learners import adaptive, forest, interface, linear, offers
from melee.learners.adaptive import AdaptiveDiagonalLearner, AdaptiveLearner
from melee.learners.ridge import DiagonalRidge, Ridge
from melee.learners.sgd import Sgd
from melee.rng import stream, uniform, uniforms
from melee.scaling import Scaling, scale_row, standardize, usable
from melee.states import arrays_of, copy_state
from tests.forms import compiled

SIZES = pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 70])


def random(*shape, seed=0):
    """Numbers of many sizes, some of them zero, some of those negative zeros."""
    rng = np.random.default_rng([seed, *shape])
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, size=shape)
    values[rng.random(shape) < 0.1] = 0.0
    values[rng.random(shape) < 0.05] = -0.0
    return values


def symmetric(n, seed=0):
    values = random(n, n, seed=seed)
    return (values + values.T)[None]


def same(function, *args):
    """All forms, with arguments of their own, agree in results and in what they overwrite.

    Three of them: what is interpreted, what is compiled, and what is compiled as it is written.
    """
    written = kernels.compiled_form(function, *map(type, args[:2]))
    results = []
    for form in (compiled(function), function, written):
        own = [copy_state(a) if isinstance(a, tuple | np.ndarray) else a for a in args]
        with np.errstate(all="ignore"):  # as machine code
            results.append((form(*own), *arrays_of(tuple(own))))
    for result, *arrays in results[1:]:
        assert result == results[0][0]
        for one, other in zip(arrays, results[0][1:], strict=True):
            assert_array_equal(one.view(np.uint8), other.view(np.uint8))


@SIZES
def test_sums_of_products(n):
    a, b = random(3, n), random(n, seed=1)
    same(linear.dot, a[0], b)
    same(linear.dot_row, a, 1, b)
    for n_rows in (0, 2):
        same(linear.dot_rows, a, 1, b, np.zeros(n_rows))
    same(linear.add_to_row, a, 1, b, 0.3)
    same(linear.quadratic_form, symmetric(n), 0, b)
    b[: n - n // 3] = 0.0  # which are skipped
    same(linear.quadratic_form, symmetric(n), 0, b)


@SIZES
def test_a_step_of_ridge(n):
    for ridge in (Ridge.start(2, n, 0.3), DiagonalRidge.start(2, n, 0.3)):
        for i in range(5):
            x, error = np.clip(random(n, seed=i), -5, 5), 0.3 * i - 0.5
            x[: n // 2] *= i % 2  # zeros are skipped
            same(interface.gain, ridge, x, 1, 1.0 + i)
            same(interface.correct, ridge, x, 1, error, 1.0 + i)
            interface.correct(ridge, x, 1, error, 1.0 + i)
        same(interface.predict_all, ridge, x, 0, np.zeros(2))
        same(interface.note_diagonal, ridge, np.zeros((2, n)), 1)
        for most in (0.1, 100.0):
            same(interface.fade, ridge, 1, 0.1, most)


@pytest.mark.parametrize("kind", [AdaptiveLearner, AdaptiveDiagonalLearner])
@pytest.mark.parametrize("n", [2, 5, 9, 70])
def test_a_step_of_the_adaptive_learner(n, kind):
    learner = kind().start_widened(3, n, n // 3)
    for i in range(6):
        x = np.append(np.clip(random(n - 1, seed=i), -5, 5), 1.0)
        same(interface.observe, learner, x, i % 2, 0.3 * i - 0.5, 1.0 + i)
        same(interface.correct, learner, x, i % 2, 0.3 * i - 0.5, 1.0 + i)
        interface.observe(learner, x, i % 2, 0.3 * i - 0.5, 1.0 + i)
        for row in range(3):
            same(interface.predict, learner, x, row)
            same(interface.spread, learner, x, row)
            same(interface.spread_guess, learner, x, row)
        same(interface.predict_all, learner, x, 1, np.zeros(2))
        same(interface.spread_guess_all, learner, x, 1, np.zeros(2))
        same(adaptive.add_predictions, learner.wide, x, 1, 0.3, 0.5, random(2))


def forest_of(n, n_models, n_features, seed=0):
    """Rounds of some contexts, some of them yes or no, one constant; the last model has none."""
    rng = np.random.default_rng([seed, n, n_models, n_features])
    trees = forest.Forest.start(n_models, n_features, forest.TREES)
    contexts = rng.normal(size=(n_features, n))
    contexts[1::3] = contexts[1::3] > 0.3
    contexts[2::3] = 0.25
    trees.kept[0] = n
    trees.contexts[:, :n] = contexts
    trees.models[:n] = rng.integers(max(n_models - 1, 1), size=n)
    trees.targets[:n] = (contexts[0] > 0.2) * (trees.models[:n] + 1.0) + 0.3 * rng.normal(size=n)
    trees.weights[:n] = rng.choice([0.1, 0.5, 1.0, 3.0], n)
    return trees, rng.normal(size=n_models), 1.0 + 9.0 * rng.random(n_models)


def same_forest(function, forest_, *args, looked_at=()):
    """The same of a forest, whose scratch means nothing but for some."""
    written = kernels.compiled_form(function, *map(type, (forest_, *args)[:2]))
    results = []
    for form in (compiled(function), function, written):
        own = [copy_state(a) if isinstance(a, tuple | np.ndarray) else a for a in (forest_, *args)]
        with np.errstate(all="ignore"):  # as machine code
            result = form(*own)
        lasting = growth.arrays(own[0], lasting=True)
        scratch = [getattr(own[0], name) for name in looked_at]
        results.append((result, *lasting, *scratch, *arrays_of(tuple(own[1:]))))
    for result, *arrays in results[1:]:
        assert result == results[0][0]
        for one, other in zip(arrays, results[0][1:], strict=True):
            assert_array_equal(one.view(np.uint8), other.view(np.uint8))
    return results[1][0]


FORESTS = pytest.mark.parametrize(
    ("n", "n_models", "n_features"),
    [(1, 1, 1), (12, 2, 3), (64, 3, 1), (64, 1, 5), (100, 20, 9), (300, 4, 3), (2048, 7, 6)],
)


@FORESTS
def test_a_node_of_a_tree(n, n_models, n_features):
    trees, average, known = forest_of(n, n_models, n_features)
    same_forest(forest.begin, trees, average, looked_at=["order", "excess"])
    forest.begin(trees, average)
    trees.order[:n] = np.random.default_rng(n).permutation(n)
    for node, (first, last) in enumerate([(0, n), (n // 3, n), (n // 2, n // 2 + 1)]):
        same_forest(forest.enter, trees, first, last, looked_at=["parts", "whose", "sums"])
        forest.enter(trees, first, last)
        trees.said[:, node] = trees.said[:, 0]  # that of the node above
        same_forest(forest.estimate, trees, node, known, looked_at=["said"])
        forest.estimate(trees, node, known)
        trees.cut[:] = 0.0, trees.contexts[0, trees.order[first]]
        same_forest(forest.divide, trees, first, last, looked_at=["order"])


@pytest.mark.parametrize("fewest", [1, 5, 30])
@FORESTS
def test_the_best_cut(n, n_models, n_features, fewest):
    trees, average, _ = forest_of(n, n_models, n_features, seed=1)
    forest.begin(trees, average)
    for first in (0, n // 3):
        forest.enter(trees, first, n)
        asked = trees, first, n, fewest, 1e-9
        found = same_forest(forest.best_cut, *asked, looked_at=["key"])
        assert found == (n - first >= 2 * fewest and n > 1)
        if found:
            same_forest(forest.best_cut, *asked, looked_at=["cut"])
    trees.excess[:] = 0.0
    forest.enter(trees, 0, n)
    assert not same_forest(forest.best_cut, trees, 0, n, fewest, 1e-9, looked_at=["key"])


@FORESTS
def test_whole_trees(n, n_models, n_features):
    trees, average, known = forest_of(n, n_models, n_features, seed=2)
    for tree in range(0, forest.TREES, 3):
        same_forest(forest.grow, trees, tree, average, known, 1e-9)
    with np.errstate(over="ignore"):
        for tree in range(forest.TREES):
            forest.grow(trees, tree, average, known, 1e-9)
    assert forest.is_grown(trees) == (n >= 2 * forest.LEAST)
    for x in trees.contexts.T[:3]:
        x = np.append(x, 1.0)
        same_forest(forest.find, trees, x, looked_at=["at"])
        forest.find(trees, x)
        for table in (trees.values, trees.doubts):
            for first in (0, n_models - 1):
                out = random(n_models - first)
                same_forest(forest.add_average, trees, table, first, 0.3, out)
        for weight in (0.25, 3.0):
            same_forest(forest.take, trees, x, n_models - 1, 0.3, weight)
    same_forest(forest.trust_less, trees, 0.1)


@SIZES
def test_uniform_numbers_at_once(n):
    one, other = stream(3, "exploration"), stream(3, "exploration")
    with np.errstate(over="ignore"):
        assert [uniform(one) for _ in range(n)] == uniforms(other, n).tolist()
    assert_array_equal(one, other)


@pytest.mark.parametrize("logistic", [False, True])
@SIZES
def test_a_step_of_gradient_descent(n, logistic):
    sgd = Sgd(random(3, n), np.array([0.0, 2.0, 7.0]), 0.3, logistic)
    x = np.clip(random(n, seed=1), -5, 5)
    same(interface.correct, sgd, x, 1, -0.7, 3.0)
    same(interface.correct_all, sgd, x, 1, np.array([0.5, -2.0]))
    same(interface.predict_all, sgd, x, 1, np.zeros(2))


@pytest.mark.parametrize("some", [[0], [3], [4, 1], [0, 1, 2, 3, 4]])
def test_predictions_of_open_actions(some):
    n, n_actions, n_blocks = 6, 5, 3
    x = np.append(np.clip(random(n - 1), -5, 5), 1.0)
    offered, n_open = offers.OpenActions(x, np.array(some), n_actions), len(some)
    n_rows = n_blocks * n_actions
    knowing = AdaptiveLearner().start_widened(n_rows, n, 2)
    for row in range(0, n_rows, 2):
        interface.observe(knowing, x, row, 0.1 * row, 1.0)
    for learner in (Sgd(random(n_rows, n), np.zeros(n_rows), 0.3, True), knowing):
        for first, length in ((0, n_open), (n_open, n_open), (0, n_blocks * n_open), (1, 1)):
            same(interface.predict_all, learner, offered, first, np.zeros(length))
            if learner is knowing:
                same(interface.spread_guess_all, learner, offered, first, np.zeros(length))
        for row in range(n_blocks * n_open):
            same(interface.predict, learner, offered, row)
            model = row // n_open * n_actions + some[row % n_open]
            assert offers.choice(offered, row).model == model
            found = interface.predict(learner, offered, row)
            assert found == interface.predict(learner, x, model)


@pytest.mark.parametrize("policies", [1, 2, 5])
def test_how_policies_disagree(policies):
    state = Cover(policies=policies).start(Problem(3, 4))
    state.estimates[:], state.mass[0] = random(4), 1.0 / policies
    state.errors[:] = random(4 * (policies - 1)).round(0)
    same(cover.disagree, state, 0.05)


@SIZES
def test_scaling_and_hidden_units(n):
    scaling = Scaling(np.abs(random(2, n)), 5.0, 0.7)
    x = np.zeros(n + 1)
    same(scale_row, scaling, random(n), x)
    scale_row(scaling, random(n), x)
    units = hidden.Units.draw(n, 9)
    units.used[:] = (3 * np.arange(9) + n) % len(units.columns)
    same(hidden.widen, units, x, np.zeros(n + 10))


@SIZES
@pytest.mark.parametrize("k", [1, 3])
def test_the_worth_of_hidden_units(n, k):
    rng = np.random.default_rng(n)
    table = np.stack([rng.normal(size=4), rng.random(4)])
    past = rng.normal(size=(n, 4)), rng.integers(k, size=n), rng.random(n)
    units, sums, worth = hidden.Units.draw(4, 5), np.zeros((k, 6)), np.zeros(20)
    same(hidden.weigh, units, Scaling(table, 5.0, 0.5), *past, sums, worth)


@pytest.mark.parametrize("n", [2, 3, 9, 40])
def test_pairs_and_records(n):
    sides = [-(i % 2) * (i // 2 + 1) if i % 2 else i // 2 for i in range(n)]
    units = candidates.PairUnits.draw(sides, [i % 3 == 0 for i in range(n)], 40)
    state = candidates.Paired.around(0.0, units, n)
    x, wide = np.append(random(n).clip(-5, 5), 1.0), np.zeros(n + 41)
    same(candidates.join, units, x, wide)
    candidates.join(units, x, state.plain)
    for record in (-1, 3, 3):
        same(candidates.note, state, record, 0.7)
        same(candidates.centre, state, record, wide, np.zeros(4))
        candidates.note(state, record, 0.7)


@pytest.mark.parametrize("n", [1, 2, 3, 16, 40])
def test_standardizing(n):
    rows = random(40, 6)
    rows[:, 2], rows[:, 3] = 0.1, 1e9 + 1e-7 * rows[:, 3]
    same(standardize, rows, n, 0.5, np.zeros((2, 6)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e101, 1.0])
def test_what_can_be_used(bad):
    raw = random(6)
    raw[3] = bad
    same(usable, raw)


@SIZES
def test_sorting_and_copying(n):
    same(distributions.largest, random(n))
    same(thompson.sort, random(n + 2) + 0.0, n)  # zeros of either sign are equal
    same(rescaled.copy_bytes, np.arange(n, dtype=np.uint8), np.zeros(n, np.uint8))


def test_every_other_form_is_tested_here():
    others = {
        form.__name__
        for called, form in kernels.KERNELS.items()
        if called is not form and called not in kernels.IMPLEMENTATIONS
    }
    sums = {"dot", "dot_row", "dot_rows", "quadratic_form", "largest", "disagree"}
    sums |= {
        "add_to_row",
        "add_predictions",
        "ridge_gain",
        "ridge_fade",
        "sgd_step",
        "sgd_correct_all",
        "join",
        "centre",
        "note",
        "predict_all_open",
    }
    forests = {"begin", "enter", "estimate", "best_cut", "divide", "add_average"}
    rest = {"scale_row", "widen", "weigh", "standardize", "usable", "sort", "copy_bytes"}
    assert others == sums | forests | rest
