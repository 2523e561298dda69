"""Synthetic tasks that resemble real tables."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from melee.datasets.lifelike import KINDS, MAX_COLUMNS, PAYMENTS, lifelike
from melee.errors import InputError

N_SEEDS = 200


@pytest.fixture(scope="module")
def family():
    return [lifelike(seed=seed) for seed in range(N_SEEDS)]


def kind_of(task):
    return task.provenance.split(", ")[0]


def payment_of(task):
    return task.provenance.split(", ")[1]


@pytest.mark.parametrize("n_rows", [None, 77])
def test_the_same_seed_gives_the_same_task_and_another_seed_another(n_rows):
    task, again, other = (lifelike(seed=seed, n_rows=n_rows) for seed in (5, 5, 6))
    assert_array_equal(task.contexts, again.contexts)
    assert_array_equal(task.rewards, again.rewards)
    assert (task.name, task.provenance) == (again.name, again.provenance)
    assert task.name == "lifelike-5"
    assert task.number == again.number != other.number


@pytest.mark.parametrize("n_rows", [40, 500, 2500])
def test_the_number_of_rows_is_honoured(n_rows):
    assert all(lifelike(seed=seed, n_rows=n_rows).n_rows == n_rows for seed in range(12))


def test_rewards_are_in_the_unit_interval_and_contexts_are_numbers(family):
    for task in family:
        assert task.rewards.min() >= 0
        assert task.rewards.max() <= 1
        assert np.isfinite(task.contexts).all()
        assert np.abs(task.contexts).max() < 1e6


def test_every_kind_and_every_payment_occurs(family):
    assert {kind_of(task) for task in family} == set(KINDS)
    assert {payment_of(task) for task in family} == set(PAYMENTS)
    assert sum(kind_of(task) == "clusters" for task in family) > N_SEEDS / 2
    assert sum(payment_of(task) == "labels" for task in family) > N_SEEDS / 2


def test_shapes_are_as_wide_as_documented(family):
    n_actions = np.array([task.n_actions for task in family])
    n_rows = np.array([task.n_rows for task in family])
    n_features = np.array([task.n_features for task in family])
    assert n_actions.min() == 2
    assert 15 < n_actions.max() <= 22
    assert 0.25 < (n_actions == 2).mean() < 0.5
    assert n_rows.min() >= 150
    assert n_rows.min() < 300
    assert 3000 < n_rows.max() <= 4000
    assert n_features.min() >= 2
    assert 40 < n_features.max() <= MAX_COLUMNS


def test_payments_look_as_they_are_called(family):
    for task in family:
        if payment_of(task) == "labels":
            assert_array_equal(task.rewards.sum(axis=1), 1.0)
        if payment_of(task) == "graded":
            assert len(np.unique(task.rewards)) > 100
        else:
            assert set(np.unique(task.rewards)) == {0.0, 1.0}


def test_at_least_two_actions_earn_something_and_no_action_always_earns_most(family):
    for task in family:
        earned = task.rewards.sum(axis=0)
        assert (earned > 0).sum() >= 2, task.name
        best_fixed, best = earned.max(), task.rewards.max(axis=1).sum()
        assert best_fixed < best, task.name


def test_most_actions_are_the_best_one_often_enough_to_be_found(family):
    found = [(np.bincount(t.rewards.argmax(axis=1), minlength=t.n_actions) >= 3) for t in family]
    assert np.mean(np.concatenate(found)) > 0.9
    assert all(one.sum() >= 2 for one in found)


def test_columns_come_in_many_disguises(family):
    n_values = [len(np.unique(column)) for task in family[:60] for column in task.contexts.T]
    assert 2 in n_values  # yes or no, or a level
    assert any(2 < n < 30 for n in n_values)  # rounded
    assert max(n_values) > 500  # as it is


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(InputError, match="seed is"):
        lifelike(seed=seed)
