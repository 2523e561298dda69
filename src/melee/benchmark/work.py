"""The work of one process: load a dataset, prepare it, play its cells."""

import functools
import gc
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from melee.benchmark.cells import (
    Cell,
    Dataset,
    cell_key,
    code_of,
    code_version,
    content_of,
    exploration_seed,
    identity,
)
from melee.benchmark.packages import code_of_others
from melee.benchmark.specs import read
from melee.benchmark.store import Record
from melee.benchmark.vw import Vw
from melee.benchmark.ways import split
from melee.datasets import Suite, load_suite
from melee.errors import (
    DataError,
    InputError,
    MeleeWarning,
    MissingPackageError,
    told,
)
from melee.extras import needed
from melee.loop import Run, simulate
from melee.preparation import Prepared, prepare
from melee.rehearsal import rehearse
from melee.task import Task

ATTEMPTS = 2
"""How often a cell is tried that runs out of memory or time, or whose process dies."""


@dataclass(frozen=True)
class Group:
    """The cells of one dataset that are still to be run; `wide` if it has many features."""

    suite: str
    dataset: Dataset
    wide: bool
    max_rounds: int | None
    code: str
    cells: tuple[Cell, ...]


@dataclass
class Times:
    """Where the time of a process went, in seconds."""

    loading: float = 0.0
    preparing: float = 0.0
    playing: float = 0.0
    total: float = 0.0

    def add(self, other: "Times") -> None:
        """Count another process's, or another group's, time in."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Outcome:
    """What running a group gave: a record per cell, and where the time went."""

    records: list[Record] = field(default_factory=list)
    times: Times = field(default_factory=Times)


@functools.lru_cache(maxsize=4)
def _suite(name: str) -> Suite:
    return load_suite(name)


def play_group(group: Group, times: Times) -> Iterator[Record]:
    """Play the cells of a group one after the other; failures are records too."""
    _check_code(group.code)
    began = time.perf_counter()
    try:
        planned = group.dataset
        for_agents = any(split(planned.label(cell.explorer))[1] for cell in group.cells)
        task = _suite(group.suite).entry(planned.name).load(keep_rows=for_agents)
        changed = content_of(task) != planned.content_hash
        if changed or (for_agents and task.named_rows().content_hash != planned.rows_hash):
            raise DataError(f"dataset {planned.name}: it changed while the benchmark was running")
    except MissingPackageError:  # not a result: with the package there will be one
        raise
    except Exception as error:
        yield from (Record.failure(cell.key, told(error)) for cell in group.cells)
        return
    times.loading += time.perf_counter() - began
    known = functools.cache(identity)
    prepared: Prepared | None = None
    prepared_for = -1
    for cell in group.cells:
        label = planned.label(cell.explorer)
        spec, as_agent = split(label)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                own_key = cell_key(
                    planned.content(as_agent),
                    known(label),
                    cell.seed,
                    cell.replicate,
                    group.max_rounds,
                    code_of(label, group.code),
                )
                if own_key != cell.key:
                    what = ["its policy"]
                    what += ["its package's code"] if code_of_others(read(spec)) else []
                    what += ["the agent's code"] if as_agent else []
                    raise DataError(
                        f"explorer {cell.explorer}: {' or '.join(what)} changed while the "
                        "benchmark was running, or is another one on this machine"
                    )
                if prepared is None or prepared_for != cell.seed:
                    start = time.perf_counter()
                    prepared = prepare(task, seed=cell.seed, max_rounds=group.max_rounds)
                    prepared_for = cell.seed
                    times.preparing += time.perf_counter() - start
                seed = exploration_seed(cell.seed, cell.replicate)
                run = _play(prepared, label, seed)
                times.playing += run.seconds
                record = Record.of(
                    cell.key, run.rewards, run.seconds, run.expected_reward, run.share
                )
                break
            except MissingPackageError:
                raise
            except MemoryError:
                reason = f"it ran out of memory, {attempt} times; use a machine with more"
                record = Record.failure(cell.key, reason)
                gc.collect()
            except Exception as error:
                record = Record.failure(cell.key, told(error))
                break
        yield record
    times.total += time.perf_counter() - began


def _play(task: Task | Prepared, label: str, seed: int) -> Run:
    """The run of an explorer, in the way that its label says."""
    spec, as_agent = split(label)
    explorer = read(spec)
    if isinstance(explorer, Vw) and not as_agent:
        prepared = task if isinstance(task, Prepared) else prepare(task, seed=seed)
        return explorer.play(prepared, seed=seed)
    if not as_agent:
        return simulate(task, spec, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)  # nobody is there to act upon one
        return rehearse(task, explorer, seed=seed)


def _check_code(expected: str) -> None:
    """Refuse to play with code other than the plan's: its results belong under other keys."""
    if code_version() != expected:
        raise InputError(
            f"a worker has version {code_version()} of melee's code and this run began with "
            f"{expected}: the code was edited meanwhile, or another machine has another version; "
            "install the same one everywhere and run the same command again"
        )


def run_group(group: Group) -> Outcome:
    """Play a whole group and return all of it, for engines that send results once."""
    _check_code(group.code)
    warm_up({cell.explorer for cell in group.cells}, group.wide)
    outcome = Outcome()
    outcome.records.extend(play_group(group, outcome.times))
    return outcome


def warm_up(explorers: Iterable[str], wide: bool) -> None:
    """Import, compile or load from the cache what these explorers need.

    With `wide`, also what they need above 150 features, so that no cell pays for a compilation.
    """
    with needed("reading datasets", "tables"):
        import pandas as pd  # noqa: F401 - what it imports

    for explorer in explorers:
        for width in [1, 76] if wide else [1]:
            _warm_up(explorer, width)


@functools.cache
def _warm_up(explorer: str, width: int) -> None:
    from melee.datasets import rectangles

    narrow = rectangles(40, seed=0)
    task = Task("warm-up", np.tile(narrow.contexts, (1, width)), narrow.rewards)
    try:
        _play(task, explorer, 0)
    except Exception as error:  # whatever it is, its cells will fail by it, and say so
        del error
