import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from melee.datasets import describe, family, load_suite, uses
from melee.datasets.openml import Stored
from melee.datasets.payments import Clicks
from melee.datasets.production import CLEAR, clarity, production
from melee.datasets.uses import USES
from melee.errors import DataError, UnknownNameError
from melee.shares import uniform_and_best

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
GOOD = "x,z,target\n1,a,0\n2,b,1\n3,a,1\n4,b,0\n"


def manifest(folder, *rows):
    with (folder / "MANIFEST.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_the_bundled_suite_needs_no_network():
    suite = load_suite("bundled")
    tasks = [entry.load() for entry in suite]
    assert [(t.name, t.n_rows, t.n_actions) for t in tasks] == [
        ("iris", 150, 3),
        ("wine", 178, 3),
        ("breast_cancer", 569, 2),
        ("digits", 1797, 10),
    ]
    assert [entry.n_rows for entry in suite] == [task.n_rows for task in tasks]
    assert tasks[0].action_names == ("setosa", "versicolor", "virginica")
    assert tasks[3].action_names == tuple("0123456789")


def test_the_paper_suite_has_the_300_datasets_in_the_papers_order():
    suite = load_suite("paper300")
    assert len(suite) == len(set(suite.names)) == 300
    ids = [int(entry.source.removeprefix("OpenML ")) for entry in suite]
    assert len(set(ids)) == 300
    assert ids[:4] == [46, 716, 726, 754]
    assert ids[-1] == 807
    assert suite[0].n_rows is None  # the paper's 100 rows contradict OpenML
    sizes = [entry.n_rows or 0 for entry in suite[1:]]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (100, 8192)


def test_the_production_suite_is_known_without_making_its_tasks(monkeypatch):
    monkeypatch.setattr(uses, "task_of", None)  # what would make one
    rows = describe(load_suite("production"))
    assert 36 <= len(rows) <= 44
    assert all(row.n_rows and row.n_actions and row.cached and not row.problem for row in rows)
    assert ("clicks-1pct-10-tree", 100_030, 6, 10) in [
        (row.name, row.n_rows, row.n_features, row.n_actions) for row in rows
    ]


@pytest.mark.parametrize("name", [name for name, use in USES.items() if use.n_rounds <= 20_000])
def test_uses_are_what_their_names_say(name):
    entry = load_suite("production").entry(name)
    task = entry.load()
    use, expected = USES[name], task.expected
    assert expected is not None
    assert task.name == name
    assert (task.n_rows, task.n_actions) == (entry.n_rows, entry.n_actions)
    assert task.n_features == max(use.n_features, 1)
    assert f"-{use.n_features if 'features' in name else use.n_actions}" in name
    assert (use.effect == "none") != name.endswith(use.effect)
    assert task.ordered == name.startswith(("drift", "come-and-go"))
    assert (task.open is not None) == name.startswith("come-and-go")
    assert (task.delays is not None) == name.startswith("late")
    if "pct" in name and isinstance(use.pays, Clicks):
        percent = float(name.split("-")[1].removesuffix("pct"))
        assert 100 * expected.mean() == pytest.approx(percent, rel=0.1)
    uniform, best = uniform_and_best(expected, task.open)
    assert clarity(expected, (task.rewards - expected) ** 2, use.n_rounds, task.open) > 0.75 * CLEAR
    single = expected.mean(axis=0).max()  # what the best action earns if it is always chosen
    if use.n_features and not use.bad:
        assert single - uniform.mean() < 0.9 * (best - uniform).mean()


def test_a_use_is_always_the_same_and_keeps_its_rows_when_asked():
    entry = load_suite("production").entry("short-1000-5-mixed")
    task, kept = entry.load(), entry.load(keep_rows=True)
    assert task.content_hash == kept.content_hash
    assert task.rows is None
    assert kept.rows is not None
    assert len(kept.rows) == 1030
    assert task.expected is not None
    assert task.expected.mean() == pytest.approx(0.5005932562372492, rel=1e-9)  # on any machine


def test_a_use_does_not_depend_on_how_many_threads_multiply():
    code = "from melee.datasets.uses import load_use; print(load_use('{}').content_hash)"
    hashes = set()
    for threads in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", code.format("ratings-6-mixed")],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(told.stdout)
    assert len(hashes) == 1


def test_uses_of_the_suite_are_not_those_of_training():
    suite = load_suite("production").entry("ab-10pct-2").load()
    assert all(suite.content_hash != production(seed=s).content_hash for s in range(3))


def test_listing_the_paper_suite_fetches_nothing(tmp_path):
    (tmp_path / "openml").mkdir()
    about = Stored(716, "fri_c3_100_50", "1", "binaryClass", 100, 50, 2, 3, "0" * 64)
    (tmp_path / "openml" / "716.json").write_text(json.dumps(about.__dict__))
    (tmp_path / "openml" / "716.parquet").write_bytes(b"PAR")
    rows = describe(load_suite("paper300", cache=tmp_path))
    assert [row.name for row in rows if row.cached] == ["fri_c3_100_50"]
    assert (rows[1].n_rows, rows[1].n_features, rows[1].n_actions) == (100, 50, 2)
    assert (rows[2].n_rows, rows[2].n_features, rows[2].n_actions) == (100, None, None)
    assert all(row.source.startswith("OpenML ") and not row.problem for row in rows)


def test_a_directory_without_manifest_offers_every_readable_file(tmp_path):
    for name in ("b.csv", "a.tsv", "a.csv", "notes.txt"):
        (tmp_path / name).write_text(GOOD.replace(",", "\t") if name == "a.tsv" else GOOD)
    (tmp_path / "broken.csv").write_text("x,target\n1,2,3\n")
    (tmp_path / "inner").mkdir()
    suite = load_suite(tmp_path)
    assert suite.name == tmp_path.name
    assert suite.names == ["a.csv", "a.tsv", "b", "broken"]
    assert suite.entry("a.tsv").load().content_hash == suite.entry("b").load().content_hash
    with pytest.raises(DataError, match=r"broken\.csv: line 2 has 3 fields"):
        suite.entry("broken").load()
    rows = describe(suite)
    assert [(r.n_rows, r.n_features, r.n_actions) for r in rows] == [(4, 3, 2)] * 3 + [(None,) * 3]
    assert "line 2 has 3 fields" in rows[3].problem


def test_a_manifest_names_the_datasets_and_columns_to_leave_out(tmp_path):
    for name in ("one.csv", "two.csv", "three.csv"):
        (tmp_path / name).write_text(GOOD)
    shared = {"name": "quake", "id_like_columns": "[]", "rows_got": 4, "features": 2, "classes": 2}
    manifest(
        tmp_path,
        shared | {"file": "one.csv", "openml_id": 772},
        shared | {"file": "two.csv", "openml_id": 948},
        shared | {"file": "gone.csv", "openml_id": ""},
        shared | {"file": "three.csv", "name": "fri_c0_4_2", "id_like_columns": '["z"]'},
    )
    suite = load_suite(tmp_path)
    assert suite.names == ["quake-772", "quake-948", "quake-gone", "fri_c0_4_2"]
    assert [e.family for e in suite] == ["openml-772-948"] * 2 + ["quake", "fri_c"]
    assert suite.entry("fri_c0_4_2").load().feature_names == ("x",)
    assert suite.entry("quake-948").load().name == "quake-948"
    with pytest.raises(DataError, match="there is no such file"):
        suite.entry("quake-gone").load()
    assert [(r.n_rows, r.n_features, r.n_actions) for r in describe(suite)] == [(4, 2, 2)] * 4


def test_a_manifest_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    manifest(tmp_path, {"path": "a.csv", "name": "a"})
    with pytest.raises(DataError, match=r"MANIFEST\.csv: there is no column 'file'; it has path"):
        load_suite(tmp_path)
    manifest(tmp_path, {"file": "a.csv", "name": "a", "id_like_columns": "x"})
    with pytest.raises(DataError, match="id_like_columns of a is 'x'; expected a JSON list"):
        load_suite(tmp_path)[0].load()


def test_an_unknown_suite_is_refused_with_what_there_is():
    sentence = "unknown suite 'papers300'; did you mean 'paper300'.*production.*, or a directory"
    with pytest.raises(UnknownNameError, match=sentence):
        load_suite("papers300")
    with pytest.raises(UnknownNameError, match="unknown dataset in suite bundled 'irish'"):
        load_suite("bundled").entry("irish")


def test_an_empty_directory_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"holds no datasets; put files there that end in \.csv"):
        load_suite(tmp_path)


def test_a_slice_of_a_suite_is_a_suite():
    assert load_suite("bundled")[1:3].names == ["wine", "breast_cancer"]


def test_families_gather_near_duplicates():
    assert family("fri_c4_1000_10") == family("fri_c0_100_5") == "fri_c"
    assert family("a", 1049) == family("b", 1454) != family("b", 1455)


def test_importing_the_package_reads_no_heavy_library():
    code = "import sys, melee.datasets; print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = ["pandas", "sklearn", "pyarrow", "numba"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.skipif(not SHARED.exists(), reason="the shared datasets are not beside the project")
@pytest.mark.parametrize("part", ["", "multiclass"])
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_shared_datasets_load_as_their_manifest_says(part, every):
    with (SHARED / part / "MANIFEST.csv").open(newline="") as file:
        about = {row["file"]: row for row in csv.DictReader(file)}
    suite = load_suite(SHARED / part)
    assert len(suite) == len(set(suite.names)) == len(about)
    for entry in list(suite)[::every]:
        row, task = about[entry.source], entry.load()
        assert task.name == entry.name
        assert (task.n_rows, task.n_actions) == (int(row["rows_got"]), int(row["classes"]))
        assert task.rewards.sum(axis=0).tolist() == json.loads(row["class_counts"]), task.name
        left_out = json.loads(row["id_like_columns"])
        assert not [f for f in task.feature_names if f.split("=")[0] in left_out], task.name


@pytest.mark.skipif(not SHARED.exists(), reason="the shared datasets are not beside the project")
def test_the_shared_datasets_are_named_as_in_the_paper_suite():
    paper = {entry.source: entry for entry in load_suite("paper300")}
    with (SHARED / "MANIFEST.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            entry = paper[f"OpenML {row['openml_id']}"]
            assert entry.family == family(row["name"], int(row["openml_id"]))
            assert entry.n_rows == int(row["rows_got"])
