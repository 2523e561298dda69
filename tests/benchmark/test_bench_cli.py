import csv
import errno
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from melee.benchmark.files import sentences
from melee.benchmark.run import load_results
from melee.benchmark.store import CellStore
from melee.cli import app
from melee.cli import benchmark as commands
from melee.datasets import read_table
from melee.errors import MeleeError
from melee.statistics import compare_pairs
from melee.statistics.matrix import TESTS
from tests.benchmark.made import (
    SPECS,
    InlineEngine,
    NoEngine,
    bench,
    is_running,
    wait_until,
    workers_of,
    write_table,
)


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def bench_arguments(suite, out, *rest):
    given = ["bench", "--suite", suite, "--out", out, "--explorers", ",".join(SPECS)]
    return [*given, "--seeds", 2, "--no-a-a", "--workers", 2, *rest]


@pytest.fixture
def inline(monkeypatch):
    """Runs play in this process: these tests are about what is said."""
    monkeypatch.setattr("melee.benchmark.engines.engine", lambda *_, **__: InlineEngine())


@pytest.fixture
def no_figures(monkeypatch):
    """A report of its page and its tables: figures take a second or two."""
    monkeypatch.setattr("melee.report.charts.figures", lambda data: {})


@pytest.fixture(scope="module")
def finished(suite, tmp_path_factory):
    """The directory of a run by the command line, and what was said."""
    out = tmp_path_factory.mktemp("cli") / "out"
    return out, call(*bench_arguments(suite, out))


def test_a_run_says_what_it_did_and_where_the_time_went(finished, expected):
    out, said = finished
    assert said.exit_code == 0
    assert said.stdout == ""
    assert "36 of 36 cells run" in said.stderr
    assert "with 2 processes (start-up" in said.stderr
    assert "overhead outside the compiled loop" in said.stderr
    assert f"18 cells failed; melee report {out} says which and why" in said.stderr
    assert load_results(CellStore.read(out)).fingerprint() == expected.fingerprint()


def test_the_same_command_again_does_nothing(finished, suite, monkeypatch):
    out, _ = finished
    monkeypatch.setattr("melee.benchmark.engines.engine", lambda *_, **__: NoEngine())
    said = call(*bench_arguments(suite, out))
    assert said.exit_code == 0
    assert "all 36 cells were done before" in said.stderr
    assert "18 cells failed" in said.stderr


def test_failed_cells_are_tried_again_when_asked(finished, suite, tmp_path, inline):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    said = call(*bench_arguments(suite, out, "--retry-failed"))
    assert "18 of 36 cells run" in said.stderr


COLUMNS = ["dataset", "n_rounds", "n_features", "n_actions", "explorer", "seed"]
COLUMNS += ["mean_reward", "seconds", "expected_reward", "share"]


def test_results_have_one_row_per_run_in_every_format(finished, expected):
    out, _ = finished
    rows = json.loads(call("results", out, "--format", "json").stdout)
    assert [list(row) for row in rows] == [COLUMNS] * 18
    for row in rows:
        one = expected.cell(row["dataset"], row["explorer"], row["seed"])
        assert row["mean_reward"] == one.mean_reward
        assert row["n_rounds"] == len(one.rewards)
    said = call("results", out, "--format", "csv")
    text = list(csv.reader(io.StringIO(said.stdout)))
    assert text[0] == COLUMNS
    shown = [["" if row[name] is None else str(row[name]) for name in COLUMNS] for row in rows]
    assert shown == text[1:]
    assert "18 cells failed and are left out" in said.stderr
    table = call("results", out).stdout
    assert all(name in table for name in ["dataset", "explorer", "three", "linucb"])


def test_compare_has_one_row_per_pair_in_every_format(finished):
    out, _ = finished
    rows = json.loads(call("compare", out, "--format", "json").stdout)
    columns = ["row", "column", "wins", "losses", "wins_over_seeds", "losses_over_seeds"]
    assert [list(row) for row in rows] == [columns] * len(rows)
    pairs = {frozenset([row["row"], row["column"]]) for row in rows}
    assert pairs == {frozenset(pair) for pair in itertools.combinations(SPECS, 2)}
    text = call("compare", out, "--format", "csv").stdout.splitlines()
    assert text[0] == ",".join(columns)
    assert len(text) == len(rows) + 1
    assert "wins" in call("compare", out).stdout


def test_compare_counts_by_the_test_that_holds_its_level_and_by_the_papers(finished, expected):
    out, _ = finished
    rows = json.loads(call("compare", out, "--format", "json").stdout)
    for test, end in zip(TESTS, ["", "_over_seeds"], strict=True):
        pairs = compare_pairs(expected, test=test)
        assert [(pair.row, pair.column, pair.wins, pair.losses) for pair in pairs] == [
            (row["row"], row["column"], row[f"wins{end}"], row[f"losses{end}"]) for row in rows
        ]


def test_compare_says_what_one_seed_cannot_tell(suite, tmp_path, inline):
    out = tmp_path / "out"
    call(*bench_arguments(suite, out, "--seeds", 1, "--explorers", ",".join(SPECS[:2])))
    said = call("compare", out, "--format", "json")
    (row,) = json.loads(said.stdout)
    assert row["wins"] is not None
    assert row["wins_over_seeds"] is None
    assert "needs two or more: --seeds 3" in said.stderr


@pytest.mark.usefixtures("no_figures")
def test_the_report_says_how_many_datasets_are_complete_and_which_are_not(finished, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    assert call("report", out).exit_code == 0
    page = (out / "report.html").read_text()
    assert "3 of 6" in page
    for sentence in ["short", "30 rows are reserved for calibration", "only the class"]:
        assert sentence in page


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_run_that_was_cut_short_has_a_report(share, finished, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    log = out / "cells.log"
    log.write_bytes(log.read_bytes()[: int(share * log.stat().st_size)])
    assert call("results", out).exit_code == 0
    assert call("report", out).exit_code == 0
    page = (out / "report.html").read_text()
    assert "0 of 6" in page
    assert "not run yet" in page
    with pytest.raises(MeleeError, match=r"none of the 6 datasets has a run .* finish"):
        call("compare", out)


def test_a_report_that_does_not_fit_on_the_disk_gets_a_sentence(finished, tmp_path, monkeypatch):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MeleeError, match=r"cannot be written \(No space left on device\); make"):
        call("report", out)
    assert not list(out.rglob("*.tmp"))


def test_the_hash_of_the_results_is_printed(finished, expected, suite, tmp_path, inline):
    line = f"hash of the results: {expected.fingerprint()}"
    assert line in finished[1].stderr.splitlines()
    out = tmp_path / "out"
    said = call(*bench_arguments(suite, out, "--max-rounds", 20))
    (other,) = [one for one in said.stderr.splitlines() if one.startswith("hash of")]
    assert other != line
    again = call(*bench_arguments(suite, out, "--max-rounds", 20))  # with nothing to run
    assert other in again.stderr.splitlines()


def test_a_damaged_store_json_costs_no_cell(finished, suite, tmp_path, monkeypatch):
    monkeypatch.setattr("melee.benchmark.engines.engine", lambda *_, **__: NoEngine())
    for damage in ("{torn", "", "[]", None):
        out = tmp_path / f"out {damage}"
        shutil.copytree(finished[0], out)
        file = out / "store.json"
        if damage is None:
            file.unlink()
        else:
            file.write_text(damage)
        said = call("results", out, "--format", "csv")
        assert len(said.stdout.splitlines()) == 19
        lost = f"melee: {file}: lost or damaged; the cells are in cells.log, and none is lost by it"
        assert f"{lost}; run melee bench again to mend it" in said.stderr
        assert "36 cells are done" in call(*bench_arguments(suite, out, "--dry-run")).stdout
        said = call(*bench_arguments(suite, out))
        assert f"{lost}; it is made again" in said.stderr
        assert "all 36 cells were done before" in said.stderr
        assert file.read_bytes() == (finished[0] / "store.json").read_bytes()
        assert "lost or damaged" not in call("results", out).stderr


def test_one_hostile_file_does_not_stop_the_others(tmp_path, inline, monkeypatch):
    suite, out = tmp_path / "suite", tmp_path / "out"
    suite.mkdir()
    write_table(suite / "good.csv", 60)
    (suite / "blank.csv").write_text("  \n ")
    rows = "".join(f"{i % 3},c{i % 2}\n" for i in range(60))
    (suite / "digits.csv").write_text(f"a,target\n{'9' * 400},c1\n{rows}")
    labels = pa.table({"a": range(60), "target": [[1, 2]] * 60})
    pq.write_table(labels, suite / "lists.parquet")
    (suite / "unforeseen.arff").write_text("x")

    def fail(*_, **__):
        raise RuntimeError("a parser's own trouble")

    monkeypatch.setattr("melee.datasets.files.read_arff", fail)
    arguments = ["--explorers", "uniform", "--seeds", 1, "--no-a-a"]
    said = call("bench", "--suite", suite, "--out", out, *arguments)
    assert said.exit_code == 0
    assert "4 cells failed" in said.stderr
    problems = {one.dataset: one.problem for one in load_results(CellStore.read(out))}
    assert problems.pop("good") == ""
    for name, sentence in {
        "blank": "the file is blank",
        "digits": "holds inf in data row 1",
        "lists": "column 'target' holds a list or a structure in a cell",
        "unforeseen": "the file cannot be parsed (a parser's own trouble)",
    }.items():
        assert sentence in problems.pop(name)
    assert problems == {}


def test_an_error_that_no_reader_foresaw_is_a_datasets_problem(tmp_path, inline, monkeypatch):
    suite, out = tmp_path / "suite", tmp_path / "out"
    suite.mkdir()
    write_table(suite / "good.csv", 60)
    (suite / "bad.csv").write_text("a,target\n1,x\n")
    read = read_table

    def fail(path, **rest):
        if path.name == "bad.csv":
            raise ZeroDivisionError("1/0")
        return read(path, **rest)

    monkeypatch.setattr("melee.datasets.suites.read_table", fail)
    arguments = ["--explorers", "uniform", "--seeds", 1, "--no-a-a"]
    assert call("bench", "--suite", suite, "--out", out, *arguments).exit_code == 0
    problems = {one.dataset: one.problem for one in load_results(CellStore.read(out))}
    assert problems == {"bad": "ZeroDivisionError: 1/0", "good": ""}


@pytest.mark.usefixtures("no_figures")
def test_a_name_that_is_a_formula_is_a_text_to_spreadsheets(tmp_path, inline):
    suite, out = tmp_path / "suite", tmp_path / "out"
    suite.mkdir()
    for i, name in enumerate(["=HYPERLINK(1)", "-x", "@y", "plain"]):
        write_table(suite / f"{name}.csv", 60, seed=i)
    call("bench", "--suite", suite, "--out", out, "--explorers", "uniform", "--seeds", 1)
    rows = list(csv.reader(io.StringIO(call("results", out, "--format", "csv").stdout)))
    assert {row[0] for row in rows[1:]} == {"'=HYPERLINK(1)", "'-x", "'@y", "plain"}
    assert [row[1:4] for row in rows[1:]] == [["30", "3", "2"]] * 4
    call("report", out)
    text = (out / "tables" / "results.csv").read_text()
    assert "\n'=HYPERLINK(1),30," in text
    names = [row["dataset"] for row in json.loads(call("results", out, "--format", "json").stdout)]
    assert "=HYPERLINK(1)" in names


def test_a_dry_run_shows_the_plan_and_an_estimate_and_leaves_nothing(suite, tmp_path):
    out = tmp_path / "out"
    said = call(*bench_arguments(suite, out, "--dry-run"))
    assert said.exit_code == 0
    assert "6 datasets, 3 of them unusable; 3 explorers; 2 seeds; no A/A check" in said.stdout
    assert "short: dataset short: 30 rows are reserved" in said.stdout
    assert "36 cells and 1,080 rounds in all; 0 cells are done" in said.stdout
    assert "about 1 seconds on 2 processes" in said.stdout
    assert not out.exists()


def test_a_dry_run_counts_what_is_done(finished, suite):
    said = call(*bench_arguments(suite, finished[0], "--dry-run"))
    assert "36 cells are done" in said.stdout
    said = call(*bench_arguments(suite, finished[0], "--dry-run", "--a-a"))
    assert "every cell twice, for the A/A check" in said.stdout
    assert "72 cells and 2,160 rounds in all; 36 cells are done" in said.stdout


def test_progress_outside_a_terminal_is_a_line_now_and_then(suite, tmp_path, inline, monkeypatch):
    monkeypatch.setattr(commands._Progress, "every", 0.0)
    said = call(*bench_arguments(suite, tmp_path / "out"))
    lines = [line for line in said.stderr.splitlines() if "a second, about" in line]
    assert lines[-1].startswith("melee: 36 of 36 cells, ")
    assert lines[-1].endswith("about 0 seconds left")
    assert "\x1b" not in said.stderr


def test_damage_is_named_and_mended(finished, suite, tmp_path, inline):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    log = out / "cells.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    said = call("results", out, "--format", "csv")
    assert f"melee: {log}: bytes" in said.stderr
    assert "run melee bench again to mend it" in said.stderr
    said = call(*bench_arguments(suite, out))
    assert f"melee: {log}: bytes" in said.stderr
    assert "1 of 36 cells run" in said.stderr
    assert "damaged" not in call("results", out).stderr


def test_a_second_driver_says_so_and_stops(finished, suite):
    out, _ = finished
    with CellStore.open(out), pytest.raises(MeleeError, match="another run is writing there"):
        call(*bench_arguments(suite, out))


def test_bad_input_gets_a_sentence_and_makes_no_directory(suite, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    out = tmp_path / "out"
    for arguments, sentence in [
        (["--suite", tmp_path / "empty"], "holds no datasets; put files there"),
        (["--suite", "papr300"], "unknown suite 'papr300'; did you mean 'paper300'"),
        (["--explorers", "linucp"], "did you mean 'linucb'"),
        (["--engine", "dusk"], "did you mean 'dask'"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler is for --engine dask"),
        (["--engine", "dask", "--timeout", "5"], "--timeout is for --engine local"),
    ]:
        with pytest.raises(MeleeError, match=sentence):
            call(*bench_arguments(suite, out, *arguments))
        assert not out.exists()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MeleeError, match=r"melee-bandits\[dask\]"):
        call(*bench_arguments(suite, out, "--engine", "dask"))
    for command in ["results", "compare", "report"]:
        with pytest.raises(MeleeError, match="there is no such directory; melee bench --out"):
            call(command, out)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    for command in ["results", "compare", "report"]:
        with pytest.raises(MeleeError, match="no benchmark; give one that melee bench --out has"):
            call(command, tmp_path / "mine")
    for rest in [[], ["--dry-run"]]:
        with pytest.raises(MeleeError, match="it holds other files and no benchmark"):
            call(*bench_arguments(suite, tmp_path / "mine", *rest))


def test_a_full_disk_ends_a_run_that_can_be_resumed(suite, tmp_path, inline, monkeypatch, expected):
    out, n_added, add = tmp_path / "out", [], CellStore.add

    def full(self, record):
        n_added.append(record)
        if len(n_added) > 25:
            with sentences(self.directory):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        add(self, record)

    monkeypatch.setattr(CellStore, "add", full)
    with pytest.raises(MeleeError, match="no space left on the disk; what was finished is kept"):
        call(*bench_arguments(suite, out))
    assert len(CellStore.read(out)) == 25
    monkeypatch.setattr(CellStore, "add", add)
    assert "11 of 36 cells run" in call(*bench_arguments(suite, out)).stderr
    assert load_results(CellStore.read(out)).fingerprint() == expected.fingerprint()


@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "driver"])
def test_ctrl_c_leaves_a_store_that_is_resumed(to_all, suite, tmp_path):
    out, n_seeds = tmp_path / "out", 60
    command = [sys.executable, "-m", "melee.cli", *map(str, bench_arguments(suite, out))]
    command[command.index("--seeds") + 1] = str(n_seeds)
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as driver:
        log = out / "cells.log"
        try:
            if to_all:  # while the workers start, which takes them a while
                wait_until(lambda: len(workers_of(driver.pid)) == 2)
                time.sleep(0.3)
            else:
                wait_until(lambda: log.exists() and b'"problem": ""' in log.read_bytes())
            workers = workers_of(driver.pid)
            (os.killpg if to_all else os.kill)(driver.pid, signal.SIGINT)
            _, said = driver.communicate(timeout=20)
        finally:
            driver.kill()
    assert driver.returncode == 130
    assert len(workers) == 2
    assert not any(is_running(pid) for pid in workers)
    store = CellStore.read(out)
    assert not store.damage
    assert "Traceback" not in said
    *_, line = said.splitlines()
    assert line == (
        f"melee: interrupted with {len(store):,} cells kept in {out}; run the same command to go on"
    )
    if not to_all:
        found = bench(suite, out, n_seeds=n_seeds, engine=InlineEngine())
        whole = bench(suite, tmp_path / "whole", n_seeds=n_seeds, engine=InlineEngine())
        assert found.fingerprint() == whole.fingerprint()
