from typing import Any

import numpy as np
import pytest

from melee.errors import InputError
from melee.task import Task

X, R = np.arange(6.0).reshape(3, 2), np.eye(3)[:, :2]


def test_a_task_knows_its_sizes_and_names():
    task = Task("small", X, R)
    assert (task.n_rows, task.n_features, task.n_actions) == (3, 2, 2)
    assert task.feature_names == ("x0", "x1")
    assert task.action_names == ("0", "1")
    assert repr(task) == "Task('small', 3 rows, 2 features, 2 actions)"


def test_arrays_are_copies_that_cannot_be_written_to():
    given = X.copy()
    task = Task("small", given, R)
    given[0, 0] = 99.0
    assert task.contexts[0, 0] == 0.0
    for array in (task.contexts, task.rewards):
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


@pytest.mark.parametrize(
    "given", [R.astype(np.float32), R.astype(np.int8), R > 0, R.tolist(), np.asfortranarray(R)]
)
def test_numbers_of_any_kind_are_taken(given):
    rewards = Task("small", X, given).rewards
    assert (rewards == R).all()
    assert rewards.dtype == np.float64
    assert rewards.flags.c_contiguous


def test_labels_become_one_reward_per_row():
    task = Task.from_labels("pets", X, ["dog", "cat", "dog"])
    assert task.action_names == ("cat", "dog")
    assert task.rewards.tolist() == [[0, 1], [1, 0], [0, 1]]


def test_the_hash_is_of_what_is_played_and_not_of_names():
    task = Task("small", X, R)
    assert Task("other", X.tolist(), R, notes=["x"]).content_hash == task.content_hash
    changed = X.copy()
    changed[2, 1] += 1e-9
    assert Task("small", changed, R).content_hash != task.content_hash
    assert Task("small", X, R[:, ::-1]).content_hash != task.content_hash
    assert Task("small", X.reshape(2, 3), R[:2]).content_hash != task.content_hash


def holding(value, row, column, array):
    array = array.copy()
    array[row, column] = value
    return array


@pytest.mark.parametrize(
    ("contexts", "rewards", "sentence"),
    [
        (
            holding(np.nan, 1, 0, X),
            R,
            r"task t: contexts hold nan at row 1, column 0; fill or drop",
        ),
        (holding(np.inf, 2, 1, X), R, r"contexts hold inf at row 2, column 1"),
        (holding(-np.inf, 0, 0, X), R, r"contexts hold -inf at row 0, column 0"),
        (holding(1e200, 1, 1, X), R, r"contexts hold 1e\+200 at row 1, column 1; .*1e100"),
        (X, holding(np.nan, 2, 1, R), r"task t: rewards hold nan at row 2, column 1"),
        (X, holding(-1e200, 0, 1, R), r"rewards hold -1e\+200 at row 0, column 1; .*1e100"),
        (X, R[:2], r"contexts have 3 rows and rewards have 2; give one row of rewards per"),
        (X, R[:, :1], r"there is 1 action; a bandit needs at least 2 to choose from"),
        (X[:0], R[:0], r"contexts have shape \(0, 2\); expected two dimensions, at least one row"),
        (X[:, :0], R, r"contexts have shape \(3, 0\); .* at least one row and one column"),
        (X.ravel(), R, r"contexts have shape \(6,\); expected two dimensions"),
        (X[None], R, r"contexts have shape \(1, 3, 2\); expected two dimensions"),
        (X, R[:, 0], r"rewards have shape \(3,\); expected two dimensions"),
        ([["a", "b"]] * 3, R, r"contexts are not a matrix of numbers .*; encode text first"),
        ([[1.0], [1.0, 2.0], [3.0]], R, r"contexts are not a matrix of numbers"),
        (None, R, r"contexts (are not a matrix|have shape)"),
    ],
)
def test_data_that_cannot_be_played_is_refused(contexts, rewards, sentence):
    with pytest.raises(InputError, match=sentence):
        Task("t", contexts, rewards)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"feature_names": ["a"]}, r"1 feature_names for 2 columns; give one each"),
        ({"action_names": ["a", "b", "c"]}, r"3 action_names for 2 columns; give one each"),
    ],
)
def test_names_must_be_as_many_as_columns(names, sentence):
    with pytest.raises(InputError, match=sentence):
        Task("t", X, R, **names)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a", "b"], r"contexts have 3 rows and rewards have 2"),
        (["a", "a", "a"], r"there is 1 action"),
        ([], r"rewards have shape \(0, 0\)"),
        (["a", None, "b"], r"label"),
        ([0.0, np.nan, 1.0], r"label"),
    ],
)
def test_labels_that_cannot_be_played_are_refused(labels, sentence):
    with pytest.raises(InputError, match=sentence):
        Task.from_labels("t", X, labels)


def test_rewards_are_any_numbers_unless_a_range_is_given():
    rewards = [[-3.5, 1e5], [0.0, 2.0], [1.0, 1.0]]
    task = Task("t", X, rewards)
    assert task.rewards.tolist() == rewards
    assert task.reward_range is None
    ranged = Task("t", X, rewards, reward_range=(-4, 1e5))
    assert ranged.reward_range == (-4.0, 1e5)
    assert ranged.content_hash == task.content_hash


def test_rewards_of_labels_are_known_to_lie_between_0_and_1():
    assert Task.from_labels("pets", X, ["dog", "cat", "dog"]).reward_range == (0.0, 1.0)


@pytest.mark.parametrize(
    ("reward_range", "sentence"),
    [
        ((0.0, 0.5), r"rewards run from 0 to 1 and reward_range is \(0, 0\.5\); give a range that"),
        ((0.5, 1.0), r"rewards run from 0 to 1 and reward_range is \(0\.5, 1\); give a range that"),
        ((1.0, 0.0), r"reward_range is \(1\.0, 0\.0\); expected the least and the greatest reward"),
        ((0.0, 0.0), r"reward_range is \(0\.0, 0\.0\); expected the least"),
        ((0.0, float("inf")), r"reward_range is \(0\.0, inf\); expected the least"),
        ((0.0, float("nan")), r"reward_range is \(0\.0, nan\); expected the least"),
        ((0.0,), r"reward_range is \(0\.0,\); expected the least"),
        (1.0, r"reward_range is 1\.0; expected the least"),
        ("ab", r"reward_range is 'ab'; expected the least"),
    ],
)
def test_a_range_that_does_not_hold_the_rewards_is_refused(reward_range, sentence):
    with pytest.raises(InputError, match=sentence):
        Task("t", X, R, reward_range=reward_range)


FULL: dict[str, Any] = {
    "expected": R / 2,
    "ordered": True,
    "open": np.array([[True, True], [False, True], [True, False]]),
    "delays": np.array([0, 5, 1]),
}


def test_what_is_known_of_made_tasks_is_kept_in_arrays_that_cannot_be_written_to():
    task = Task("t", X, R, **FULL)
    for name, kind in {"expected": np.float64, "open": np.bool_, "delays": np.int64}.items():
        assert getattr(task, name).dtype == kind
        assert (getattr(task, name) == FULL[name]).all()
        assert getattr(Task("t", X, R), name) is None
        with pytest.raises(ValueError, match="read-only"):
            getattr(task, name)[0] = 1
    assert task.ordered is True
    assert Task("t", X, R).ordered is False


def test_what_is_known_of_made_tasks_enters_the_hash_where_it_is_given():
    plain = Task("t", X, R).content_hash
    hashes = {Task("t", X, R, **{name: value}).content_hash for name, value in FULL.items()}
    assert len(hashes | {plain}) == 5
    assert Task("t", X, R, ordered=False, open=None).content_hash == plain
    assert Task("t", X, R, delays=[0, 5, 2]).content_hash not in hashes
    assert Task("t", X, R, expected=R / 4).content_hash not in hashes
    assert Task("t", X, R, open=np.ones((3, 2), int)).content_hash not in hashes | {plain}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"expected": R[:2]}, r"expected rewards have shape \(2, 2\) and rewards have \(3, 2\)"),
        ({"expected": R.T}, r"expected rewards have shape \(2, 3\) and rewards have \(3, 2\)"),
        ({"expected": holding(np.nan, 2, 1, R)}, r"expected rewards hold nan at row 2, column 1"),
        ({"ordered": 1}, r"ordered is 1; expected True or False"),
        ({"open": R[:2] > 0}, r"open has shape \(2, 2\) and holds bool; .*, shape \(3, 2\)"),
        ({"open": R}, r"open has shape \(3, 2\) and holds float64; expected True or False"),
        ({"open": 2 * np.ones((3, 2), int)}, r"open has shape .* holds int64; expected True or"),
        ({"open": R > 0}, r"no action is open in row 2; leave such rows out, or open one"),
        ({"delays": [0, 1]}, r"delays have shape \(2,\) .* for each of the 3 rows"),
        (
            {"delays": [0.0, 1.0, 2.0]},
            r"delays have shape \(3,\) and hold float64; expected a whole",
        ),
        ({"delays": [0, -1, 2]}, r"the delay of row 1 is -1; expected a whole number of rounds"),
        ({"delays": np.array([0, 1, 2**63], np.uint64)}, r"the delay of row 2 is 922337203685"),
        ({"delays": [[0], [1, 2], 3]}, r"delays have shape \(\) and hold object; expected a whole"),
        ({"open": [[True], [True, False], []]}, r"open has shape \(\) and holds object; expected"),
        ({"delays": 3}, r"delays have shape \(\)"),
    ],
)
def test_what_does_not_fit_the_rewards_is_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        Task("t", X, R, **given)
