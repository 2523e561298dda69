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

import pytest
from typer.testing import CliRunner

from melee.benchmark.files import sentences
from melee.benchmark.run import load_results
from melee.benchmark.store import Store
from melee.cli import app
from melee.cli import benchmark as commands
from melee.errors import MeleeError
from tests.benchmark.made import (
    SPECS,
    InlineEngine,
    NoEngine,
    bench,
    is_running,
    wait_until,
    workers_of,
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
    assert load_results(Store.read(out)).fingerprint() == expected.fingerprint()


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
COLUMNS += ["mean_reward", "seconds"]


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
    assert [[str(row[name]) for name in COLUMNS] for row in rows] == text[1:]
    assert "18 cells failed and are left out" in said.stderr
    table = call("results", out).stdout
    assert all(name in table for name in ["dataset", "explorer", "three", "linucb"])


def test_compare_has_one_row_per_pair_in_every_format(finished):
    out, _ = finished
    rows = json.loads(call("compare", out, "--format", "json").stdout)
    assert [list(row) for row in rows] == [["row", "column", "wins", "losses"]] * len(rows)
    pairs = {frozenset([row["row"], row["column"]]) for row in rows}
    assert pairs == {frozenset(pair) for pair in itertools.combinations(SPECS, 2)}
    text = call("compare", out, "--format", "csv").stdout.splitlines()
    assert text[0] == "row,column,wins,losses"
    assert len(text) == len(rows) + 1
    assert "wins" in call("compare", out).stdout


def test_the_report_says_how_many_datasets_are_complete_and_which_are_not(finished, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    assert call("report", out).exit_code == 0
    page = (out / "report.html").read_text()
    assert "3 of 6" in page
    for sentence in ["short", "30 rows are reserved for calibration", "only the class"]:
        assert sentence in page


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
    with Store.open(out), pytest.raises(MeleeError, match="another run is writing there"):
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
    for rest in [[], ["--dry-run"]]:
        with pytest.raises(MeleeError, match="it holds other files and no benchmark"):
            call(*bench_arguments(suite, tmp_path / "mine", *rest))


def test_a_full_disk_ends_a_run_that_can_be_resumed(suite, tmp_path, inline, monkeypatch, expected):
    out, n_added, add = tmp_path / "out", [], Store.add

    def full(self, record):
        n_added.append(record)
        if len(n_added) > 25:
            with sentences(self.directory):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        add(self, record)

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(MeleeError, match="no space left on the disk; what was finished is kept"):
        call(*bench_arguments(suite, out))
    assert len(Store.read(out)) == 25
    monkeypatch.setattr(Store, "add", add)
    assert "11 of 36 cells run" in call(*bench_arguments(suite, out)).stderr
    assert load_results(Store.read(out)).fingerprint() == expected.fingerprint()


@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "driver"])
def test_ctrl_c_leaves_a_store_that_is_resumed(to_all, suite, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "melee.cli", *map(str, bench_arguments(suite, out))]
    command[command.index("--seeds") + 1] = "200"
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
    store = Store.read(out)
    assert not store.damage
    assert "Traceback" not in said
    *_, line = said.splitlines()
    assert line == (
        f"melee: interrupted with {len(store):,} cells kept in {out}; run the same command to go on"
    )
    if not to_all:
        found = bench(suite, out, n_seeds=200, engine=InlineEngine())
        whole = bench(suite, tmp_path / "whole", n_seeds=200, engine=InlineEngine())
        assert found.fingerprint() == whole.fingerprint()
