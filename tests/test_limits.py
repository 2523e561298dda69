"""Input that was made to exhaust its reader is refused, soon, with the way to allow it."""

import gzip
import json
import time
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from melee import History, read_table
from melee.artefact import load
from melee.datasets.arff import read_arff
from melee.errors import DataError, InputError
from melee.limits import AGENT_BYTES, BYTES, COLUMNS, DEPTH, DIGITS, LINE, check_depth

ROUND = b'{"context": {"age": 31}, "action": "a", "probability": 0.5, "reward": 1}\n'
ARFF = "@relation r\n@attribute a numeric\n@attribute t {x,y}\n@data\n"


@pytest.mark.parametrize("limit", [AGENT_BYTES, BYTES, COLUMNS, DEPTH, DIGITS, LINE])
def test_a_variable_sets_a_limit_and_the_sentence_names_it(limit, monkeypatch):
    assert limit.most == limit.default
    monkeypatch.setenv(limit.variable, "7")
    assert limit.most == 7
    assert limit.sentence("it is 8") == (
        f"it is 8; the limit is 7: set {limit.variable} to raise it"
    )


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "1e9", "9" * 30, "²"])
def test_a_variable_that_is_no_number_gets_a_sentence(text, monkeypatch):
    monkeypatch.setenv("MELEE_MAX_LINE", text)
    with pytest.raises(
        InputError, match=r"MELEE_MAX_LINE is .* in the environment; expected a whol"
    ):
        _ = LINE.most


def csv_rows(n):
    return b"a,target\n" + b"1,yes\n2,no\n" * n


def arff_rows(n):
    return ARFF.encode() + b"1,x\n2,y\n" * n


@pytest.mark.parametrize(
    ("name", "rows", "read"),
    [
        ("t.csv.gz", csv_rows, read_table),
        ("t.arff.gz", arff_rows, read_table),
        ("log.jsonl.gz", lambda n: ROUND * n, History.read),
        ("log.jsonl.gz", lambda n: ROUND * n, lambda path: History.read(path, usable=False)),
    ],
)
def test_a_file_that_unpacks_to_too_much_is_refused_before_it_fills_the_memory(
    name, rows, read, tmp_path, monkeypatch
):
    path = tmp_path / name
    content = rows(1_000_000)
    path.write_bytes(gzip.compress(content, compresslevel=9))
    assert path.stat().st_size < len(content) / 100
    monkeypatch.setenv("MELEE_MAX_BYTES", "5000000")
    tracemalloc.start()
    try:
        with pytest.raises(
            DataError, match="it unpacks to more than 5,000,000 bytes; the limit is"
        ):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    member = gzip.compress(rows(700_000), compresslevel=9)
    path.write_bytes(gzip.compress(rows(1)) + member + bytes(512))  # in parts, and with padding
    with pytest.raises(DataError, match="it unpacks to more than 5,000,000 bytes; the limit is"):
        read(path)
    path.write_bytes(gzip.compress(rows(50)))
    read(path)


@pytest.mark.parametrize("read", [read_table, History.read])
def test_a_parquet_table_is_refused_by_what_it_says_of_itself(read, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    same = pa.array([1.0]).take(pa.array([0] * 100_000))
    pq.write_table(pa.table({"a": same, "action": same, "reward": same}), path)
    assert path.stat().st_size < 10_000
    monkeypatch.setenv("MELEE_MAX_BYTES", "2000000")
    with pytest.raises(DataError, match="100,000 rows of 3 columns, 2,400,000 bytes; the limit is"):
        read(path)


def test_columns_are_counted_before_anything_else_is_done(tmp_path, monkeypatch):
    n = 200_000
    names = [f"c{i}" for i in range(n)]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    header = "".join(f"@attribute {name} numeric\n" for name in names)
    (tmp_path / "t.arff").write_text(f"@relation r\n{header}@data\n")
    for name in ["t.csv", "t.arff"]:
        began = time.perf_counter()
        with pytest.raises(
            DataError, match="200,000 columns; the limit is 100,000: set MELEE_MAX_C"
        ):
            read_table(tmp_path / name)
        assert time.perf_counter() - began < 10.0
    monkeypatch.setenv("MELEE_MAX_COLUMNS", "3")
    pq.write_table(pa.table({name: [1.0, 2.0] for name in "abcd"}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="4 columns; the limit is 3"):
        read_table(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="4 columns; the limit is 3"):
        History.read(tmp_path / "t.parquet")


def test_a_line_of_a_table_is_not_read_beyond_its_limit(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    long = "x" * 200_000  # more than Python's csv takes by itself
    rows = "".join(f"{i % 3},{'yes' if i % 3 else 'no'}\n" for i in range(40))
    path.write_text(f"a,target\n{long},yes\n{rows}")
    assert read_table(path).n_rows == 41
    monkeypatch.setenv("MELEE_MAX_LINE", "1000")
    with pytest.raises(
        DataError, match=r"line 2 has more than 1,000 characters; the limit is 1,000"
    ):
        read_table(path)


def test_names_that_appear_twice_are_found_in_linear_time(tmp_path):
    names = ",".join(f'"n{i}": 1' for i in range(100_000))
    (tmp_path / "log.jsonl").write_text(f'{{{names}, "n99999": 1}}\n')
    began = time.perf_counter()
    with pytest.raises(DataError, match="the name 'n99999' appears twice"):
        History.read(tmp_path / "log.jsonl", strict=True)
    assert time.perf_counter() - began < 5.0


def test_blanks_within_a_value_of_an_arff_file_cost_no_more_than_other_characters():
    line = "1, 'x'\n"
    text = ARFF.replace("{x,y}", "string") + line + f"2, a{' ' * 200_000}b\n"
    began = time.perf_counter()
    frame = read_arff(text, source="t.arff")
    assert time.perf_counter() - began < 5.0
    assert frame["t"].str.len().tolist() == [1, 200_002]


@pytest.mark.parametrize(
    "text", ["[" * 101, "[" * 101 + "]" * 101, '{"a":' * 101 + "1" + "}" * 101]
)
def test_what_nests_too_deeply_is_refused(text, monkeypatch):
    with pytest.raises(
        InputError, match="nested too deeply; the limit is 100: set MELEE_MAX_DEPTH"
    ):
        check_depth(text)
    monkeypatch.setenv("MELEE_MAX_DEPTH", "101")
    check_depth(text)


@pytest.mark.parametrize(
    "value",
    [[[]] * 500, {str(i): [{}] for i in range(200)}, "[" * 500, '\\"[' * 300, ["]", "["] * 300],
)
def test_breadth_and_brackets_in_texts_are_no_depth(value):
    check_depth(json.dumps(value))


def test_a_policy_whose_weights_unpack_to_too_much_is_refused(tmp_path, monkeypatch):
    import shutil

    from melee.artefact import locate

    shutil.copytree(locate("paper"), tmp_path / "policy")
    manifest = json.loads((tmp_path / "policy" / "manifest.json").read_text())
    monkeypatch.setenv("MELEE_MAX_BYTES", "10")
    with pytest.raises(DataError, match=r"it unpacks to .* bytes; the limit is 10"):
        load(
            str(tmp_path / "policy"),
            kind=manifest["kind"],
            schema=tuple(manifest["schema"]),
            shapes={},
        )
