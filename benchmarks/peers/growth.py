"""How the cost of a round grows: with the rows, the actions and the features."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers.compare import say
from benchmarks.peers.tasks import Labelled, covtype, synthetic
from melee.loop import simulate
from melee.preparation import N_LABELLED, Prepared, prepare

SPECS = ("epsilon-greedy:epsilon=0.05", "linucb", "cover-nu:policies=16")
N_LONG = 100_000
"""From this many rows on a run is long enough to be measured once."""


@dataclass(frozen=True)
class Sizes:
    """The sizes to go through."""

    rows: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 500_000)
    memory: tuple[int, ...] = (1_000, 10_000, 100_000, 500_000)
    actions: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200, 500, 1_000)
    features: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 150, 200, 500, 1_000)
    n_rounds: int = 5_000


QUICK = Sizes((500, 1_000, 2_000), (500, 2_000), (2, 10), (2, 20), 500)


@dataclass(frozen=True)
class Speed:
    """Seconds of one simulation of this size, by its explorer."""

    varied: str
    spec: str
    n_rounds: int
    n_features: int
    n_actions: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        """Rounds played in a second."""
        return self.n_rounds / self.seconds


@dataclass(frozen=True)
class Memory:
    """By how much the resident memory grew in a run, beside the data and beside its outputs."""

    spec: str
    n_rounds: int
    data_bytes: int
    grown_bytes: int
    output_bytes: int

    @property
    def extra_bytes(self) -> int:
        """What a run needs besides its data and the arrays it returns."""
        return self.grown_bytes - self.output_bytes


@dataclass(frozen=True)
class Growth:
    """All measurements; `source` names the rows of the first sweep."""

    source: str
    speeds: tuple[Speed, ...]
    memory: tuple[Memory, ...]

    def of(self, varied: str, spec: str) -> list[Speed]:
        """One line of the figure."""
        return [s for s in self.speeds if (s.varied, s.spec) == (varied, spec)]

    def slope(self, spec: str) -> float:
        """The power of n by which time grows, from a line through the logarithms."""
        line = self.of("rows", spec)
        n, seconds = [s.n_rounds for s in line], [s.seconds for s in line]
        return float(np.polyfit(np.log(n), np.log(seconds), 1)[0])


def measure(sizes: Sizes, repeats: int, covtype_file: Path | None) -> Growth:
    """Every sweep, every explorer."""
    say("growth: reading rows")
    rows = covtype(covtype_file, sizes.rows[-1] + N_LABELLED)
    task = rows.task(sizes.rows[-1])
    speeds = []
    for n in sizes.rows:
        speeds += _speeds("rows", prepare(task, seed=0, max_rounds=n), repeats)
    for n_actions in sizes.actions:
        speeds += _speeds("actions", synthetic(sizes.n_rounds, 20, n_actions), repeats)
    for n_features in sizes.features:
        speeds += _speeds("features", synthetic(sizes.n_rounds, n_features, 2), repeats)
    return Growth(rows.name, tuple(speeds), tuple(_memory(rows, sizes.memory)))


def _speeds(varied: str, prepared: Prepared, repeats: int) -> list[Speed]:
    task, n_rounds = prepared.task, prepared.n_rounds
    speeds = []
    for spec in SPECS:
        simulate(prepared, spec, max_rounds=10)
        times = 1 if n_rounds >= N_LONG else repeats
        seconds = min(simulate(prepared, spec).seconds for _ in range(times))
        speeds.append(Speed(varied, spec, n_rounds, task.n_features, task.n_actions, seconds))
        say(
            f"growth: n={n_rounds} d={task.n_features} K={task.n_actions} {spec}: "
            f"{speeds[-1].rows_per_second:,.0f} rows/s"
        )
    return speeds


def _memory(rows: Labelled, sizes: Sequence[int]) -> list[Memory]:
    n_actions = len(np.unique(rows.labels))
    measured = []
    with tempfile.TemporaryDirectory() as directory:
        for n in sizes:
            path = Path(directory) / f"{n}.npz"
            n_rows = n + N_LABELLED
            np.savez(path, contexts=rows.contexts[:n_rows], labels=rows.labels[:n_rows])
            data = 8 * n_rows * (rows.contexts.shape[1] + n_actions)
            for spec in SPECS:
                command = [sys.executable, "-m", "benchmarks.peers.memory", str(path), str(n), spec]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                grown, outputs = (int(number) for number in done.stdout.split())
                measured.append(Memory(spec, n, data, grown, outputs))
                say(f"memory: n={n} {spec}: {measured[-1].extra_bytes / 2**20:.2f} MiB extra")
    return measured
