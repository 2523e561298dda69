"""Small suites, an engine without processes, and workers that misbehave."""

import contextlib
import os
import signal
import time
from pathlib import Path

import numpy as np

from melee.benchmark import engines, work
from melee.benchmark.engines import LocalEngine
from melee.benchmark.run import load_results, make_plan, run
from melee.benchmark.store import CellStore
from melee.benchmark.work import Times, play_group

SPECS = ["uniform", "epsilon-greedy", "linucb"]
USABLE = ["graded", "plain", "three"]
UNUSABLE = ["one", "short", "torn"]


def write_table(path, n_rows, *, n_features=3, n_classes=2, seed=0):
    """A table whose label follows from its features, with some noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_features))
    label = np.argmax(x[:, :n_classes] + 0.3 * rng.normal(size=(n_rows, n_classes)), axis=1)
    header = ",".join([*(f"x{i}" for i in range(n_features)), "target"])
    rows = [
        ",".join([*(f"{v:.6f}" for v in row), f"c{c}"]) for row, c in zip(x, label, strict=True)
    ]
    Path(path).write_text("\n".join([header, *rows]) + "\n")


def write_suite(directory):
    """Three datasets that can be played, one of graded rewards, and three that cannot."""
    directory.mkdir(parents=True, exist_ok=True)
    write_table(directory / "plain.csv", 90, seed=1)
    write_table(directory / "three.csv", 120, n_features=5, n_classes=3, seed=2)
    rng = np.random.default_rng(3)
    rows = [",".join(f"{v:.4f}" for v in rng.random(4)) for _ in range(60)]
    (directory / "graded.csv").write_text("\n".join(["a,b,reward:left,reward:right", *rows]))
    (directory / "torn.csv").write_text("a,b,target\n1,2,yes\n3,no\n")
    write_table(directory / "short.csv", 20, seed=4)
    (directory / "one.csv").write_text("a,target\n" + "\n".join(f"{i},same" for i in range(80)))
    return directory


class InlineEngine:
    """Plays in this very process, in the order given or backwards."""

    def __init__(self, *, backwards=False):
        self.backwards, self.times, self.starting = backwards, Times(), 0.0

    def run(self, groups):
        for group in reversed(groups) if self.backwards else groups:
            yield from play_group(group, self.times)


class NoEngine:
    """For runs in which there must be nothing to do."""

    times, starting = Times(), 0.0

    def run(self, groups):
        raise AssertionError("an engine was started")


def bench(
    suite,
    out,
    *,
    specs=SPECS,
    n_seeds=2,
    engine=None,
    workers=1,
    timeout=None,
    retry_failed=False,
    on_record=None,
    **rest,
):
    """A run from plan to results, by default with local processes."""
    plan = make_plan(str(suite), list(specs), n_seeds=n_seeds, **{"a_a": False} | rest)
    chosen = engine or LocalEngine(workers, plan, timeout)
    with CellStore.open(out) as store:
        run(plan, store, chosen, workers=workers, retry_failed=retry_failed, on_record=on_record)
        return load_results(store)


def drive_until_killed(suite, out, n_seeds, n_cells, moment):
    """A driver that is killed `moment`, a share of a cell's time, after its first `n_cells` cells.

    However quick the machine is, it finishes at most one more: there it waits for its end. Nothing
    handles the alarm's signal, so it ends the process wherever it is.
    """
    finished = []

    def note(cell, record):
        finished.append(time.monotonic())
        if len(finished) == n_cells:
            of_a_cell = (finished[-1] - finished[0]) / (n_cells - 1)
            signal.setitimer(signal.ITIMER_REAL, max(moment * of_a_cell, 1e-6))
        elif len(finished) > n_cells:
            time.sleep(60.0)

    bench(suite, out, n_seeds=n_seeds, engine=InlineEngine(), on_record=note)


def children_of(pid):
    """The processes that a process has started and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


def is_running(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def command_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def workers_of(pid):
    """The worker processes of a driver, without Python's helper."""
    return [child for child in children_of(pid) if "spawn_main" in command_of(child)]


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


# What worker processes run in place of the engine's own: they break, then behave like it.


def serve_badly(pipe, explorers, wide):
    """A worker that starts slowly, dies of softmax on `three`, and hangs at it on `plain`."""
    simulate = vars(work)["simulate"]

    def bad(task, explorer, *, seed):
        name = getattr(task, "task", task).name  # the warm-up's is not prepared
        if (name, explorer) == ("three", "softmax"):
            os.kill(os.getpid(), signal.SIGKILL)
        if (name, explorer) == ("plain", "softmax"):
            time.sleep(60)
        return simulate(task, explorer, seed=seed)

    vars(work)["simulate"] = bad
    time.sleep(1)
    engines._serve(pipe, explorers, wide)


def run_deadly_group(group):
    """What a Dask worker runs: it is killed whenever it plays softmax on the dataset `three`."""
    if group.dataset.name == "three" and any(cell.explorer == "softmax" for cell in group.cells):
        os.kill(os.getpid(), signal.SIGKILL)
    return work.run_group(group)


def serve_never(pipe, explorers, wide):
    """A worker that cannot even start."""
    os._exit(3)
