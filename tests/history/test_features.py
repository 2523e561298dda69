"""Features of actions in lines: those that were written, in few bytes where they repeat."""

import json
from typing import Any

import pytest

from melee.errors import InputError
from melee.history import History, Log, Round
from melee.history.features import AGAIN, Sets, read_features

FIRST: dict[Any, Any] = {"a": {"x": 1.0}, ("b", 2): {"tags": ("r", "s")}, 3: {}}


def lines(*sets):
    """What a writer gives for these sets, through JSON."""
    writer = Sets()
    return [json.loads(json.dumps(writer.to_json(one))) for one in sets]


def plain(features):
    return json.loads(json.dumps({str(k): v for k, v in features.items()}))


def test_what_is_read_is_what_was_written_in_the_same_order():
    changed = {**FIRST, "a": {"x": 2.0}}
    moved = {"n": {"y": "text"}, **FIRST}
    fewer = {"a": {"x": 1.0}}
    sets = [FIRST, FIRST, {**FIRST, "d": {"x": 0.5}}, changed, moved, fewer, FIRST]
    known: dict[str, dict[object, object]] = {}
    for given, line in zip(sets, lines(*sets), strict=True):
        read = read_features(line, known)
        assert read is not None
        assert plain(read) == plain(given)
        assert list(read) == list(given)


def test_a_set_is_given_once_and_then_by_what_differs():
    many = {i: {"x": float(i)} for i in range(100)}
    first, again, more = lines(many, many, {**many, 100: {"x": 0.0}})
    assert len(first["all"]) == 100
    assert again == {"in": first["in"]}
    assert more["with"] == [[100, {"x": 0.0}]]
    assert more["from"] == first["in"]
    repeated = lines(*[many] * (AGAIN + 2))
    assert sum("all" in line for line in repeated) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"in": "abc"}, "no line before this one gives"),
        ({"in": "abc", "from": "xyz", "with": []}, "no line before this one gives"),
        ({"in": "abc", "all": 3}, "expected pairs"),
        ({"in": "abc", "all": [["a"]]}, "expected pairs"),
    ],
)
def test_what_is_no_set_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        read_features(given, {})


def test_fields_of_others_are_ignored():
    for given in (3, "x", [1, 2], {"price": 3.0}):
        assert read_features(given, {}) is None
    assert read_features({"a": {"x": 1.0}}, {}) == {"a": {"x": 1.0}}


def test_two_writers_may_share_a_log(tmp_path):
    path = tmp_path / "log.jsonl"
    logs = [Log(path), Log(path)]
    written = []
    for i in range(12):
        features: dict[str, Any] = {"a": {"x": float(i // 3)}, "b": {"x": float(i % 2)}}
        one = Round({"t": float(i)}, "a", 1.0, 0.5, pmf={"a": 0.5, "b": 0.5}, features=features)
        logs[i % 2].append([one])
        written.append(one)
    assert list(History.read(path)) == written
