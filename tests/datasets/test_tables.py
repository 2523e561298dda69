import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from melee.datasets import read_rewards, read_table, table_to_task
from melee.datasets.arff import read_arff
from melee.errors import DataError, InputError


def write(folder, name, text):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def features(task):
    return {name: task.contexts[:, i].tolist() for i, name in enumerate(task.feature_names)}


def quoted(text):
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def arff(frame):
    """The frame as ARFF, text columns as nominal ones."""
    lines = ["% a comment", "@RELATION 'a table'", ""]
    for name, column in frame.items():
        levels = column.dropna().unique()
        kind = "REAL" if column.dtype == float else "{" + ",".join(map(quoted, levels)) + "}"
        lines.append(f"@ATTRIBUTE {quoted(name)} {kind}")
    lines.append("@DATA")
    for row in frame.itertuples(index=False):
        cells = [v if isinstance(v, float) else quoted(v) for v in row]
        lines.append(", ".join("?" if pd.isna(v) else str(v) for v in cells))
    return "\n".join(lines)


# Any text a level may hold, but for line ends (ARFF has no way to write them), what reads as a
# number, and what stands for a missing value.
level = st.text(st.sampled_from("abc xyz,;'\"\\%{}?é"), min_size=1, max_size=6).filter(
    lambda s: s == s.strip() and s not in ("", "?")
)
number = st.one_of(st.floats(-1e6, 1e6), st.integers(-5, 5).map(float), st.just(np.nan))


@st.composite
def tables(draw):
    n_rows = draw(st.integers(4, 12))
    levels = draw(st.lists(level, min_size=2, max_size=3, unique=True))

    def column(values):
        return draw(st.lists(values, min_size=n_rows, max_size=n_rows))

    numbers = {f"n {i}": np.array(column(number)) for i in range(2)}
    labels = ["yes", "no", *column(st.sampled_from(["yes", "no", "it's"]))][:n_rows]
    numbers["row"] = np.arange(n_rows) * 1.5  # so that one column always remains
    return pd.DataFrame({**numbers, "kind": column(st.sampled_from(levels)), "class": labels})


@given(tables())
@settings(deadline=None, max_examples=60)
def test_csv_parquet_and_arff_give_the_same_task(tmp_path_factory, frame):
    folder = tmp_path_factory.mktemp("formats")
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "t.parquet")
    write(folder, "t.arff", arff(frame))
    write(folder, "t.arff.gz", arff(frame))
    first, *others = [read_table(path) for path in sorted(folder.iterdir())]
    assert len(others) == 5
    for task in others:
        assert task.name == first.name == "t"
        assert task.feature_names == first.feature_names
        assert task.action_names == first.action_names
        assert task.notes == first.notes
        assert_array_equal(task.contexts, first.contexts)
        assert_array_equal(task.rewards, first.rewards)


def test_numbers_truth_values_and_levels_become_columns():
    frame = pd.DataFrame(
        {
            "size": [1, 2, 3, 4],
            "alive": [True, False, True, True],
            "colour": ["red", "blue", "red", "blue"],
            "target": ["b", "a", "b", "a"],
        }
    )
    task = table_to_task(frame, "target")
    assert features(task) == {
        "size": [1, 2, 3, 4],
        "alive": [1, 0, 1, 1],
        "colour=blue": [0, 1, 0, 1],
        "colour=red": [1, 0, 1, 0],
    }
    assert task.action_names == ("a", "b")
    assert_array_equal(task.rewards, [[0, 1], [1, 0], [0, 1], [1, 0]])
    assert task.notes == ("encoded one column per level: colour (2)",)


def test_missing_values_are_filled_and_marked(tmp_path):
    path = write(tmp_path, "t.csv", "age,sex,ok,y\n10,f,True,0\n,f,,1\n30,?,False,0\n50,m,True,1\n")
    task = read_table(path)
    assert features(task) == {
        "age": [10, 30, 30, 50],
        "age is missing": [0, 1, 0, 0],
        "sex=f": [1, 1, 1, 0],
        "sex=m": [0, 0, 0, 1],
        "sex is missing": [0, 0, 1, 0],
        "ok": [1, 1, 0, 1],
        "ok is missing": [0, 1, 0, 0],
    }
    assert task.notes[-1] == (
        "filled missing values and marked them in a column of their own: age (1 rows, median), "
        "sex (1 rows, most frequent level), ok (1 rows, median)"
    )


def test_a_single_value_with_gaps_leaves_only_the_mark(tmp_path):
    path = write(tmp_path, "t.csv", "x,seen,word,y\n1,7,a,0\n2,,,1\n3,7,a,0\n4,,a,1\n")
    assert features(read_table(path)) == {
        "x": [1, 2, 3, 4],
        "seen is missing": [0, 1, 0, 1],
        "word is missing": [0, 1, 0, 0],
    }


def test_rare_levels_are_folded_and_said():
    rng = np.random.default_rng(0)
    city = np.array(["big"] * 500 + ["mid"] * 485 + [f"hamlet {i % 5}" for i in range(15)])
    many = rng.permutation(np.repeat([f"l{i:02d}" for i in range(25)], 40))
    frame = pd.DataFrame({"city": city, "many": many, "y": rng.integers(0, 2, 1000)})
    task = table_to_task(frame)
    names = list(task.feature_names)
    assert names[:3] == ["city=big", "city=mid", "city=other"]
    assert names[3:] == [f"many=l{i:02d}" for i in range(20)] + ["many=other"]
    assert task.contexts[:, names.index("city=other")].sum() == 15
    assert task.contexts[:, names.index("many=other")].sum() == 5 * 40
    assert "folded rare levels into 'other': city (5 of 7), many (5 of 25)" in task.notes


def test_a_single_rare_level_keeps_its_name():
    frame = pd.DataFrame({"c": ["t"] * 150 + ["f"] * 149 + ["odd"], "y": [0, 1] * 150})
    assert table_to_task(frame).feature_names == ("c=f", "c=odd", "c=t")


def test_folded_levels_join_a_level_that_is_called_other():
    values = ["other"] * 50 + ["a"] * 48 + ["rare", "scarce"]
    task = table_to_task(pd.DataFrame({"c": values, "y": [0, 1] * 50}))
    assert task.feature_names == ("c=a", "c=other")
    assert task.contexts[:, 1].sum() == 52


def test_columns_that_say_nothing_are_left_out_and_named():
    n = 40
    frame = pd.DataFrame(
        {
            "id": range(n),
            "row_id": range(1, n + 1),
            "who": [f"person {i}" for i in range(n)],
            "year": 2024,
            "void": np.nan,
            "when": pd.date_range("2024-01-01", periods=n),
            "x": np.arange(n) % 7,
            "y": [0, 1] * (n // 2),
        }
    )
    task = table_to_task(frame, "y")
    assert task.feature_names == ("x",)
    assert task.notes == (
        "left out columns whose value never changes: year, void",
        "left out columns that name the row: id, row_id, who, when",
    )


def test_counting_columns_stay_unless_they_are_called_id():
    n = 30
    frame = pd.DataFrame({"dose": range(n), "id": range(5, n + 5), "time_index": range(n)})
    assert table_to_task(frame.assign(y=[0, 1, 1] * 10)).n_features == 3


def test_columns_can_be_left_out_by_name(tmp_path):
    path = write(tmp_path, "t.csv", "a,b,y\n1,2,0\n3,4,1\n")
    task = read_table(path, drop=["a"])
    assert (task.feature_names, task.notes) == (("b",), ("left out as asked: a",))
    with pytest.raises(DataError, match="no column 'c' to leave out; the columns are a, b, y"):
        read_table(path, drop=["c"])


@pytest.mark.parametrize(
    ("header", "chosen"),
    [("a,b,c", "c"), ("a,label,c", "label"), ("class,target,c", "target"), ("Class,b,c", "Class")],
)
def test_the_target_is_found_by_name_or_is_the_last_column(tmp_path, header, chosen):
    path = write(tmp_path, "t.csv", f"{header}\n0,1,0\n1,0,1\n1,1,1\n")
    assert read_table(path).provenance == f"t.csv, labels in '{chosen}'"


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([10, 9, 2], ("2", "9", "10")),
        ([1.0, 0.5, 10.0], ("0.5", "1", "10")),
        (["10", "9", "b", "a"], ("9", "10", "a", "b")),
        ([True, False], ("False", "True")),
        (pd.Categorical([3, 11, 3]), ("3", "11")),
        (pd.array([7, None, 2], dtype="Int64"), ("2", "7")),
    ],
)
def test_labels_of_any_type_are_sorted_with_numbers_in_numeric_order(labels, names):
    frame = pd.DataFrame({"x": np.arange(len(labels)) / 2, "y": labels})
    assert table_to_task(frame, "y").action_names == names


def test_rows_without_a_label_are_left_out(tmp_path):
    path = write(tmp_path, "t.csv", "x,y\n1,a\n2,\n3,b\n4,?\n5,a\n")
    task = read_table(path)
    assert task.contexts.ravel().tolist() == [1, 3, 5]
    assert task.notes == ("left out 2 rows without a label",)


def test_reward_columns_are_taken_as_they_are(tmp_path):
    text = "reward:a,age,reward:b,sex\n0.25,1,0.5,f\n1,2,0,m\n0,3,0.125,f\n0,5,1,m\n"
    path = write(tmp_path, "t.csv", text)
    task = read_table(path)
    assert task.action_names == ("a", "b")
    assert task.feature_names == ("age", "sex=f", "sex=m")
    assert_array_equal(task.rewards, [[0.25, 0.5], [1, 0], [0, 0.125], [0, 1]])
    assert read_rewards(path).content_hash == task.content_hash


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ("x,reward:a,reward:b\n1,2e200,0\n2,0,1\n", InputError, r"rewards hold 2e\+200 at row 0"),
        (
            "x,reward:a,reward:b\n1,,0\n2,0,1\n",
            DataError,
            r"'reward:a' holds no value in data row 1",
        ),
        ("x,reward:a,reward:b\n1,0,u\n2,0,v\n", DataError, r"'reward:b' holds text"),
        ("x,reward:a\n1,0\n2,1\n", InputError, "at least 2 to choose from"),
        ("x,y\n1,0\n2,1\n", DataError, "no column begins with 'reward:'; the columns are x, y"),
    ],
)
def test_rewards_that_cannot_be_used_are_refused(tmp_path, text, error, sentence):
    with pytest.raises(error, match=sentence):
        read_rewards(write(tmp_path, "t.csv", text))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("t.csv", "", "the file is empty; expected a header and rows"),
        ("t.csv", "\n\n", "the file is blank; expected a header and rows"),
        ("t.csv", "a,b\n", "there is a header but no rows"),
        ("t.csv", "a;b\n1;2\n", "there is only one column, 'a;b'.*separated by commas"),
        ("t.csv", "a,y\n1,2\n1\n", "line 3 has 1 fields and the header has 2"),
        ("t.csv", "a,y\n1,2\n1,2,3\n", "line 3 has 3 fields and the header has 2"),
        ("t.csv", "a,y\n1,2,3\n1,2,3\n", "line 2 has 3 fields and the header has 2"),
        ("t.csv.gz", "a,b,y\n1,2,0\n\n1,2\n", "line 4 has 2 fields and the header has 3"),
        ("t.csv", "a,y\n1,0\n2,0\n", "'y' holds only the class '0'; a task needs at least 2"),
        ("t.csv", f"a,y\n1,{'x' * 99}\n", r"only the class 'x{56}\.\.\.; a task needs"),
        ("t.csv", "a,y\n1,\n2,\n", "'y' holds no labels at all"),
        ("t.csv", "a,y\n1,0\ninf,1\n", "column 'a' holds inf in data row 2"),
        ("t.csv", "a,y\n1,0\n1,1\n", "no column is left.*never changes: a"),
        ("t.csv", "a,y\n" + "".join(f"{i},{i / 7}\n" for i in range(40)), "it is no class label"),
        ("t.xlsx", "x", r"cannot tell the format.*\.csv, \.csv\.gz.*\.parquet.*\.arff"),
        ("t.parquet", "PAR1 but not for long", "not a complete Parquet file"),
        (
            "t.arff",
            "@relation r\n@attribute a real\n1\n@data\n",
            "line 3 is '1'; expected @attribute",
        ),
        ("t.arff", "@relation r\n@attribute a real\n", "there is no @data line"),
        ("t.arff", "@data\n1\n", "declares no @attribute"),
        ("t.arff", "@attribute a real\n@attribute a real\n@data\n", "declares 'a' twice"),
        ("t.arff", "@attribute b relational\n@data\n", "'b' as relational, which cannot be read"),
        ("t.arff", "@attribute a real\n@attribute y {u,v}\n@data\n1,w\n", "line 4 has 'w' in 'y'"),
        ("t.arff", "@attribute a real\n@attribute y {u,v}\n@data\nz,u\n", "line 4 has 'z' in 'a'"),
        ("t.arff", "@attribute a real\n@attribute y {u,v}\n@data\n'z',u\n", "has 'z' in 'a'"),
        ("t.arff", "@attribute a real\n@attribute y {u,v}\n@data\n1\n", "line 4 has 1 values"),
        ("t.arff", "@attribute a real\n@attribute y {u,v}\n@data\n1,'u',2\n", "has 3 values"),
        ("t.arff", "@attribute a real\n@attribute y {u,v}\n@data\n{2 4}\n", "index from 0 to 1"),
        ("t.arff", "@attribute a real\n@attribute y {u,v}\n@data\n{0 4}\n1,u\n", "not sparse"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(tmp_path, name, text, sentence):
    with pytest.raises(DataError, match=rf"(?s)^[^\n]*t\.\w+.*{sentence}"):
        read_table(write(tmp_path, name, text))


def test_a_wrong_target_is_refused_with_the_columns(tmp_path):
    path = write(tmp_path, "t.csv", "a,b\n1,0\n2,1\n")
    with pytest.raises(DataError, match="no column 'y' to use as target; the columns are a, b"):
        read_table(path, target="y")


def test_missing_files_and_directories_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"gone\.csv: there is no such file"):
        read_table(tmp_path / "gone.csv")
    with pytest.raises(DataError, match="is a directory; read one of its files"):
        read_table(tmp_path)


@pytest.mark.parametrize("keep", [5, 30, -1])
def test_truncated_gzip_and_parquet_are_refused(tmp_path, keep):
    frame = pd.DataFrame({"x": np.arange(200) ** 2, "y": [0, 1] * 100})
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for path in list(tmp_path.iterdir()):
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(DataError, match=r"is cut off or damaged|not a complete Parquet file"):
            read_table(path)


def test_flipped_bits_in_gzip_are_refused(tmp_path):
    path = write(tmp_path, "t.csv.gz", "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(500)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"t\.csv\.gz"):
        read_table(path)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("x,y\né,0\nü,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8 text; save the file in UTF-8"):
        read_table(path)


def test_lists_in_cells_are_refused():
    frame = pd.DataFrame({"v": [[1, 2], [3, 4]], "y": [0, 1]})
    with pytest.raises(DataError, match="'v' holds a list in a cell; give every number a column"):
        table_to_task(frame, "y")


def test_sparse_arff_rows_are_filled_in():
    text = """@relation r
        @attribute a numeric
        @attribute 'b c' {zero, "on e", two}
        @attribute s string
        @attribute d date "yyyy-MM-dd"
        @data
        {}
        {0 2.5, 1 'on e', 2 'it\\'s'}
        {1 ?, 0 ?, 3 "2024-01-01"}
    """
    frame = read_arff(text, source="t.arff")
    assert frame["a"].tolist()[:2] == [0.0, 2.5]
    assert frame["b c"].tolist()[:2] == ["zero", "on e"]
    assert frame.isna().sum().tolist() == [1, 1, 2, 2]
    assert frame["s"].tolist()[1] == "it's"
    assert frame["d"].tolist()[2] == "2024-01-01"


def test_nominal_numbers_are_levels_not_numbers(tmp_path):
    text = "@attribute a {1,2}\n@attribute y {u,v}\n@data\n1 , u\n2,v\n2,u\n1,v\n"
    assert read_table(write(tmp_path, "t.arff", text)).feature_names == ("a=1", "a=2")


def test_a_byte_order_mark_and_spaces_after_commas_do_not_matter(tmp_path):
    path = write(tmp_path, "t.csv", "\ufeffx, y\n1, b\n2, a\n")
    task = read_table(path)
    assert (task.feature_names, task.action_names) == (("x",), ("a", "b"))
