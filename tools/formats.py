"""The formats of files that users keep: one small file of each, and what its layout is.

    python -m tools.formats

writes tests/formats/VERSION for the version that this is. A test reads the files of every version
that is kept there, and demands that what is written today is laid out as those of this version.
tests/formats/README.md says what may change.
"""

import contextlib
import dataclasses
import gzip
import json
import shutil
import sqlite3
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from melee import Agent, artefact
from melee.agent.file import FORMAT_VERSION, unpack
from melee.benchmark.run import make_plan
from melee.benchmark.store import CellStore, Record
from melee.errors import MeleeWarning
from melee.history import History
from melee.journal import Journal
from melee.journal.sqlite import FILE
from melee.trials import Trials
from melee.version import __version__

ROOT = Path(__file__).parent.parent
HOME = ROOT / "tests" / "formats"
ACTIONS = ["sports", ("politics", 2)]
SPEC = "epsilon-greedy:epsilon=0.1"
READER = {"age": 31.0, "device": "phone", "likes": ["chess", "film"], "told": None}
CANDIDATES = {"a17": {"topic": "film", "hours": 3.0}, "a18": {"topic": "sport", "hours": 40.0}}
PACKED = (".melee", ".sqlite")
"""Endings of files that are kept compressed: most of them is empty."""


# -- writing -------------------------------------------------------------------------------------


def write(directory: Path) -> None:
    """Write a file of each format, and what is to be found in them."""
    directory.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        expected = {
            "melee": __version__,
            **_write_agents(directory),
            **_write_journal(directory),
            **_write_policy(directory),
            **_write_cells(directory),
        }
    for path in [path for path in directory.rglob("*") if path.suffix in PACKED]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
    (directory / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def _write_agents(directory: Path) -> dict[str, Any]:
    """Agents with actions and with candidates, and their log in every format."""
    log = directory / "history.jsonl"
    log.unlink(missing_ok=True)
    agent = Agent(ACTIONS, SPEC, seed=1, max_features=8, half_life=4, log=log)
    _live(agent)
    agent.save(directory / "agent.melee")
    other = Agent(explorer=SPEC, seed=2, max_features=8, log=log)
    for i in range(2):
        decision = other.act(READER, actions=CANDIDATES, id=f"c{i}")
        other.learn(decision.id, 1.0 - i)
    other.act(READER, actions=CANDIDATES, id="waits")
    other.save(directory / "candidates.melee")
    history = History.read(log)
    history.write(directory / "history.parquet")
    history.write(directory / "history.dsjson")
    return {
        "agent": {"learned": agent.n_learned_, "pmf": list(agent.pmf(READER).values())},
        "candidates": {
            "learned": other.n_learned_,
            "pmf": list(other.pmf(READER, actions=CANDIDATES).values()),
        },
        "history": {"rounds": len(history), "rewards": history.rewards.tolist()},
    }


def _live(agent: Agent) -> None:
    """Everything that an agent can go through, once."""
    for i in range(6):
        agent.learn(agent.act({**READER, "age": 20.0 + i}, id=f"d{i}").id, float(i % 2))
    agent.act(READER, actions=["sports"], id="some")
    agent.learn("some", 2.5)
    agent.add_actions(["weather", 3])
    agent.remove_actions([3])
    agent.learn(READER, "weather", 1.0, 0.5)
    agent.act(READER, id="waits")


def _write_journal(directory: Path) -> dict[str, Any]:
    """Every kind of event; without a snapshot, so that all of them are folded."""
    place = directory / "journal"
    shutil.rmtree(place, ignore_errors=True)
    agent = Agent(ACTIONS, SPEC, seed=1, max_features=8, timeout=60.0, journal=place)
    _live(agent)
    agent.act(READER, id="late")
    agent.give_up(now=4e9)
    agent.learn(agent.follow(READER, "sports", probability=0.5, id="followed").id, 1.0)
    with contextlib.closing(Journal(place, writing=False)) as reading:
        agent.roll_back(reading.head.seq - 1, relearn_after=reading.head.seq - 1)
    trials = Trials(agent)
    trials.begin("shadow", SPEC)
    trials.begin("half", "uniform", share=0.5)
    for unit in ("ada", "bob", None):
        trials.learn(trials.act(READER, id=f"tried by {unit}", unit=unit), 1.0)
    trials.end("shadow")
    trials.close()
    with contextlib.closing(Agent(ACTIONS, SPEC, seed=1, max_features=8, journal=place)) as agent:
        agent.act(READER, id="waits too")
        learned, pmf = agent.n_learned_, list(agent.pmf(READER).values())
    with contextlib.closing(
        Agent(explorer=SPEC, seed=2, max_features=8, journal=Journal(place, "catalogue"))
    ) as other:
        for i in range(2):
            decision = other.act(READER, actions=CANDIDATES, id=f"c{i}")
            other.learn(decision.id, 1.0 - i)
        other.act(READER, actions=CANDIDATES, id="waits")
        other.learn(READER, "a17", 1.0, 0.5, features=CANDIDATES["a17"])
        chances = other.pmf(READER, actions=CANDIDATES).values()
        more = {"learned": other.n_learned_, "pmf": list(chances)}
    shutil.rmtree(place / "snapshots", ignore_errors=True)
    for path in place.iterdir():
        if path.name != FILE:
            path.unlink()
    return {"journal": {"learned": learned, "pmf": pmf}, "journal of candidates": more}


def _write_policy(directory: Path) -> dict[str, Any]:
    """A policy, as `melee train` leaves one."""
    weights = {"w": np.array([0.5, -0.25])}
    artefact.save(
        directory / "policy",
        kind="made",
        schema=("one feature", "another"),
        arrays=weights,
        training={"seed": 0, "tasks": 3},
        reference={"inputs": np.eye(2), "scores": weights["w"]},
    )
    return {"policy": {"w": weights["w"].tolist()}}


def _write_cells(directory: Path) -> dict[str, Any]:
    """The cells of a benchmark: rewards of 0 and 1, others, and a failure."""
    place = directory / "cells"
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        rows = "\n".join(f"{i},{i % 3},{'ab'[i % 2]}" for i in range(40))
        (Path(made) / "table.csv").write_text(f"x,y,class\n{rows}\n")
        plan = make_plan(made, ["uniform", "linucb"], n_seeds=1, a_a=False, way="both")
    plan = dataclasses.replace(plan, suite="made")
    cells = plan.cells["table"]
    kept = [np.array([0.0, 1.0, 1.0]), np.array([0.25, -3.0, 1e9])]
    with CellStore.open(place) as store:
        store.save_plan(plan, {"note": "made"})
        store.add(Record.of(cells[0].key, kept[0], 0.5, expected_reward=0.6, share=0.7))
        store.add(Record.of(cells[1].key, kept[1], 0.25))
        store.add(Record.failure(cells[2].key, "it could not be played"))
    (place / "lock").unlink()
    return {"cells": {"rewards": [rewards.tolist() for rewards in kept]}}


# -- layouts -------------------------------------------------------------------------------------


def unpacked(directory: Path, into: Path) -> Path:
    """A copy of kept files, as melee reads them."""
    shutil.copytree(directory, into)
    for path in list(into.rglob("*.gz")):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    return into


def layouts(directory: Path) -> dict[str, Any]:
    """How the files of a directory are laid out: names, types and versions, and no values."""
    return {
        "agent.melee": _agent(directory / "agent.melee"),
        "candidates.melee": _agent(directory / "candidates.melee"),
        "history.jsonl": _lines(directory / "history.jsonl"),
        "history.dsjson": _lines(directory / "history.dsjson"),
        "history.parquet": _columns(directory / "history.parquet"),
        "journal": _journal(directory / "journal" / FILE),
        "policy": {
            "manifest": shape(json.loads((directory / "policy" / artefact.MANIFEST).read_text())),
            "weights": _arrays(dict(np.load(directory / "policy" / artefact.WEIGHTS))),
        },
        "cells": _cells(directory / "cells"),
    }


def shape(value: Any) -> Any:
    """What JSON holds, by names and types; of a list the kinds of its entries."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in sorted(value.items())}
    if isinstance(value, list):
        kinds = {json.dumps(shape(part), sort_keys=True) for part in value}
        return [json.loads(kind) for kind in sorted(kinds)]
    return "number" if type(value) in (int, float) else type(value).__name__


def _agent(path: Path) -> dict[str, Any]:
    about, arrays = unpack(path.read_bytes(), str(path))
    return {"version": FORMAT_VERSION, "about": shape(about), "arrays": _arrays(arrays)}


def _arrays(arrays: dict[str, Any]) -> dict[str, str]:
    return {name: f"{array.dtype.name}, {array.ndim}-d" for name, array in sorted(arrays.items())}


def _lines(path: Path) -> list[Any]:
    return [shape(json.loads(line)) for line in path.read_text().splitlines()]


def _columns(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    return [f"{field.name}: {field.type}" for field in pq.read_schema(path)]


def _journal(path: Path) -> dict[str, Any]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        bodies = database.execute("SELECT kind, body FROM events").fetchall()
        offers = database.execute("SELECT body FROM offers").fetchall()
        (version,) = database.execute("SELECT format FROM journal").fetchone()
    kinds: dict[str, list[Any]] = {}
    for kind, body in bodies:
        kinds.setdefault(kind, []).append(json.loads(body))
    return {
        "version": version,
        "tables": {name: " ".join((sql or "").split()) for name, sql in tables},
        "events": {kind: shape(found) for kind, found in sorted(kinds.items())},
        "offers": shape([json.loads(body) for (body,) in offers]),
    }


def _cells(directory: Path) -> dict[str, Any]:
    heads = [
        {name: value for name, value in vars(record).items() if name != "payload"}
        for record in CellStore.read(directory).records()
    ]
    files = {
        name: json.loads((directory / name).read_text()) for name in ("store.json", "plan.json")
    }
    return {"records": shape(heads), **{name: shape(found) for name, found in files.items()}}


def main() -> None:
    """Write the files of this version, in place of those that it had before."""
    place = HOME / __version__
    shutil.rmtree(place, ignore_errors=True)
    write(place)
    for path in sorted(place.rglob("*")):
        if path.is_file():
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
