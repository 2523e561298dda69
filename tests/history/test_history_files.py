"""What is written is read again exactly, in every format."""

import json
import math
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from melee.errors import DataError
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
        for strict in (True, False):
            with suppress(DataError):  # and nothing else
                History.read(file, strict=strict)


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
        history = History.read(file, strict=False)
    assert len(history) + len(history.problems) == 1
