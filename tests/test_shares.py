import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee.shares import share, uniform_and_best


def naive_share(expected, actions, can):
    played = uniform = best = 0.0
    for row, action, opened in zip(expected, actions, can, strict=True):
        offered = [value for value, is_open in zip(row, opened, strict=True) if is_open]
        played += row[action]
        uniform += sum(offered) / len(offered)
        best += max(offered)
    return (played - uniform) / (best - uniform)


@pytest.mark.parametrize("masked", [False, True])
def test_a_share_is_what_its_definition_says(masked):
    rng = np.random.default_rng(0)
    expected, actions = rng.normal(size=(50, 4)), rng.integers(0, 4, size=50)
    can = rng.random((50, 4)) < 0.5 if masked else np.ones((50, 4), bool)
    can[np.arange(50), actions] = True
    given = can if masked else None
    assert_allclose(share(expected, actions, given), naive_share(expected, actions, can))


def test_a_share_does_not_depend_on_the_unit_of_rewards():
    rng = np.random.default_rng(1)
    expected, actions = rng.random((50, 3)), rng.integers(0, 3, size=50)
    moved = share(1e4 * expected - 77.0, actions)
    assert_allclose(moved, share(expected, actions), rtol=1e-9)


def test_the_best_and_the_worst_of_two_actions_are_as_far_from_uniform_choice():
    expected = np.random.default_rng(2).random((50, 2))
    assert share(expected, expected.argmax(axis=1)) == 1.0
    assert_allclose(share(expected, expected.argmin(axis=1)), -1.0)


def test_where_all_actions_are_equal_there_is_no_share():
    assert np.isnan(share(np.full((5, 2), 0.3), np.zeros(5, int)))
    only = np.array([[True, False]] * 5)
    expected = np.random.default_rng(3).random((5, 2))
    assert np.isnan(share(expected, np.zeros(5, int), only))


def test_an_action_that_is_not_open_counts_neither_as_best_nor_for_the_mean():
    uniform, best = uniform_and_best(np.array([[-9.0, 1.0, -1.0]]), np.array([[False, True, True]]))
    assert (uniform.item(), best.item()) == (0.0, 1.0)
