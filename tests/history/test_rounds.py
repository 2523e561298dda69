"""Rounds are checked where they are made; histories hold them in order."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from melee.errors import DataError, InputError
from melee.history import History, Round, check_round, read_round, repetitions


def round_of(**changes):
    fields = {"context": {"age": 31}, "action": "a", "reward": 1, "probability": 0.5}
    return read_round(**{**fields, **changes})


def test_a_round_is_read_into_plain_values():
    one = round_of(action=np.int64(3), reward=np.float32(0.5), pmf={3: 0.5, "b": 0.5}, id=17)
    assert one == Round({"age": 31.0}, 3, 0.5, 0.5, id="17", pmf={3: 0.5, "b": 0.5})
    assert type(one.action) is int
    assert type(one.reward) is float


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"context": 5}, "the context is 5; expected a dict"),
        ({"context": {"age": math.nan}}, "the context holds nan at 'age'"),
        ({"action": ["a"]}, "is no label"),
        (
            {"reward": 1e101},
            r"the reward is 1e.101; expected a finite number, within ±1e100, in any",
        ),
        ({"reward": None}, "the reward is missing; expected a number"),
        ({"reward": "yes"}, "the reward is 'yes'; expected a number"),
        ({"reward": math.nan}, "the reward is nan; expected a number"),
        ({"reward": 10**400}, "the reward is inf"),
        ({"probability": 0}, "the probability is 0.0; expected a number in .0, 1."),
        ({"probability": 1.1}, "the probability is 1.1"),
        ({"time": math.inf}, "the time is inf; expected seconds since the epoch"),
        ({"id": 1.5}, "the id is 1.5; expected a text"),
        ({"stands_for": 0.5}, "the round stands for 0.5 rounds; expected from 1 to 1,000,000"),
        ({"stands_for": 1e7}, "the round stands for 10000000.0 rounds"),
        ({"stands_for": "ten"}, "rounds that the round stands for is 'ten'; expected a number"),
        ({"version": "\ud800"}, "the version is .* expected a text"),
        ({"pmf": [1]}, r"the pmf is \[1\]; expected a dict"),
        ({"pmf": {}}, "the pmf sums to 0; expected 1"),
        ({"pmf": {"a": 0.5, "b": 0.4}}, "the pmf sums to 0.9; expected 1"),
        ({"pmf": {"a": 1.5, "b": -0.5}}, "the pmf of action 'a' is 1.5"),
        ({"pmf": {"b": 1.0}}, "the pmf does not name the action 'a'"),
        ({"pmf": {"a": 0.4, "b": 0.6}}, "the pmf gives the action 'a' 0.4 and the probability"),
    ],
)
def test_what_could_not_have_happened_is_refused_with_a_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        round_of(**changes)


@given(st.lists(st.integers(1, 50) | st.floats(1.0, 50.0)))
def test_repetitions_keep_up_with_what_rounds_stand_for(numbers):
    times = repetitions(numbers)
    total = 0.0
    for i, (number, n) in enumerate(zip(numbers, times, strict=True)):
        total += number
        assert math.floor(number) <= n <= math.ceil(number + 1e-6)
        assert -1e-6 <= total - sum(times[: i + 1]) < 1.0 + 1e-6


def test_rounds_are_equal_if_all_their_fields_are():
    assert round_of() == round_of()
    assert round_of() != round_of(stands_for=2)
    assert round_of() != round_of(id="x")
    assert round_of(context=[1, 2]) == round_of(context=np.array([1.0, 2.0]))
    assert round_of(context=[1, 2]) != round_of(context=[1, 3])
    assert round_of(context=[1, 2]) != round_of()
    assert round_of() != "round"


def test_a_history_is_a_sequence():
    rounds = [round_of(action=i, reward=i / 4, probability=0.2) for i in range(4)]
    history = History(rounds)
    assert len(history) == 4
    assert list(history) == rounds
    assert history[-1] == rounds[3]
    assert history[1:3] == History(rounds[1:3])
    assert history != rounds
    assert repr(history) == "<History of 4 rounds>"
    assert history.rewards.tolist() == [0.0, 0.25, 0.5, 0.75]
    assert history.probabilities.tolist() == [0.2] * 4
    assert History().rewards.dtype == np.float64


def test_appended_rounds_are_checked_and_extending_is_all_or_nothing():
    history = History()
    history.append(round_of())
    history.append(context=[1], action=2, reward=0, probability=1)
    history.extend([round_of(), round_of()])
    bad = replace(round_of(), reward=7e300)
    with pytest.raises(InputError, match=r"the reward is 7e\+300"):
        history.append(bad)
    with pytest.raises(InputError, match=r"the reward is 7e\+300"):
        history.extend([round_of(), bad])
    assert len(history) == 4


def test_actions_appear_in_the_order_of_their_first_round():
    history = History([round_of(action="b"), round_of(pmf={"c": 0.25, "a": 0.5, "b": 0.25})])
    assert history.actions == ["b", "c", "a"]


def test_an_unknown_ending_or_format_lists_the_known_ones(tmp_path):
    with pytest.raises(InputError, match=r"known endings are \.jsonl, .*\.parquet.*jsonl, parquet"):
        History().write(tmp_path / "log.txt")
    with pytest.raises(InputError, match="unknown format 'jsonk'; did you mean 'jsonl'"):
        History.read(tmp_path / "log.txt", format="jsonk")
    History([round_of()]).write(tmp_path / "log.txt", format="jsonl")
    assert History.read(tmp_path / "log.txt", format="jsonl") == History([round_of()])


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".ndjson", ".parquet", ".dsjson"])
def test_paths_that_hold_no_file_are_refused(tmp_path, ending):
    with pytest.raises(DataError, match="there is no such file"):
        History.read(tmp_path / f"log{ending}")
    (tmp_path / f"dir{ending}").mkdir()
    with pytest.raises(DataError, match="is a directory"):
        History.read(tmp_path / f"dir{ending}")
    with pytest.raises(DataError, match="cannot be written"):
        History().write(tmp_path / "nowhere" / f"log{ending}")


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".dsjson"])
def test_a_bad_round_is_not_written_and_the_file_stays_as_it_was(tmp_path, ending):
    file = tmp_path / f"log{ending}"
    History([round_of()]).write(file)
    for bad in [replace(round_of(), reward=math.nan), replace(round_of(), probability=0.0)]:
        with pytest.raises(InputError, match=r"round 1 of the history: the (reward|probability)"):
            History([round_of(), bad]).write(file)
    with pytest.raises(InputError, match="cannot be written to a file"):
        History([round_of(action=frozenset("ab"))]).write(file)
    assert History.read(file) == History([round_of()])
    assert list(tmp_path.iterdir()) == [file]


def test_check_round_judges_a_round_that_was_kept_as_it_was():
    check_round(round_of())
    with pytest.raises(InputError, match="the probability is nan"):
        check_round(replace(round_of(), probability=math.nan))
