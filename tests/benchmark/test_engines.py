import contextlib
import dataclasses
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from melee.benchmark import engines, work
from melee.benchmark.engines import DaskEngine, LocalEngine, engine
from melee.benchmark.run import load_results, make_plan, pending, run
from melee.benchmark.store import CellStore
from melee.benchmark.work import Times, play_group, run_group
from melee.errors import (
    DataError,
    InputError,
    MeleeError,
    MissingPackageError,
    UnknownNameError,
)
from tests.benchmark import made
from tests.benchmark.made import (
    SPECS,
    InlineEngine,
    bench,
    is_running,
    wait_until,
    workers_of,
    write_suite,
    write_table,
)
from tests.benchmark.test_cells import retrain


def groups_of(suite, specs=("uniform",), **rest):
    plan = make_plan(str(suite), list(specs), **{"n_seeds": 1, "a_a": False} | rest)
    with TemporaryDirectory() as nothing, CellStore.open(nothing) as store:
        return [g for g in pending(plan, store) if g.dataset.name in made.USABLE], plan


def by_problem(results):
    """The cells that failed though their dataset is fine."""
    return {
        (one.dataset, one.explorer, one.seed): one.problem
        for one in results.failures()
        if one.dataset in made.USABLE
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_local_processes_give_what_one_process_gives(workers, suite, tmp_path, expected):
    found = bench(suite, tmp_path, workers=workers)
    assert found.fingerprint() == expected.fingerprint()
    assert not multiprocessing.active_children()


def test_workers_have_one_thread_each_and_a_killed_one_is_replaced(suite, tmp_path):
    seen: list[str] = []
    environments: list[bytes] = []

    def kill_one(cell, record):
        seen.append(cell.key)
        if len(seen) == 3 * len(SPECS) * n_seeds + 20:  # unusable datasets come first
            workers = workers_of(os.getpid())
            environments.extend(Path(f"/proc/{pid}/environ").read_bytes() for pid in workers)
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])

    killed: list[int] = []
    n_seeds = 30
    found = bench(suite, tmp_path / "out", n_seeds=n_seeds, workers=2, on_record=kill_one)
    whole = bench(suite, tmp_path / "whole", n_seeds=n_seeds, engine=InlineEngine())
    assert found.fingerprint() == whole.fingerprint()
    assert len(seen) == len(set(seen)) == 6 * len(SPECS) * n_seeds
    assert not is_running(killed[0])
    assert not workers_of(os.getpid())
    assert len(environments) == 2
    for environment in environments:
        for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
            assert f"{name}_NUM_THREADS=1".encode() in environment.split(b"\0")
    assert os.environ.get("OMP_NUM_THREADS") != "1"  # the driver's own are as they were


def test_cells_that_kill_their_process_or_take_too_long_fail_alone(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "_serve", made.serve_badly)
    rest = {"specs": ["uniform", "softmax"], "n_seeds": 1}
    # Less than these processes take to start: only cells are timed.
    found = bench(suite, tmp_path / "out", workers=3, timeout=2.0, **rest)
    assert by_problem(found) == {
        ("three", "softmax", 0): "its process died (SIGKILL, perhaps out of memory), 2 times",
        ("plain", "softmax", 0): "it took longer than 2 seconds, 2 times",
    }
    assert found.complete_datasets() == ["graded"]
    whole = bench(suite, tmp_path / "out", engine=InlineEngine(), retry_failed=True, **rest)
    assert whole.complete_datasets() == ["graded", "plain", "three"]


def test_cells_without_memory_and_with_bugs_fail_alone(suite, tmp_path, monkeypatch):
    simulate = vars(work)["simulate"]

    def hungry(prepared, explorer, *, seed):
        if explorer == "linucb" and seed == 1:
            raise MemoryError
        if explorer == "linucb" and prepared.task.name == "three":
            raise ZeroDivisionError("a bug")
        return simulate(prepared, explorer, seed=seed)

    monkeypatch.setattr(work, "simulate", hungry)
    found = bench(suite, tmp_path, specs=["uniform", "linucb"], engine=InlineEngine())
    memory = "it ran out of memory, 2 times; use a machine with more"
    assert by_problem(found) == {
        ("graded", "linucb", 1): memory,
        ("plain", "linucb", 1): memory,
        ("three", "linucb", 0): "ZeroDivisionError: a bug",
        ("three", "linucb", 1): memory,
    }


def test_workers_that_cannot_start_end_the_run_with_a_sentence(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "_serve", made.serve_never)
    with pytest.raises(DataError, match=r"no worker can start: its process died \(exit code 3\)"):
        bench(suite, tmp_path, workers=1)
    assert not workers_of(os.getpid())


@pytest.mark.long
def test_workers_end_when_their_driver_is_killed(tmp_path):
    suite, out = tmp_path / "suite", tmp_path / "out"
    suite.mkdir()
    for i in range(2):
        write_table(suite / f"t{i}.csv", 2000, seed=i)
    command = [sys.executable, "-m", "melee.cli", "bench", "--suite", str(suite), "--seeds", "2000"]
    command += ["--explorers", "uniform", "--out", str(out), "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as driver:
        wait_until(lambda: (out / "cells.log").exists() and played(out) > 0)
        workers = workers_of(driver.pid)
        driver.kill()
        driver.wait()
    assert len(workers) == 2
    wait_until(lambda: not any(is_running(pid) for pid in workers), 5)


def played(out):
    """How many cells have a run."""
    store = CellStore.read(out)
    return sum(record.n > 0 for record in store.records())


def test_a_worker_with_other_code_plays_nothing(suite):
    groups, _ = groups_of(suite)
    other = dataclasses.replace(groups[0], code="0" * 16)
    for play in (lambda: list(play_group(other, Times())), lambda: run_group(other)):
        with pytest.raises(InputError, match="install the same one everywhere"):
            play()


def test_other_code_in_a_worker_ends_the_run(suite, tmp_path):
    _, plan = groups_of(suite)
    with (
        CellStore.open(tmp_path) as store,
        pytest.raises(InputError, match="the code was edited meanwhile"),
    ):
        run(dataclasses.replace(plan, code="0" * 16), store, LocalEngine(1, plan))
    assert not workers_of(os.getpid())


def test_a_dataset_that_changes_meanwhile_is_not_played(tmp_path):
    suite = write_suite(tmp_path / "suite")
    groups, _ = groups_of(suite, n_seeds=2)
    write_table(suite / "plain.csv", 91, seed=7)
    (suite / "three.csv").unlink()
    found = {g.dataset.name: list(play_group(g, Times())) for g in groups}
    assert all("it changed while" in record.problem for record in found["plain"])
    assert all("'three'" in record.problem for record in found["three"])
    assert all(not record.problem for record in found["graded"])


def test_a_policy_that_changes_meanwhile_is_not_played(suite, tmp_path):
    from melee import artefact

    policy = tmp_path / "policy"
    retrain(artefact.locate("paper"), policy, 0.0)
    groups, _ = groups_of(suite, ["uniform", f"melee-paper:policy={policy}"])
    retrain(artefact.locate("paper"), policy, 0.5)
    uniform, changed = play_group(groups[0], Times())
    assert not uniform.problem
    assert "its policy changed while the benchmark was running" in changed.problem
    (policy / "weights.npz").unlink()
    assert "its policy changed" in list(play_group(groups[0], Times()))[1].problem


def test_names_and_options_of_engines_are_checked(suite):
    _, plan = groups_of(suite)
    with pytest.raises(UnknownNameError, match="did you mean 'local'"):
        engine("loca", workers=1, plan=plan)
    with pytest.raises(InputError, match="--scheduler is for --engine dask"):
        engine("local", workers=1, plan=plan, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(InputError, match="--timeout is for --engine local"):
        engine("dask", workers=1, plan=plan, timeout=1.0)


def test_without_the_package_dask_is_refused_with_a_sentence(suite, monkeypatch):
    _, plan = groups_of(suite)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPackageError, match=r"--engine dask needs distributed.*\[dask\]"):
        engine("dask", workers=1, plan=plan)


def test_a_package_that_a_worker_lacks_is_asked_for_and_no_failure_of_its_cells(suite, monkeypatch):
    group = groups_of(suite)[0][0]
    monkeypatch.setitem(sys.modules, "pandas", None)
    for play in (lambda: list(play_group(group, Times())), lambda: run_group(group)):
        with pytest.raises(MissingPackageError, match=r"needs pandas.*melee-bandits\[tables\]"):
            play()


# Dask, as a real cluster.

pytest.importorskip("distributed")


@contextlib.contextmanager
def process(*arguments, cwd):
    """A process in a group of its own, none of which is left behind."""
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        start_new_session=True,
    ) as started:
        try:
            yield started
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def address_in(stream):
    for line in stream:
        if found := re.search(r"Scheduler at:\s+(tcp://\S+)", line):
            threading.Thread(target=stream.read, daemon=True).start()
            return found[1]
    raise AssertionError("the scheduler did not start")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    cwd = tmp_path_factory.mktemp("dask")
    options = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
    with process("distributed.cli.dask_scheduler", *options, cwd=cwd) as started:
        yield address_in(started.stderr)


def dask_worker(scheduler, cwd):
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
    return process("distributed.cli.dask_worker", scheduler, *options, cwd=cwd)


def test_dask_gives_what_local_processes_give(suite, scheduler, tmp_path, expected):
    with dask_worker(scheduler, tmp_path) as worker:
        found = bench(suite, tmp_path / "out", engine=DaskEngine(1, scheduler))
        assert worker.poll() is None
    assert found.fingerprint() == expected.fingerprint()


@pytest.mark.long  # a client's connection to its scheduler may break where the machine is busy
def test_dask_with_a_killed_worker_gives_what_local_processes_give(scheduler, tmp_path):
    suite, n_seeds = tmp_path / "suite", 20
    killed: list[int] = []
    suite.mkdir()
    for i in range(8):
        write_table(suite / f"t{i}.csv", 100 + i, seed=i)
    whole = bench(suite, tmp_path / "whole", n_seeds=n_seeds, engine=InlineEngine())
    with dask_worker(scheduler, tmp_path) as one, dask_worker(scheduler, tmp_path) as other:

        def kill_one(cell, record):
            if not killed:
                killed.append(other.pid)
                other.kill()

        chosen = DaskEngine(2, scheduler)
        found = bench(suite, tmp_path / "out", n_seeds=n_seeds, engine=chosen, on_record=kill_one)
        assert other.wait(10) == -signal.SIGKILL
        assert one.poll() is None
    assert found.fingerprint() == whole.fingerprint()
    assert chosen.times.playing > 0.0
    assert killed


@pytest.mark.long
def test_dask_starts_a_cluster_of_its_own_and_takes_it_down(suite, tmp_path, expected):
    found = bench(suite, tmp_path, engine=DaskEngine(2))
    assert found.fingerprint() == expected.fingerprint()
    wait_until(lambda: not workers_of(os.getpid()), 10)


@pytest.mark.long
def test_a_cell_that_kills_dask_workers_fails_alone(suite, tmp_path, monkeypatch):
    import dask

    monkeypatch.setattr(engines, "run_group", made.run_deadly_group)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        found = bench(
            suite, tmp_path, specs=["uniform", "softmax"], n_seeds=1, engine=DaskEngine(2)
        )
    assert by_problem(found) == {("three", "softmax", 0): "its Dask worker died, 1 times"}
    wait_until(lambda: not workers_of(os.getpid()), 10)


@pytest.mark.long
def test_a_dask_scheduler_that_is_killed_ends_the_run_with_a_sentence(tmp_path, suite):
    options = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
    with process("distributed.cli.dask_scheduler", *options, cwd=tmp_path) as started:
        address = address_in(started.stderr)
        with (
            dask_worker(address, tmp_path),
            pytest.raises(DataError, match="the Dask scheduler is gone; what was finished"),
        ):
            bench(
                suite,
                tmp_path / "out",
                n_seeds=300,
                engine=DaskEngine(1, address),
                on_record=lambda cell, record: record.n and started.kill(),
            )
    assert played(tmp_path / "out") > 0


def test_a_dask_scheduler_that_is_not_there_gets_a_sentence(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "PATIENCE", 1.0)
    for address in ["tcp://127.0.0.1:9", "nonsense://x"]:
        began = time.monotonic()
        with pytest.raises(InputError, match=f"no Dask scheduler answers at {address} .* check"):
            bench(suite, tmp_path / "out", engine=DaskEngine(1, address))
        assert time.monotonic() - began < 15


def test_a_dask_scheduler_without_workers_gets_a_sentence(suite, tmp_path, scheduler, monkeypatch):
    monkeypatch.setattr(engines, "PATIENCE", 2.0)
    with pytest.raises(InputError, match="has no workers; start some with dask worker tcp://"):
        bench(suite, tmp_path, engine=DaskEngine(1, scheduler))


def test_other_code_on_a_dask_worker_ends_the_run(suite, tmp_path, scheduler):
    _, plan = groups_of(suite)
    with (
        dask_worker(scheduler, tmp_path),
        CellStore.open(tmp_path / "out") as store,
        pytest.raises(MeleeError, match="another machine has another version"),
    ):
        run(dataclasses.replace(plan, code="0" * 16), store, DaskEngine(1, scheduler))
    assert len(list(load_results(CellStore.read(tmp_path / "out")))) == 3
