"""Parquet: our own tables, those of others, and files that are none."""

import datetime
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from melee.contexts import Named
from melee.errors import DataError
from melee.history import History, Round


def written(tmp_path, **columns):
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table(columns), file)
    return file


def test_our_table_has_a_column_for_every_field(tmp_path):
    file = tmp_path / "log.parquet"
    one = Round({"age": 31.0}, ("b", 1), 1.0, 0.5, id="e1", time=2.0)
    History([one, Round({}, None, 0.0, 1.0)]).write(file)
    assert pq.read_table(file).to_pylist()[0] == {
        "id": "e1",
        "time": 2.0,
        "context": '{"age": 31.0}',
        "action": '{"tuple": ["b", 1]}',
        "probability": 0.5,
        "reward": 1.0,
        "pmf": None,
        "policy": None,
        "version": None,
        "stands_for": None,
    }
    assert History.read(file)[1] == Round({}, None, 0.0, 1.0)


def test_columns_of_others_are_features_and_null_is_missing(tmp_path):
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    file = written(
        tmp_path,
        id=[7, 8],
        time=[noon, None],
        age=[31, None],
        device=pa.array(["phone", "tablet"]).dictionary_encode(),
        tags=[["new", "vip"], []],
        action=["3", "b"],
        reward=[True, False],
        probability=pa.array([0.5, 0.25], type=pa.float32()),
        pmf=['[["3", 0.5], ["b", 0.5]]', None],
        stands_for=[10, None],
    )
    first, second = History.read(file)
    context: Named = {"age": 31.0, "device": "phone", "tags": ("new", "vip")}
    about: dict[str, Any] = {"id": "7", "time": noon.timestamp(), "stands_for": 10.0}
    assert first == Round(context, "3", 1.0, 0.5, pmf={"3": 0.5, "b": 0.5}, **about)
    context = {"age": None, "device": "tablet", "tags": ()}
    assert second == Round(context, "b", 0.0, 0.25, id="8")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_pandas_and_polars_are_read(tmp_path, library):
    columns = {"age": [31, 64], "action": [1, 0], "reward": [0.5, 1.0], "probability": [0.5, 0.5]}
    if library == "pandas":
        pd.DataFrame(columns, index=[5, 9]).to_parquet(tmp_path / "log.parquet")
    else:
        pl.DataFrame(columns).write_parquet(tmp_path / "log.parquet")
    history = History.read(tmp_path / "log.parquet")
    assert list(history) == [Round({"age": 31.0}, 1, 0.5, 0.5), Round({"age": 64.0}, 0, 1.0, 0.5)]


@pytest.mark.parametrize(
    ("context", "read"),
    [
        ([{"age": 31, "tags": ["x"]}], {"age": 31.0, "tags": ("x",)}),
        ([[1.0, 2.0]], np.array([1.0, 2.0])),
        (['{"age": 31}'], {"age": 31.0}),
    ],
)
def test_the_context_of_others_may_be_a_struct_numbers_or_json(tmp_path, context, read):
    file = written(tmp_path, context=context, action=[2], reward=[1.0], probability=[0.5])
    assert History.read(file)[0] == Round(read, 2, 1.0, 0.5)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"reward": [1.0, 3e200]}, r"row 2: the reward is 3e\+200"),
        ({"reward": [1.0, None]}, "row 2: the reward is missing"),
        ({"action": ["a", None]}, "row 2: the action is missing"),
        ({"x": [1.0, math.nan]}, "row 2: the context holds nan at 'x'"),
        ({"pmf": [None, "a"]}, "row 2: the pmf is 'a', which is not JSON"),
        ({"context": ["{}", "{"]}, "row 1: the action is 'a', which is not JSON"),
        ({"context": ["{}", "{"], "action": [1, 2]}, "row 2: the context is '{'"),
    ],
)
def test_a_bad_row_is_refused_with_its_number(tmp_path, columns, sentence):
    good = {"x": [1.0, 2.0], "action": ["a", "b"], "reward": [1, 0], "probability": [0.5, 0.5]}
    with pytest.raises(DataError, match=sentence):
        History.read(written(tmp_path, **{**good, **columns}), strict=True)


def test_a_log_without_probabilities_can_be_read_to_be_diagnosed(tmp_path):
    file = written(tmp_path, x=[1.0, 2.0], action=["a", None], reward=[5, 0])
    with pytest.raises(DataError, match="row 1: the probability is missing"):
        History.read(file, strict=True)
    history = History.read(file, usable=False)
    assert history.rewards.tolist() == [5.0]
    assert math.isnan(history.probabilities[0])
    assert history.problems[0].row == 2


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 garbage PAR1", b"x" * 1000])
@pytest.mark.parametrize("strict", [True, False])
def test_garbage_is_refused(tmp_path, content, strict):
    (tmp_path / "log.parquet").write_bytes(content)
    with pytest.raises(DataError, match="not a complete Parquet file"):
        History.read(tmp_path / "log.parquet", strict=strict)


def test_a_torn_table_is_refused(tmp_path):
    file = tmp_path / "log.parquet"
    History([Round({"x": 1.0}, 1, 1.0, 0.5)] * 100).write(file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match="not a complete Parquet file"):
        History.read(file, strict=True)


def test_a_flipped_bit_is_noticed(tmp_path):
    file = tmp_path / "log.parquet"
    History([Round({"x": i / 7}, 1, i / 1000, 0.5) for i in range(1000)]).write(file)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match="row 1: from here on the table cannot be read"):
        History.read(file, strict=True)


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(DataError, match="two columns of one name"):
        History.read(tmp_path / "log.parquet", strict=True)


def test_many_rows_keep_their_numbers(tmp_path):
    n = 10_000
    reward = [0.5] * (n - 1) + [-2e200]
    file = written(tmp_path, x=[1.0] * n, action=[1] * n, reward=reward, probability=[0.5] * n)
    with pytest.raises(DataError, match=rf"row {n}: the reward is -2e\+200"):
        History.read(file, strict=True)
