"""What is known of a suite's datasets from the last time, so that they need not be read again.

A dataset's content hashes and shape are remembered under all that they follow from: the file's
path, size, inode and times of change, the manifest, and the code that reads. They only serve to
make a plan; a process that plays a dataset reads it and checks its content hashes.
"""

import functools
import hashlib
import json
from importlib import metadata
from pathlib import Path
from typing import Any

from melee.benchmark.cells import Dataset, content_of, source_hash
from melee.benchmark.files import read_checked, write_checked
from melee.datasets import Entry
from melee.errors import DataError, MissingPackageError, told
from melee.extras import needed
from melee.preparation import N_LABELLED


class Facts:
    """Datasets by what they were read from; `save` keeps those asked for since."""

    def __init__(self, known: dict[str, list[Any]] | None = None) -> None:
        self.known = known or {}
        self.used: dict[str, list[Any]] = {}

    @classmethod
    def read(cls, directory: Path) -> "Facts":
        """What the store of this directory remembers; nothing if there is none, or damage."""
        try:
            return cls(read_checked(directory / "datasets.json"))
        except (OSError, DataError):
            return cls()

    def save(self, directory: Path) -> None:
        """Remember them for the next time."""
        if self.used != self.known:
            write_checked(directory / "datasets.json", self.used)

    def dataset(self, suite: str, entry: Entry, *, for_agents: bool = False) -> Dataset:
        """The dataset for a plan: from memory if its file has not changed, else by reading it.

        For agents, and where only they can play it, the hash of its rows has to be known too.
        """
        token = _token(suite, entry)
        if token in self.known and (self.known[token][-1] or not for_agents):
            self.used[token] = self.known[token]
            return _described(entry, *self.known[token])
        try:
            task = entry.load(keep_rows=for_agents)
            if task.live and not for_agents:
                task = entry.load(keep_rows=True)
        except MissingPackageError:  # it is not the dataset's fault
            raise
        except Exception as error:  # one file must not stop the others
            return Dataset(entry.name, entry.family, "", 0, 0, 0, told(error))
        facts: list[Any] = [content_of(task), task.n_rows, task.n_features, task.n_actions]
        facts += [task.live, task.named_rows().content_hash if for_agents or task.live else ""]
        if token:
            self.used[token] = facts
        return _described(entry, *facts)


def _described(
    entry: Entry,
    content_hash: str,
    n_rows: int,
    n_features: int,
    n_actions: int,
    live: bool,
    rows_hash: str,
) -> Dataset:
    problem = ""
    if n_rows <= N_LABELLED:
        problem = (
            f"dataset {entry.name}: {N_LABELLED} rows are reserved for calibration but it has "
            f"only {n_rows}; use a larger dataset"
        )
    shape = (n_rows, n_features, n_actions)
    return Dataset(entry.name, entry.family, content_hash, *shape, problem, rows_hash, live)


def _token(suite: str, entry: Entry) -> str:
    """A hash of what a dataset's content follows from; empty if that cannot be told."""
    directory = Path(suite.removeprefix("values:"))
    if entry.stored is not None:
        stored = entry.stored()
        origin: Any = stored and vars(stored)
    elif directory.is_dir():
        manifest = directory / "MANIFEST.csv"
        origin = [_state_of(directory / entry.source), entry.name]
        origin += [_state_of(manifest)] if manifest.exists() else []
    elif suite in ("production", "catalogue"):
        origin = [suite, entry.name, source_hash("shares", "rng")]
    else:
        with needed(f"suite {suite}", "bench"):
            origin = [suite, entry.name, metadata.version("scikit-learn")]
    if not origin:
        return ""
    return hashlib.sha256(json.dumps([origin, _reader()]).encode()).hexdigest()


def _state_of(path: Path) -> list[Any]:
    try:
        state = path.stat()
    except (OSError, ValueError):
        return [str(path)]
    times = [state.st_mtime_ns, state.st_ctime_ns]  # nobody can set the second
    return [str(path.resolve()), state.st_size, state.st_ino, *times]


@functools.cache
def _reader() -> list[str]:
    """The versions of what reads datasets."""
    with needed("reading datasets", "tables"):
        versions = [metadata.version(package) for package in ("pandas", "numpy")]
    return [source_hash("datasets", "task", "rows"), *versions]
