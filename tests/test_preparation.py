import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee.errors import DataError, InputError
from melee.learners.sgd import Sgd
from melee.loop import simulate
from melee.preparation import LEARNING_RATES, choose, held_out, prepare
from melee.scaling import Scaling, scale_row
from melee.task import Task
from tests import naive
from tests.tasks import blobs, graded

METHODS = pytest.mark.parametrize("method", ["standardize", "minmax"])


def scaled(scaling, raw):
    x = np.empty(len(raw) + 1)
    scale_row(scaling, np.array(raw, dtype=float), x)
    return x


# --- which rows are played ----------------------------------------------------------------------


def test_labelled_rows_are_excluded_from_play(hard_task):
    prepared = prepare(hard_task, seed=3)
    assert len(prepared.labelled) == 30
    together = np.concatenate([prepared.labelled, prepared.order])
    assert_array_equal(np.sort(together), np.arange(hard_task.n_rows))
    # Mark the labelled rows by a reward that no other row has: no run ever earns it.
    rewards = hard_task.rewards * 0.5
    rewards[prepared.labelled] = 1.0
    marked = replace(prepared, task=Task("marked", hard_task.contexts, rewards))
    assert simulate(marked, "uniform", seed=3).rewards.max() <= 0.5


def test_datasets_of_one_size_are_shuffled_apart_under_one_seed(hard_task):
    other = Task("other", hard_task.contexts[::-1], hard_task.rewards[::-1])
    assert (prepare(hard_task, seed=3).order != prepare(other, seed=3).order).any()
    runs = [simulate(replace(prepare(hard_task), task=t), "uniform") for t in (hard_task, other)]
    assert (runs[0].actions != runs[1].actions).any()


def test_the_order_is_shuffled_and_depends_on_the_seed_and_the_content(hard_task):
    first, again, other = (prepare(hard_task, seed=seed) for seed in (3, 3, 4))
    assert_array_equal(first.order, again.order)
    assert_array_equal(first.labelled, again.labelled)
    assert (first.order != other.order).any()
    assert (np.diff(first.order) < 0).any()


def test_rows_of_an_ordered_task_keep_their_order(hard_task):
    ordered = Task("t", hard_task.contexts, hard_task.rewards, ordered=True)
    for seed in (3, 4):
        prepared = prepare(ordered, seed=seed, max_rounds=50)
        assert_array_equal(prepared.labelled, np.arange(30))
        assert_array_equal(prepared.order, np.arange(30, 80))


def test_max_rounds_stops_early_and_changes_nothing_else(hard_task):
    whole, part = prepare(hard_task), prepare(hard_task, max_rounds=50)
    assert part.n_rounds == 50
    assert_array_equal(part.order, whole.order[:50])
    assert_array_equal(part.labelled, whole.labelled)
    assert prepare(hard_task, max_rounds=10**6).n_rounds == whole.n_rounds
    run, longer = (simulate(hard_task, "softmax", max_rounds=n) for n in (50, None))
    assert_array_equal(run.actions, longer.actions[:50])


def test_without_labelled_rows_features_are_used_as_they_come(hard_task):
    prepared = prepare(hard_task, n_labelled=0)
    assert prepared.n_rounds == hard_task.n_rows
    assert (prepared.method, prepared.learning_rate) == ("none", 0.1)
    assert_array_equal(scaled(prepared.scaling, hard_task.contexts[5])[:-1], hard_task.contexts[5])


# --- scaling ------------------------------------------------------------------------------------


def test_scaling_takes_its_statistics_from_the_labelled_rows_only(hard_task):
    prepared = prepare(hard_task, seed=2)
    rows = hard_task.contexts[prepared.labelled]
    alone = Scaling.fit(rows, prepared.method)
    assert_array_equal(prepared.scaling.shift_scale, alone.shift_scale)
    chosen = choose(rows, hard_task.rewards[prepared.labelled])
    assert chosen == (prepared.method, prepared.learning_rate)


@METHODS
def test_scaled_rows_agree_with_the_definition(method, hard_task):
    train, rows = hard_task.contexts[:30], hard_task.contexts[30:]
    scaling = Scaling.fit(train, method)
    ours = np.array([scaled(scaling, row) for row in rows])
    assert_allclose(ours, naive.scaled(train, rows, method), atol=1e-12)
    prepared = prepare(hard_task)
    expected = naive.scaled(
        hard_task.contexts[prepared.labelled], hard_task.contexts[prepared.order], prepared.method
    )
    assert_allclose(prepared.inputs(prepared.order), expected, atol=1e-12)


def test_standardized_rows_have_mean_zero_and_variance_one():
    train = np.random.default_rng(0).normal(7, 3, size=(30, 2))
    x = np.array([scaled(Scaling.fit(train, "standardize"), row) for row in train])[:, :2]
    assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    assert_allclose(x.var(axis=0), 1 / 2)  # every value is divided by √2, for two features


def test_minmax_rows_run_from_zero_to_one():
    train = np.random.default_rng(0).normal(7, 3, size=(30, 1))
    x = np.array([scaled(Scaling.fit(train, "minmax"), row) for row in train])[:, 0]
    assert (x.min(), x.max()) == (0, pytest.approx(1))


@METHODS
def test_values_beyond_five_are_cut(method):
    scaling = Scaling.fit(np.random.default_rng(0).normal(size=(30, 4)), method)
    assert_allclose(scaled(scaling, [1e9, -1e9, 1e300, -1e300]), [2.5, -2.5, 2.5, -2.5, 1])


@METHODS
@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e6 + 0.1, 1e-300, 1e100])
def test_a_constant_column_is_only_shifted(method, value):
    train = np.column_stack([np.full(30, value), np.arange(30.0)])
    x = scaled(Scaling.fit(train, method), [value, 3.0])
    assert np.isfinite(x).all()
    assert abs(x[0]) < 1e-6
    assert abs(scaled(Scaling.fit(train, method), [value + 1, 3.0])[0]) <= 5 / math.sqrt(2)


@METHODS
@pytest.mark.parametrize("size", [1e-100, 1e-9, 1e9, 1e100])
def test_columns_of_any_size_are_scaled_to_finite_numbers(method, size):
    train = np.random.default_rng(1).normal(size=(30, 2)) * size
    scaling = Scaling.fit(train, method)
    x = np.array([scaled(scaling, row) for row in train])
    assert np.isfinite(x).all()
    assert (np.ptp(x[:, :2], axis=0) > 0.5).all()


# --- cross-validation ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_chosen_pair_is_the_best_of_a_naive_cross_validation(seed):
    rng = np.random.default_rng(seed)
    task = (
        graded(30, n_actions=3, n_features=4, seed=seed)
        if seed % 2
        else blobs(30, n_actions=2 + seed, n_features=2, seed=seed, distance=rng.uniform(0.5, 3))
    )
    scores = naive.cross_validation(task.contexts, task.rewards)
    assert choose(task.contexts, task.rewards) == min(scores, key=lambda pair: scores[pair])
    assert len({scores[pair] for pair in scores}) > 5


@METHODS
def test_folds_earn_and_err_what_a_naive_cross_validation_says(method, hard_task):
    contexts, rewards = hard_task.contexts[:30], hard_task.rewards[:30]
    scores = naive.cross_validation(contexts, rewards)
    folds = np.arange(30) % 3
    for rate in LEARNING_RATES:
        earned = squared = 0.0
        for fold in range(3):
            x = naive.scaled(contexts[folds != fold], contexts, method)
            result = held_out(Sgd.start(5, 5, rate, False), x, rewards, folds != fold)
            earned, squared = earned + result[0], squared + result[1]
        assert_allclose((-earned, squared), scores[method, rate])


def test_cross_validation_does_not_always_choose_the_same():
    chosen = {
        choose(task.contexts, task.rewards)
        for task in (graded(30, n_actions=2, n_features=3, seed=seed) for seed in range(12))
    }
    assert len({method for method, _ in chosen}) == 2
    assert len({rate for _, rate in chosen}) >= 3


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [2, 29, 30])
def test_too_few_rows_are_refused(n_rows):
    task = blobs(n_rows, n_actions=2, n_features=2, seed=0)
    sentence = (
        rf"dataset blobs: 30 rows are reserved for calibration but it has only {n_rows}; "
        r"use a larger dataset or lower n_labelled"
    )
    for use in (prepare, lambda t: simulate(t, "uniform")):
        with pytest.raises(DataError, match=sentence):
            use(task)


def test_one_row_more_than_the_labelled_ones_is_enough():
    assert prepare(blobs(31, n_actions=2, n_features=2, seed=0)).n_rounds == 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_labelled": 2}, r"n_labelled is 2; expected 0, or at least 3 for cross-validation"),
        ({"n_labelled": -1}, r"n_labelled is -1; expected 0, or at least 3"),
        ({"max_rounds": 0}, r"max_rounds is 0; expected .*at least 1"),
        ({"max_rounds": -5}, r"max_rounds is -5; expected .*at least 1"),
        ({"max_rounds": 2.5}, r"max_rounds is 2\.5; expected"),
        ({"n_labelled": 30.5}, r"n_labelled is 30\.5; expected"),
        ({"seed": -1}, r"seed is -1; expected a whole number, 0 or larger"),
        ({"seed": 1.5}, r"seed is 1\.5; expected a whole number"),
        ({"seed": None}, r"seed is None; expected a whole number"),
    ],
)
def test_settings_out_of_range_are_refused(settings, sentence, easy_task):
    with pytest.raises(InputError, match=sentence):
        prepare(easy_task, **settings)
