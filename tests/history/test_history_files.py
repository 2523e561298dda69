"""What is written is read again exactly, in every format."""

import gzip
import json
import math
import re
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import melee
from melee.errors import DataError, LeftOutWarning
from melee.history import History, Round

texts = st.text(max_size=8) | st.sampled_from(
    [
        "",
        "_text",
        "_tag",
        "_label_cost",
        "_multi",
        "_melee",
        "a=b",
        "a.b",
        "a[0]",
        "\0",
        "\u2028",
        "😀",
    ]
)
numbers = st.floats(-1e100, 1e100)
values = numbers | texts | st.none() | st.lists(texts, max_size=3).map(tuple)
contexts = st.dictionaries(texts, values, max_size=5) | st.lists(
    numbers, min_size=1, max_size=5
).map(lambda row: np.array(row, dtype=np.float64))
scalars = texts | st.integers() | st.booleans() | st.none() | st.floats(-10, 10)
labels = scalars | st.tuples(scalars, scalars) | st.just(()) | st.tuples(st.tuples(scalars))
optional_texts = st.none() | texts
counts = st.just(1.0) | st.integers(1, 1000).map(float) | st.floats(1.0, 1e6)
times = st.none() | st.floats(0, 2**31) | st.floats(-1e15, 1e15)


@st.composite
def rounds(draw):
    pmf = None
    action, probability = draw(labels), draw(st.floats(1e-6, 1))
    if draw(st.booleans()):
        weights = draw(st.dictionaries(labels, st.floats(0.01, 1), min_size=1, max_size=4))
        total = math.fsum(weights.values())
        pmf = {label: weight / total for label, weight in weights.items()}
        action = draw(st.sampled_from(list(pmf)))
        probability = pmf[action]
    return Round(
        context=draw(contexts),
        action=action,
        reward=draw(st.floats(0, 1)),
        probability=probability,
        id=draw(optional_texts),
        time=draw(times),
        pmf=pmf,
        policy=draw(optional_texts),
        version=draw(optional_texts),
        stands_for=draw(counts),
    )


histories = st.lists(rounds(), max_size=5).map(History)


def exactly(history):
    """All that a history holds, as a text that tells True from 1 from 1.0 and keeps all orders."""
    return [
        (
            repr(one.context.tolist() if isinstance(one.context, np.ndarray) else one.context),
            repr([one.action, one.reward, one.probability, one.id, one.time]),
            repr([one.pmf, one.policy, one.version, one.stands_for]),
        )
        for one in history
    ]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".parquet", ".dsjson", ".dsjson.gz"])
@settings(max_examples=50, deadline=None)
@given(histories)
def test_a_history_that_is_written_is_read_again_exactly(ending, history):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"log{ending}"
        history.write(file)
        again = History.read(file)
    assert again == history
    assert exactly(again) == exactly(history)
    assert again.problems == []


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_half_a_character_survives(tmp_path, ending):
    history = History([Round({"\ud800": "\udfff"}, "\ud83d", 1.0, 0.5)])
    history.write(tmp_path / f"log{ending}")
    assert History.read(tmp_path / f"log{ending}") == history


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".dsjson"])
@settings(max_examples=100, deadline=None)
@given(history=histories.filter(len), cut=st.floats(0, 1), junk=st.binary(max_size=4))
def test_a_damaged_file_is_refused_with_a_sentence_or_read(ending, history, cut, junk):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"log{ending}"
        history.write(file)
        content = file.read_bytes()
        at = int(cut * len(content))
        file.write_bytes(content[:at] + junk + content[at + len(junk) + 1 :])
        with suppress(DataError):  # and nothing else
            History.read(file, strict=True)
        with suppress(DataError), warnings.catch_warnings():
            warnings.simplefilter("ignore", LeftOutWarning)
            assert len(History.read(file)) > 0
        with suppress(DataError):
            History.read(file, usable=False)


# -- bad rows ----------------------------------------------------------------------------------

SOUND = [Round({"age": 20.0 + i}, "ab"[i % 2], float(i % 2), 0.5) for i in range(6)]


def write_with_bad_rows(directory, ending):
    """A file of six rounds and two bad rows, as its format has them."""
    file = directory / f"log{ending}"
    if ending == ".parquet":
        rows = [{"x": 1.0, "action": "a", "reward": 1.0, "probability": p} for p in (0.5, 7.0, 0.5)]
        pq.write_table(pa.Table.from_pylist([*rows[:2], *rows[:2], *[rows[0]] * 4]), file)
        return file
    History(SOUND).write(file)
    packed = file.read_bytes()
    lines = (gzip.decompress(packed) if ending.endswith(".gz") else packed).splitlines(
        keepends=True
    )
    wrong = (b'"probability": 0.5', b'"_label_probability": 0.5')[ending.startswith(".dsjson")]
    lines[1:1] = [lines[0].replace(wrong, wrong[:-3] + b"7.0")]
    lines[3:3] = [b'{"half a li\n']
    content = b"".join(lines)
    file.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    return file


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".dsjson", ".dsjson.gz", ".parquet"])
def test_a_file_is_not_lost_for_its_bad_rows(tmp_path, ending):
    file = write_with_bad_rows(tmp_path, ending)
    with pytest.warns(LeftOutWarning) as warned:
        history = History.read(file)
    (one,) = warned  # for all of them
    sentence = str(one.message)
    assert Path(one.filename).name == "test_history_files.py"
    row = "row" if ending == ".parquet" else "line"
    assert f"log{ending}: " in sentence
    assert re.search(
        rf"of 8 {row}s (is|are) left out, {row} 2 the first: the probability is 7", sentence
    )
    assert "History.problems lists all, and strict=True refuses such a file" in sentence
    assert len(history) == 6
    assert sum(found.n_rows for found in history.left_out) == 2
    assert [problem.row for problem in history.problems] == [2, 4]
    assert repr(history) == "<History of 6 rounds, 2 left out>"
    with pytest.raises(
        DataError, match=rf"log{ending}, {row} 2: the probability is 7.* and counted"
    ):
        History.read(file, strict=True)
    kept = History.read(file, usable=False)
    assert 7.0 in kept.probabilities
    assert melee.LeftOutWarning is LeftOutWarning


def test_the_first_reasons_are_told_and_the_others_counted(tmp_path):
    file = tmp_path / "log.jsonl"
    history = History(SOUND)
    history.write(file)
    good = file.read_text().splitlines()[0]
    bad = [
        good.replace('"reward": 0.0', '"reward": "x"'),
        good.replace('"action": "a"', '"arm": "a"'),
        good.replace('"context"', '{"context"'),
        good.replace("0.5", "7.5"),
        good.replace("0.5", "8.5"),
    ]
    file.write_text("\n".join([*bad, good]) + "\n")
    with pytest.warns(LeftOutWarning) as warned:
        History.read(file)
    sentence = str(warned[0].message)
    assert "2 of 6 lines are left out, line 4 the first: the probability is 7.5" in sentence
    assert "; 1 of 6 lines is left out, line 1 the first: the reward is 'x'" in sentence
    assert "; 1 more for other reasons; History.problems" in sentence


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_what_comes_before_a_torn_end_is_read(tmp_path, ending):
    file = tmp_path / f"log{ending}"
    History(SOUND * 200).write(file)
    content = file.read_bytes()
    if ending == ".jsonl":
        file.write_bytes(content[:-20])
        expected, n_rounds = "the last line is torn: it has no end", 1199
    else:
        file.write_bytes(content[: len(content) // 2])
        expected, n_rounds = "the gzip data is cut off or damaged", None
    with pytest.warns(LeftOutWarning, match=expected):
        history = History.read(file)
    assert 0 < len(history) < 1200
    assert n_rounds in (None, len(history))
    with pytest.raises(DataError, match=expected):
        History.read(file, strict=True)


@pytest.mark.parametrize("ending", [".jsonl", ".dsjson", ".parquet"])
def test_a_file_without_one_good_row_is_refused(tmp_path, ending):
    file = tmp_path / f"log{ending}"
    if ending == ".parquet":
        pq.write_table(pa.table({"x": [1.0, 2.0], "reward": [1.0, 0.0]}), file)
        expected = "no row holds a round: 2 of 2 rows are left out, row 1 the first: the action"
    else:
        file.write_text("a,b\n1,2\n")
        expected = "no line holds a round: 2 of 2 lines are left out, line 1 the first: not JSON"
    for strict in (False, True):
        with pytest.raises(DataError, match=expected if not strict else " 1: "):
            History.read(file, strict=strict)
    assert len(History.read(file, usable=False).problems) == 2  # the doctor says it, too


def test_a_file_of_rows_that_hold_no_round_is_refused_and_some_are_not_warned_of(tmp_path):
    file = tmp_path / "log.dsjson"
    checkpoint = json.dumps({"checkpoint_time": "2021-02-04T16:31:29.2Z"}) + "\n"
    file.write_text(checkpoint * 2)
    for strict in (False, True):
        with pytest.raises(DataError, match=r"no line holds a round: 2 of 2 .*: a checkpoint"):
            History.read(file, strict=strict)
    History(SOUND).write(file)
    file.write_text(checkpoint + file.read_text())
    assert len(History.read(file)) == 6  # a warning would be an error here


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
names = [
    *("id", "time", "context", "action", "probability", "reward", "pmf", "policy", "version"),
    "stands_for",
]
decision_names = [
    *("_label_cost", "_label_probability", "_label_Action", "_labelIndex", "Timestamp", "EventId"),
    *("a", "c", "p", "o", "VWState", "_melee", "pdrop", "_skipLearn", "_outcomes", "RewardValue"),
]
shared = st.dictionaries(st.sampled_from(["context", "_multi", "_slots", "User"]), json_values)


@settings(max_examples=300, deadline=None)
@given(
    line=json_values
    | st.dictionaries(st.sampled_from(names), json_values)
    | st.dictionaries(st.sampled_from(decision_names), json_values | shared),
    ending=st.sampled_from([".jsonl", ".dsjson"]),
)
def test_any_json_is_a_round_or_a_problem(line, ending):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"log{ending}"
        file.write_text(json.dumps(line) + "\n", encoding="utf-8")
        history = History.read(file, usable=False)
    assert len(history) + len(history.problems) == 1
