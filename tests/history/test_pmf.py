"""Logs of many actions: labels and common probabilities are written once, and nothing is lost."""

import json
import os
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from melee import Agent
from melee.errors import DataError, InputError
from melee.history import History, Log, Round, append_lines, line_of
from melee.history import pmf as pmf_module
from melee.history.pmf import Lists, Pmf, read_pmf

ACTIONS = [f"article {i}" for i in range(40)]


def chosen(action, actions=ACTIONS, mass=0.9):
    """A round in which one action is likely and all others are alike."""
    each = (1.0 - mass) / (len(actions) - 1)
    pmf = {label: mass if label == action else each for label in actions}
    return Round({"age": 31.0}, action, 1.0, mass, pmf=pmf)


def objects(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


labels = st.one_of(
    st.text(max_size=3), st.integers(-99, 99), st.tuples(st.text(max_size=2), st.integers(0, 9))
)
pmfs = st.builds(
    lambda actions, weights: dict(
        zip(actions, [w / sum(weights[: len(actions)]) for w in weights], strict=False)
    ),
    st.lists(labels, min_size=1, max_size=30, unique=True),
    st.lists(st.sampled_from([1.0, 1.0, 1.0, 2.0, 0.3, 1e-9]), min_size=30, max_size=30),
)


@given(st.lists(pmfs, min_size=1, max_size=6))
def test_lines_read_one_after_the_other_give_the_same_bits(given_pmfs):
    lists = Lists()
    known: dict[str, Any] = {}
    for pmf in given_pmfs + given_pmfs:
        written = json.loads(json.dumps(lists.to_json(pmf)))
        read = read_pmf(written, known)
        assert list(read.items()) == list(pmf.items())
        assert sum(read.values()) == sum(pmf.values())


def test_a_log_gives_a_list_of_actions_once_and_then_what_differs(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    rounds = [chosen("article 3"), chosen("article 7"), chosen(3, range(11)), chosen("article 7")]
    for one in rounds:
        log.append([one])
    first, second, other, last = (line["pmf"] for line in objects(tmp_path / "log.jsonl"))
    assert first["actions"] == ACTIONS
    assert second == {"in": first["in"], "each": (1.0 - 0.9) / 39, "but": [["article 7", 0.9]]}
    assert other["actions"] == list(range(11))
    assert last == second
    history = History.read(tmp_path / "log.jsonl")
    assert history == History(rounds)
    assert isinstance(history[1].pmf, Pmf)


def test_a_pmf_of_few_actions_is_one_of_pairs():
    actions = ACTIONS[:10]
    assert json.loads(line_of(chosen("article 3", actions)))["pmf"][3] == ["article 3", 0.9]
    assert "in" in json.loads(line_of(chosen("article 3", ACTIONS[:11])))["pmf"]


def test_probabilities_that_all_differ_are_an_array():
    values = [i + 1.0 for i in range(40)]
    pmf = {label: v / sum(values) for label, v in zip(ACTIONS, values, strict=True)}
    one = Round({}, "article 0", 0.0, pmf["article 0"], pmf=pmf)
    line = json.loads(line_of(one))
    assert line["pmf"]["each"] == list(pmf.values())
    assert "but" not in line["pmf"]


def test_a_whole_history_is_written_and_read_again(tmp_path):
    history = History([chosen(action) for action in ACTIONS] * 3)
    history.write(tmp_path / "a.jsonl")
    again = History.read(tmp_path / "a.jsonl")
    assert again == history
    again.write(tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()
    again.write(tmp_path / "c.parquet")
    assert History.read(tmp_path / "c.parquet") == history
    assert again.actions == ACTIONS


def test_a_list_is_given_again_from_time_to_time(tmp_path, monkeypatch):
    monkeypatch.setattr(pmf_module, "AGAIN", 3)
    log = Log(tmp_path / "log.jsonl")
    for _ in range(7):
        log.append([chosen("article 3")])
    given_in = [
        i for i, line in enumerate(objects(tmp_path / "log.jsonl")) if "actions" in line["pmf"]
    ]
    assert given_in == [0, 3, 6]


def test_lists_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(pmf_module, "_MOST_LISTS", 5)
    lists = Lists()
    for n in range(11, 40):
        lists.to_json(dict.fromkeys(range(n), 1.0 / n))
        assert len(lists._names) <= 5


@pytest.mark.parametrize("event", ["renamed", "emptied", "deleted"])
def test_another_file_under_the_name_can_be_read_from_its_start(event, tmp_path):
    file = tmp_path / "log.jsonl"
    log = Log(file)
    for _ in range(3):
        log.append([chosen("article 3")])
    if event == "renamed":
        file.rename(tmp_path / "old.jsonl")
        assert len(History.read(tmp_path / "old.jsonl")) == 3
    elif event == "emptied":
        os.truncate(file, 0)
    else:
        file.unlink()
    log.append([chosen("article 5")])
    log.append([chosen("article 6")])
    assert History.read(file) == History([chosen("article 5"), chosen("article 6")])


def test_several_writers_share_a_log_of_many_actions(tmp_path):
    file = tmp_path / "log.jsonl"
    logs = [Log(file), Log(file)]
    for i in range(8):
        logs[i % 2].append([chosen(ACTIONS[i])])
        append_lines(file, [chosen(ACTIONS[i + 10])])
    assert History.read(file).actions == ACTIONS
    assert len(History.read(file)) == 16


def test_a_torn_line_is_ended_and_the_list_given_again(tmp_path, monkeypatch):
    file = tmp_path / "log.jsonl"
    log = Log(file)
    log.append([chosen("article 3")])
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, lines: write(file, lines[:60]))
    with pytest.raises(DataError, match="its last line is torn"):
        log.append([chosen("article 4")])
    monkeypatch.undo()
    log.append([chosen("article 5")])
    assert "actions" in json.loads(file.read_text().splitlines()[-1])["pmf"]
    with pytest.raises(
        DataError, match=r"line 2: the line is torn: it is not JSON; its writer was"
    ):
        History.read(file, strict=True)
    history = History.read(file, usable=False)
    assert [problem.row for problem in history.problems] == [2]
    assert [one.action for one in history] == ["article 3", "article 5"]


def test_every_beginning_of_a_line_is_called_torn(tmp_path):
    whole = line_of(Round({"age": 31.5, "a": None}, ("b", True), 1.0, 0.5, id="é"))
    file = tmp_path / "log.jsonl"
    for length in range(1, len(whole) - 1):
        file.write_bytes(whole + whole[:length] + b"\n" + whole)
        with pytest.raises(DataError, match="line 2: the line is torn"):
            History.read(file, strict=True)


def test_a_log_read_from_its_middle_says_what_is_missing(tmp_path):
    file = tmp_path / "log.jsonl"
    log = Log(file)
    for action in ACTIONS[:4]:
        log.append([chosen(action)])
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(
        DataError, match=r"line 1: the pmf is in the list of actions '\w+', which no"
    ):
        History.read(file, strict=True)
    assert len(History.read(file, usable=False).problems) == 3


def test_a_bad_round_still_gives_its_list(tmp_path):
    file = tmp_path / "log.jsonl"
    log = Log(file)
    log.append([chosen("article 3")])
    log.append([chosen("article 4")])
    file.write_text(file.read_text().replace('"action":', '"arm":', 1))
    history = History.read(file, usable=False)
    assert [problem.row for problem in history.problems] == [1]
    assert history == History([chosen("article 4")])


def test_actions_named_as_our_own_words_are_read_in_logs_of_others(tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_text(
        '{"context": {}, "action": "in", "probability": 0.5, "reward": 1,'
        ' "pmf": {"in": 0.5, "each": 0.25, "but": 0.25}}\n'
    )
    assert History.read(file)[0].pmf == {"in": 0.5, "each": 0.25, "but": 0.25}


@pytest.mark.parametrize(
    ("given_pmf", "sentence"),
    [
        ({"in": "x", "each": 0.1}, "the list of actions 'x', which no line before"),
        ({"in": "x", "actions": 5, "each": 0.1}, "the pmf's actions are 5; expected an array"),
        ({"in": "x", "actions": ["a", "a"], "each": 0.5}, "names an action twice"),
        ({"in": "x", "actions": [["a"]], "each": 0.5}, "is not the label of an action"),
        ({"in": "x", "actions": ["a", "b"], "each": [0.5]}, "1 probabilities for 2 actions"),
        ({"in": "x", "actions": ["a", "b"], "each": 0.5, "but": 3}, "the pmf is 3; expected pairs"),
        ({"in": "x", "actions": ["a", "b"], "each": 0.5, "but": [["c", 1]]}, "names 'c', which is"),
        (
            {"in": "x", "actions": ["a", "b"], "each": "much"},
            "all other actions is 'much'; expected",
        ),
        ({"in": "x", "actions": ["a", "b"]}, "the pmf of all other actions is missing"),
        ({"in": "x", "actions": ["a", "b"], "each": 0.4}, "the pmf sums to 0.8; expected 1"),
        (
            {"in": "x", "actions": ["a", "b"], "each": 2, "but": [["a", 1]]},
            "pmf of action 'b' is 2",
        ),
        ({"in": "x", "actions": ["b", "c"], "each": 0.5}, "does not name the action 'a'"),
    ],
)
def test_a_pmf_that_does_not_add_up_is_refused(given_pmf, sentence, tmp_path):
    file = tmp_path / "log.jsonl"
    line = {"context": {}, "action": "a", "probability": 0.5, "reward": 1, "pmf": given_pmf}
    file.write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match=f"line 1: .*{sentence}"):
        History.read(file, strict=True)
    History.read(file, usable=False)  # a pmf like that is a problem, or for the doctor to judge


def test_a_small_file_of_many_actions_takes_little_memory(tmp_path):
    n = 50_000
    pmf = {"in": "x", "actions": list(range(n)), "each": 1.0 / n}
    line = {"context": {}, "action": 3, "probability": 1.0 / n, "reward": 1.0, "pmf": pmf}
    later = {**line, "pmf": {"in": "x", "each": 1.0 / n}}
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join([json.dumps(line), *[json.dumps(later)] * 3000]) + "\n")
    tracemalloc.start()
    try:
        history = History.read(file)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert len(history[-1].pmf or ()) == n


def test_a_line_of_an_agent_with_a_thousand_actions_is_short(tmp_path):
    file = tmp_path / "log.jsonl"
    agent = Agent(range(1000), "epsilon-greedy", log=file)
    seen = []
    for age in range(20):
        decision = agent.act({"age": age})
        agent.learn(decision.id, 1.0)
        seen.append(decision)
    lines = file.read_bytes().splitlines()
    assert max(map(len, lines[1:])) < 500
    for one, decision in zip(History.read(file), seen, strict=True):
        assert one.pmf == decision.pmf
        assert list(one.pmf.values()) == list(decision.probabilities)


def test_a_log_goes_on_after_loading(tmp_path):
    file = tmp_path / "log.jsonl"
    agent = Agent(range(50), "uniform", log=file)
    agent.act({"age": 3}, id="a")
    loaded = Agent.from_bytes(agent.to_bytes(), log=file)
    agent.learn("a", 1.0)
    loaded.learn("a", 1.0)
    first, second = History.read(file)
    assert first == second
    assert first.pmf == pytest.approx(dict.fromkeys(range(50), 0.02))


def test_rounds_that_cannot_be_written_leave_no_file(tmp_path):
    with pytest.raises(InputError, match="cannot be written to a file"):
        Log(tmp_path / "log.jsonl").append([chosen(b"x", [*ACTIONS, b"x"])])
    assert list(tmp_path.iterdir()) == []
