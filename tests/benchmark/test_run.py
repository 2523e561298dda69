import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from melee.benchmark.cells import code_version
from melee.benchmark.run import estimate, load_results, make_plan, pending, run
from melee.benchmark.store import CellStore, Record
from melee.datasets import load_suite
from melee.loop import simulate
from melee.preparation import prepare
from tests.benchmark.made import (
    SPECS,
    UNUSABLE,
    USABLE,
    InlineEngine,
    NoEngine,
    bench,
    drive_until_killed,
    is_running,
    wait_until,
    workers_of,
    write_suite,
    write_table,
)


def test_a_cell_is_what_simulate_gives(suite, expected):
    prepared = prepare(load_suite(suite).entry("three").load(), seed=1)
    played = simulate(prepared, "linucb", seed=1)
    one = expected.cell("three", "linucb", 1)
    assert one.rewards.tolist() == played.rewards.tolist()
    assert (one.n_rounds, one.n_features, one.n_actions) == (90, 5, 3)
    assert one.mean_reward == played.mean_reward


def test_the_second_runs_of_an_a_a_check_play_the_same_rows_otherwise(suite, tmp_path):
    bench(suite, tmp_path, engine=InlineEngine(), a_a=True)
    store = CellStore.read(tmp_path)
    first, second = load_results(store), load_results(store, replicate=1)
    assert first.fingerprint() != second.fingerprint()
    assert first.cell("three", "linucb", 0).n_rounds == second.cell("three", "linucb", 0).n_rounds
    a, b = (r.cell("three", "uniform", 0).rewards.tolist() for r in (first, second))
    assert a != b


def test_failures_are_results(expected):
    assert expected.datasets == sorted(USABLE + UNUSABLE)
    assert expected.complete_datasets() == USABLE
    assert {one.dataset for one in expected.failures()} == set(UNUSABLE)
    assert len(expected.failures()) == 3 * len(SPECS) * 2
    assert all(np.isnan(one.mean_reward) for one in expected.failures())
    assert expected.mean_rewards().shape == (3, 3)


def test_the_order_in_which_cells_are_run_does_not_matter(suite, tmp_path, expected):
    found = bench(suite, tmp_path, engine=InlineEngine(backwards=True))
    assert found.fingerprint() == expected.fingerprint()


def test_the_fingerprint_tells_results_apart(suite, tmp_path, expected):
    fewer = bench(suite, tmp_path / "a", engine=InlineEngine(), max_rounds=20)
    assert fewer.fingerprint() != expected.fingerprint()
    shorter = bench(suite, tmp_path / "b", engine=InlineEngine(), n_seeds=1)
    assert shorter.fingerprint() != expected.fingerprint()


def test_a_finished_run_does_nothing_and_starts_no_engine(suite, tmp_path, expected):
    bench(suite, tmp_path, engine=InlineEngine())
    before = (tmp_path / "cells.log").read_bytes()
    assert bench(suite, tmp_path, engine=NoEngine()).fingerprint() == expected.fingerprint()
    assert bench(suite, tmp_path, engine=NoEngine(), n_seeds=1).seeds == [0]
    assert (tmp_path / "cells.log").read_bytes() == before


def test_failed_cells_are_run_again_only_when_asked(suite, tmp_path, expected):
    bench(suite, tmp_path, engine=InlineEngine())
    plan, _ = CellStore.read(tmp_path).load_plan()
    lost = plan.cells["three"][1].key
    with CellStore.open(tmp_path) as store:
        store.add(Record.failure(lost, "its process died"))
    found = bench(suite, tmp_path, engine=NoEngine())
    assert found.complete_datasets() == ["graded", "plain"]
    assert [one.problem for one in found.failures()].count("its process died") == 1
    found = bench(suite, tmp_path, engine=InlineEngine(), retry_failed=True)
    assert found.fingerprint() == expected.fingerprint()


def test_changed_data_parameters_and_code_never_meet_old_cells(tmp_path, monkeypatch):
    suite, out = write_suite(tmp_path / "suite"), tmp_path / "out"
    bench(suite, out, engine=InlineEngine(), n_seeds=1)

    def left(**rest):
        rest = {"n_seeds": 1, "a_a": False} | rest
        plan = make_plan(str(suite), SPECS, **rest)
        return sum(len(group.cells) for group in pending(plan, CellStore.read(out)))

    assert left() == 0
    assert left(max_rounds=10) == left(n_seeds=2) == 6 * 3
    write_table(suite / "plain.csv", 90, seed=9)
    assert left() == 3
    monkeypatch.setattr("melee.benchmark.run.code_version", lambda: "another")
    assert left() == 6 * 3
    # What was found is still there for readers, under the code that found it.
    assert len(list(load_results(CellStore.read(out)))) == 6 * 3


def test_a_repaired_dataset_runs_and_a_changed_one_replaces_its_results(tmp_path):
    suite, out = write_suite(tmp_path / "suite"), tmp_path / "out"
    bench(suite, out, engine=InlineEngine())
    write_table(suite / "torn.csv", 90, seed=9)
    found = bench(suite, out, engine=InlineEngine())
    assert found.complete_datasets() == ["graded", "plain", "three", "torn"]


def test_datasets_of_equal_content_share_their_cells(tmp_path, suite, expected):
    twice = tmp_path / "suite"
    shutil.copytree(suite, twice)
    shutil.copy(suite / "plain.csv", twice / "twin.csv")
    plan = make_plan(str(twice), SPECS, n_seeds=2, a_a=False)
    with CellStore.open(tmp_path / "out") as store:
        assert sum(len(group.cells) for group in pending(plan, store)) == 6 * 3 * 2
        summary = run(plan, store, InlineEngine())
        assert (summary.n_cells, summary.n_run) == (7 * 3 * 2, 6 * 3 * 2)
        found = load_results(store)
    for spec in SPECS:
        rewards = found.cell("twin", spec, 1).rewards.tolist()
        assert rewards == expected.cell("plain", spec, 1).rewards.tolist()


def test_unfinished_results_know_what_was_planned(suite, tmp_path):
    bench(suite, tmp_path, engine=InlineEngine())
    content = (tmp_path / "cells.log").read_bytes()
    (tmp_path / "cells.log").write_bytes(content[: len(content) // 2])
    found = load_results(CellStore.read(tmp_path))
    assert found.datasets == sorted(USABLE + UNUSABLE)
    assert found.explorers == SPECS
    assert found.seeds == [0, 1]
    assert len(found.complete_datasets()) < 3


def test_lost_records_are_run_again_and_give_the_same(suite, tmp_path, expected):
    bench(suite, tmp_path, engine=InlineEngine())
    content = bytearray((tmp_path / "cells.log").read_bytes())
    content[len(content) // 3] ^= 4  # a damaged one in the middle …
    (tmp_path / "cells.log").write_bytes(content[:-3])  # … and a torn one at the end
    assert len(CellStore.read(tmp_path).damage) == 2
    found = bench(suite, tmp_path, engine=InlineEngine())
    assert found.fingerprint() == expected.fingerprint()
    assert not CellStore.read(tmp_path).damage


def test_the_estimate_learns_from_what_is_finished(suite, tmp_path):
    plan = make_plan(str(suite), SPECS, n_seeds=4, a_a=False)
    guess = estimate(plan, None)
    assert guess > 0.0
    bench(suite, tmp_path, engine=InlineEngine(), n_seeds=2)
    store = CellStore.read(tmp_path)
    half = estimate(plan, store)
    spent = sum(
        store.seconds(key)
        for key in (cell.key for g in plan.cells.values() for cell in g if cell.key in store)
    )
    assert 0.2 * spent < half < 5 * spent
    bench(suite, tmp_path, engine=InlineEngine(), n_seeds=4)
    assert estimate(plan, CellStore.read(tmp_path)) == 0.0


def test_results_say_how_they_came_about(suite, tmp_path):
    found = bench(suite, tmp_path, specs=["linucb:alpha=0.2"], engine=InlineEngine())
    assert found.about["suite"] == "suite"
    assert found.about["code"] == code_version()
    assert found.about["settings"]["linucb:alpha=0.2"].startswith("linucb:")


def test_ten_random_kills_of_the_driver_lose_nothing_and_change_nothing(tmp_path):
    # From a server that has melee imported and compiled, so that each driver begins at once.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.benchmark.warmed"])
    suite, out = write_suite(tmp_path / "suite"), tmp_path / "out"
    for name in UNUSABLE:  # their cells take no time: a kill would hardly ever meet one
        (suite / f"{name}.csv").unlink()
    rng, kept = random.Random(1), list[Record]()
    for _ in range(10):
        n_cells = rng.randint(2, 9)  # of 3 * 3 * 12 = 108: some always remain
        arguments = (suite, out, 12, n_cells, rng.random())
        driver = context.Process(target=drive_until_killed, args=arguments)
        driver.start()
        driver.join(60.0)
        assert driver.exitcode == -signal.SIGALRM
        after = list(CellStore.read(out).records())
        assert after[: len(kept)] == kept  # their times too: none was run again
        assert n_cells <= len(after) - len(kept) <= n_cells + 1
        kept = after
    plan, _ = CellStore.read(out).load_plan()
    left = sum(len(group.cells) for group in pending(plan, CellStore.read(out)))
    assert left == 108 - len(kept) > 0
    found = bench(suite, out, n_seeds=12, engine=InlineEngine())
    whole = bench(suite, tmp_path / "whole", n_seeds=12, engine=InlineEngine())
    assert found.fingerprint() == whole.fingerprint()


@pytest.mark.long
def test_twenty_random_kills_of_driver_or_worker_lose_no_finished_cell(suite, tmp_path):
    rng, out = random.Random(2), tmp_path / "out"
    log = out / "cells.log"
    command = [sys.executable, "-m", "melee.cli", "bench", "--suite", str(suite), "--out", str(out)]
    command += ["--explorers", ",".join(SPECS), "--seeds", "150", "--no-a-a", "--workers", "2"]
    for i in range(20):
        kept = keys_in(out)
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as driver:
            kill_after(driver, log, rng, a_worker_first=i % 3 == 0)
        assert kept <= keys_in(out)
    found = bench(suite, out, n_seeds=150, workers=2)
    whole = bench(suite, tmp_path / "whole", n_seeds=150, engine=InlineEngine())
    assert found.fingerprint() == whole.fingerprint()


def keys_in(out):
    return {r.key for r in CellStore.read(out).records()} if (out / "cells.log").exists() else set()


def kill_after(driver, log, rng, *, a_worker_first):
    """Kill a driver, and perhaps one of its workers before, once it has finished some cells."""
    enough = rng.randrange(1, 8000) + (log.stat().st_size if log.exists() else 0)
    wait_until(lambda: driver.poll() is not None or (log.exists() and log.stat().st_size >= enough))
    workers = workers_of(driver.pid)
    if a_worker_first and workers:
        os.kill(rng.choice(workers), signal.SIGKILL)
        time.sleep(rng.random() * 0.2)
    driver.kill()
    driver.wait()
    wait_until(lambda: not any(is_running(pid) for pid in workers), 5)
