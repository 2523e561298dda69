"""A benchmark from plan to results: what is done is skipped, what is finished is kept."""

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from melee.benchmark.cells import Cell, Dataset, Plan, code_version, identity
from melee.benchmark.engines import Engine
from melee.benchmark.facts import Facts
from melee.benchmark.results import CellResult, Results, fingerprint
from melee.benchmark.specs import expand, is_preset, listed, read
from melee.benchmark.store import CellStore, Record
from melee.benchmark.vw import Vw, version
from melee.benchmark.ways import by_agent, labels, split
from melee.benchmark.work import Group, Times
from melee.datasets import load_suite
from melee.errors import InputError, whole_number
from melee.learners.ridge import MAX_EXACT_FEATURES
from melee.preparation import N_LABELLED
from melee.rehearsal import refusal
from melee.version import __version__

AS_AGENT = (
    "the rows as they were read, one by one, through an agent that starts from nothing (floor 0); "
    "the labelled rows are not shown to it"
)
"""What the report says of explorers that are played as agents."""
LIVE = "played by agents under every label, for actions come and go or rewards come late: {names}"
"""What it says of datasets that only agents can play."""
SECONDS_PER_INPUT, SECONDS_PER_AGENT_ROUND = 1e-7, 2e-4
"""Guesses for what was never run, on the slow side."""


def make_plan(
    suite: str,
    explorers: list[str],
    *,
    n_seeds: int,
    max_rounds: int | None = None,
    a_a: bool = True,
    facts: Facts | None = None,
    way: str = "prepared",
) -> Plan:
    """Read the suite and check everything that can be checked before the first cell runs.

    Explorers are played over prepared numbers, as agents, or both (`way`). Those that agents refuse
    are left out there, and the plan says why. Datasets that only agents can play, because actions
    come and go or rewards come late, are played by agents under every label. Datasets of which
    `facts` knows are not read, and those that are read are noted there. Beside SPECs of ours there
    may be `vw:OPTIONS` for VowpalWabbit, and `vw:grid` for many of them.
    """
    if not explorers:
        raise InputError("no explorers are given; name at least one, such as linucb")
    specs = [read(spec) for spec in expand(explorers)]
    names = [listed(spec) for spec in specs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"explorer {twice[0]} is given twice; give each once")
    for given in explorers:
        if not is_preset(given) and isinstance(explorer := read(given), Vw):
            explorer.try_out()
    asked = [label for name in names for label in labels(name, way)]
    refused = {
        label: refusal(read(spec)) for label in asked for spec, agent in [split(label)] if agent
    }
    left_out = {label: reason for label, reason in refused.items() if reason}
    chosen = tuple(label for label in asked if label not in left_out)
    if not chosen:
        raise InputError(f"no explorer is left: {next(iter(left_out.values()))}")
    identities = tuple(
        identity(label) for label in chosen
    )  # refuses a policy that cannot be loaded
    for_agents = way != "prepared"
    if max_rounds is not None:
        max_rounds = whole_number("max_rounds", max_rounds, 1)
    seeds = tuple(range(whole_number("seeds", n_seeds, 1)))
    entries = load_suite(suite)
    where = str(Path(suite).resolve()) if Path(suite).is_dir() else suite
    known = facts or Facts()
    datasets = tuple(known.dataset(where, entry, for_agents=for_agents) for entry in entries)
    return Plan(
        where,
        datasets,
        chosen,
        identities,
        tuple(identity(by_agent(label)) for label in chosen),
        seeds,
        max_rounds,
        a_a,
        code_version(),
        left_out,
    )


@dataclass
class Summary:
    """What a run did, and where its time went."""

    n_cells: int
    n_run: int
    n_failed: int
    wall: float
    starting: float
    workers: int
    times: Times = field(default_factory=Times)
    fingerprint: str = ""

    @property
    def overhead(self) -> float:
        """Share of the workers' time spent outside the compiled pass, start-up apart."""
        return 1.0 - self.times.playing / self.times.total if self.times.total > 0.0 else 0.0


def pending(plan: Plan, store: CellStore, *, retry_failed: bool = False) -> list[Group]:
    """The cells that have no result yet, by dataset, the longest first.

    Datasets of equal content share their cells, and so do two labels that are played in the same
    way; such cells are run once.
    """
    groups, seen = [], set[str]()
    for dataset in plan.datasets:
        left = []
        for cell in plan.cells[dataset.name]:
            is_done = cell.key in store and not (retry_failed and store.failed(cell.key))
            if cell.key not in seen and not is_done:
                seen.add(cell.key)
                left.append(cell)
        if left:
            group = Group(
                plan.suite,
                dataset,
                dataset.n_features > MAX_EXACT_FEATURES,
                plan.max_rounds,
                plan.code,
                tuple(left),
            )
            groups.append((len(left) * _size(plan, dataset), group))
    return [group for _, group in sorted(groups, key=lambda pair: -pair[0])]


def _size(plan: Plan, dataset: Dataset) -> float:
    """What a cell of a dataset costs, roughly and in no unit."""
    return plan.n_rounds(dataset) * (dataset.n_features + 10.0) * dataset.n_actions


def estimate(plan: Plan, store: CellStore | None) -> float:
    """Seconds that the missing cells may take in one process.

    By what the finished cells of the same explorer took per round and input, else by a guess
    that errs on the slow side.
    """
    known: dict[str, list[float]] = {}
    missing: list[tuple[str, float, float]] = []
    for dataset in plan.datasets:
        size = _size(plan, dataset)
        for cell in plan.cells[dataset.name]:
            if store is not None and cell.key in store:
                if size > 0.0 and not store.failed(cell.key):
                    known.setdefault(cell.explorer, []).append(store.seconds(cell.key) / size)
            elif not dataset.problem:
                guess = size * SECONDS_PER_INPUT
                if split(dataset.label(cell.explorer))[1]:
                    guess += plan.n_rounds(dataset) * SECONDS_PER_AGENT_ROUND
                missing.append((cell.explorer, size, guess))
    rates = {name: float(np.mean(values)) for name, values in known.items()}
    return sum(rates[name] * size if name in rates else guess for name, size, guess in missing)


def run(
    plan: Plan,
    store: CellStore,
    engine: Engine,
    *,
    workers: int = 1,
    retry_failed: bool = False,
    on_record: Callable[[Cell, Record], None] | None = None,
) -> Summary:
    """Run what is missing and put it into the store.

    Interrupting it, at any time and in any way, loses only the cells that were being played.
    """
    began = time.perf_counter()
    groups = pending(plan, store, retry_failed=retry_failed)
    cells = {cell.key: cell for group in groups for cell in group.cells}
    store.save_plan(plan, about(plan))

    def keep(record: Record) -> None:
        store.add(record)
        if on_record is not None:
            on_record(cells[record.key], record)

    for group in groups:
        if group.dataset.problem:
            for cell in group.cells:
                keep(Record.failure(cell.key, group.dataset.problem))
    readable = [group for group in groups if not group.dataset.problem]
    if readable:
        with contextlib.closing(engine.run(readable)) as records:  # ends its processes, always
            for record in records:
                keep(record)
    everything = [cell for group in plan.cells.values() for cell in group]
    return Summary(
        n_cells=len(everything),
        n_run=len(cells),
        n_failed=sum(store.failed(cell.key) for cell in everything),
        wall=time.perf_counter() - began,
        starting=engine.starting,
        workers=workers,
        times=engine.times,
        fingerprint=fingerprint(finished(plan, store)),
    )


def about(plan: Plan) -> dict[str, Any]:
    """What a reader of the results should know of how they came about."""
    import numba

    noted: dict[str, Any] = {
        "suite": Path(plan.suite).name,
        "melee": __version__,
        "code": code_version(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "n_labelled": N_LABELLED,
        "max_rounds": plan.max_rounds,
        "settings": {label: read(split(label)[0]).spec for label in plan.explorers},
    }
    if any(split(label)[1] for label in plan.explorers):
        noted["as agent"] = AS_AGENT
    if any(isinstance(read(split(label)[0]), Vw) for label in plan.explorers):
        noted["VowpalWabbit"] = version()
    if live := [dataset.name for dataset in plan.datasets if dataset.live]:
        noted["live datasets"] = LIVE.format(names=", ".join(live))
    if plan.left_out:
        noted["left out"] = plan.left_out
    return noted


def load_results(store: CellStore, replicate: int = 0) -> Results:
    """The results of the latest plan; replicate 1 are the second runs of the A/A check."""
    plan, noted = store.load_plan()
    results = Results(
        [dataset.name for dataset in plan.datasets], [*plan.explorers], [*plan.seeds], noted
    )
    for cell in finished(plan, store, replicate):
        results.add(cell)
    return results


def finished(plan: Plan, store: CellStore, replicate: int = 0) -> Iterator[CellResult]:
    """The plan's cells that have a result, one at a time: by dataset, explorer and seed."""
    place = {spec: i for i, spec in enumerate(plan.explorers)}
    cells = [
        (dataset, cell)
        for dataset in plan.datasets
        for cell in sorted(
            plan.cells[dataset.name], key=lambda cell: (place[cell.explorer], cell.seed)
        )
        if cell.replicate == replicate and cell.key in store
    ]
    records = store.records(cell.key for _, cell in cells)
    for (dataset, cell), record in zip(cells, records, strict=True):
        yield CellResult(
            dataset.name,
            dataset.family,
            record.n or plan.n_rounds(dataset),
            dataset.n_features,
            dataset.n_actions,
            cell.explorer,
            cell.seed,
            record.rewards,
            record.seconds,
            record.problem,
            record.expected_reward,
            record.share,
        )
