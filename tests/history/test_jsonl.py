"""JSON lines: one round a line, appended in one write, refused with the line's number."""

import gzip
import json
import math
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from melee.errors import DataError, InputError
from melee.history import History, Round, append_lines, line_of

ROUND = Round({"age": 31.0}, "sports", 1.0, 0.8)
GOOD = b'{"context": {"age": 31}, "action": "sports", "probability": 0.8, "reward": 1}\n'


def test_a_line_holds_what_is_known_and_nothing_else():
    assert json.loads(line_of(ROUND)) == {
        "context": {"age": 31.0},
        "action": "sports",
        "probability": 0.8,
        "reward": 1.0,
    }
    full = Round({}, ("b", 1), 0.5, 0.25, "e1", 3.0, {("b", 1): 0.25, 2: 0.75}, "ucb", "7")
    assert json.loads(line_of(full)) == {
        "id": "e1",
        "time": 3.0,
        "context": {},
        "action": {"tuple": ["b", 1]},
        "probability": 0.25,
        "reward": 0.5,
        "pmf": [[{"tuple": ["b", 1]}, 0.25], [2, 0.75]],
        "policy": "ucb",
        "version": "7",
    }


def test_lines_are_appended_by_path_and_by_descriptor(tmp_path):
    file = tmp_path / "log.jsonl"
    append_lines(file, [ROUND])
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    append_lines(descriptor, [ROUND])
    os.close(descriptor)
    append_lines(str(file), [ROUND])
    assert History.read(file) == History([ROUND] * 3)


def test_writers_that_share_a_log_do_not_tear_each_others_lines(tmp_path):
    file = tmp_path / "log.jsonl"
    long = Round({"text": "x" * 9000}, 1, 1.0, 0.8)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: append_lines(file, [long if i % 2 else ROUND]), range(200)))
    history = History.read(file)
    assert len(history) == 200
    assert sum(one == long for one in history) == 100


def test_what_cannot_be_appended_is_said(tmp_path):
    with pytest.raises(InputError, match=r"the reward is 2e\+200"):
        append_lines(tmp_path / "log.jsonl", [Round({}, 1, 2e200, 0.5)])
    assert not (tmp_path / "log.jsonl").exists()
    with pytest.raises(DataError, match="cannot be appended to"):
        append_lines(tmp_path / "nowhere" / "log.jsonl", [ROUND])
    with pytest.raises(InputError, match="cannot be written to a file"):
        line_of(Round({}, 10**5000, 1.0, 0.5))


def test_a_write_that_was_cut_short_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", lambda descriptor, line: len(line) - 1)
    with pytest.raises(DataError, match="its last line is torn; make space"):
        append_lines(tmp_path / "log.jsonl", [ROUND])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"{nonsense}", "not JSON"),
        (b"[1, 2]", r"it holds \[1, 2\]; expected an object"),
        (b'"\xff\xfe"', "byte 1 is not UTF-8 text; write the log in UTF-8"),
        (GOOD.replace(b"31", b"NaN"), "it holds NaN, which is not JSON"),
        (GOOD.replace(b" 1}", b" Infinity}"), "it holds Infinity"),
        (GOOD.replace(b" 1}", b" 1e999}"), "the reward is inf"),
        (GOOD.replace(b"31", b"1e999"), "the context holds inf at 'age'"),
        (GOOD.replace(b"probability", b"reward"), "the name 'reward' appears twice"),
        (GOOD.replace(b"31", b"[" * 100_000), "nested too deeply"),
        (GOOD.replace(b"31", b"[" * 98 + b"]" * 98), "the context's 'age' is"),
        (GOOD.replace(b"31", b"[" * 99 + b"]" * 99), "the limit is 100: set MELEE_MAX_DEPTH"),
        (
            GOOD.replace(b"31", b"9" * 5000),
            "5,000 digits; the limit is 1,000: set MELEE_MAX_DIGITS",
        ),
        (GOOD.replace(b'"action"', b'"arm"'), "the action is missing"),
        (GOOD.replace(b'"reward"', b'"cost"'), "the reward is missing"),
        (GOOD.replace(b'"sports"', b'["sports"]'), "is not the label of an action"),
        (GOOD.replace(b" 1}", b' 1, "pmf": [1]}'), "expected pairs of an action"),
        (GOOD.replace(b" 1}", b' 1, "pmf": [["a", 1], ["a", 0]]}'), "an action twice"),
        (GOOD.replace(b" 1}", b' 1, "pmf": [["a", 1]]}'), "does not name the action"),
    ],
    ids=lambda given: given if isinstance(given, str) else "line",
)
def test_a_bad_line_is_refused_with_its_number(tmp_path, line, sentence):
    file = tmp_path / "log.jsonl"
    file.write_bytes(GOOD + b"\n" + line.strip() + b"\n" + GOOD)
    with pytest.raises(DataError, match=rf"log\.jsonl, line 3: .*{sentence}"):
        History.read(file, strict=True)
    history = History.read(file, usable=False)
    assert len(history) + len(history.problems) == 3
    assert all(problem.row == 3 for problem in history.problems)


def test_rounds_of_a_bad_log_are_kept_as_they_are(tmp_path):
    file = tmp_path / "log.jsonl"
    bad = b'"pmf": {"sports": "x"}, "time": "noon", "reward": -3}'
    lines = [
        GOOD,
        GOOD.replace(b'"reward": 1}', bad),
        GOOD.replace(b"0.8", b"null"),
        GOOD.replace(b'"sports"', b"{}"),
        GOOD[:20],
    ]
    file.write_bytes(b"".join(lines))
    history = History.read(file, usable=False)
    assert history.rewards.tolist() == [1.0, -3.0, 1.0]
    assert str(history[1].time) == "nan"
    assert str(history[1].pmf) == "{'sports': nan}"
    assert math.isnan(history.probabilities[2])
    assert [problem.row for problem in history.problems] == [4, 5]
    assert "is not the label" in history.problems[0].sentence
    assert repr(history) == "<History of 3 rounds, 2 left out>"


def test_a_torn_last_line_is_told_from_a_bad_one(tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_bytes(GOOD + GOOD[:40])
    with pytest.raises(DataError, match=r"line 2: the last line is torn: .* delete the line"):
        History.read(file, strict=True)
    history = History.read(file, usable=False)
    assert len(history) == 1
    assert "torn" in history.problems[0].sentence


def test_a_last_line_without_an_end_is_read_if_it_is_whole(tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD + GOOD.strip())
    assert len(History.read(file)) == 2


def test_an_empty_file_is_an_empty_history(tmp_path):
    (tmp_path / "log.jsonl").touch()
    assert History.read(tmp_path / "log.jsonl") == History()


def test_a_line_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("MELEE_MAX_LINE", "100")
    file = tmp_path / "log.jsonl"
    file.write_bytes(GOOD + b"x" * 1000 + b"\n" + GOOD)
    with pytest.raises(
        DataError, match="line 2: it has more than 100 bytes; the limit is 100: set MELEE_MAX"
    ):
        History.read(file, strict=True)
    history = History.read(file, usable=False)
    assert len(history) == 2
    assert history.problems[0].row == 2
    with pytest.raises(InputError, match="bytes as a line; the limit is 100"):
        line_of(Round({"x" * 100: 1.0}, 1, 1.0, 0.5))


def test_a_torn_gzip_file_gives_the_lines_before_if_asked(tmp_path):
    file = tmp_path / "log.jsonl.gz"
    packed = gzip.compress(GOOD * 1000, compresslevel=0)
    file.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="the gzip data is cut off or damaged"):
        History.read(file, strict=True)
    history = History.read(file, usable=False)
    assert 0 < len(history) < 1000
    assert history.problems[0].row == len(history) + 1
    file.write_bytes(b"plain")
    with pytest.raises(DataError, match="the gzip data is cut off or damaged"):
        History.read(file, strict=True)


def test_the_same_history_compresses_to_the_same_bytes(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        History([ROUND]).write(tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
