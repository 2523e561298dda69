"""Collections of datasets under one name, each dataset loaded only when it is asked for."""

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Protocol, overload

from melee.datasets import openml
from melee.datasets.catalogues import KIOSKS, catalogue_task, value_task
from melee.datasets.files import READABLE, read_frame, stem
from melee.datasets.production import LABELLED
from melee.datasets.tables import read_table, table_to_task
from melee.datasets.uses import USES, load_use
from melee.errors import DataError, UnknownNameError, file_error, unknown
from melee.extras import needed
from melee.task import Task

BUNDLED = {"iris": 150, "wine": 178, "breast_cancer": 569, "digits": 1797}
"""The real classification datasets inside scikit-learn, and their rows."""

NEAR_DUPLICATES = (
    (772, 948),
    (996, 1005),
    (1049, 1454),
    (1442, 1449),
    (1045, 1066),
    (765, 767),
    (947, 951),
    (949, 950),
)
"""Pairs of OpenML numbers whose rows are almost the same."""


class Loader(Protocol):
    """Reads a task."""

    def __call__(self, *, keep_rows: bool = False) -> Task:
        """The task, with its rows as they are beside their numbers if they are to be kept."""


@dataclass(frozen=True)
class Entry:
    """A dataset of a suite: what is known without reading it, and how to read it.

    Parameters
    ----------
    name
        Unique within the suite; the task carries it too.
    load
        Reads the task; a DataError says why it cannot. `load(keep_rows=True)` keeps the rows as
        they are beside their numbers.
    source
        Where the rows come from.
    family
        Datasets that resemble each other share it; count a family once when averaging.
    n_rows, n_columns, n_actions
        What the suite says about the dataset, None where it says nothing. Columns are the
        table's, before levels become columns of their own.
    stored
        For datasets fetched over the network: what the cache holds.
    """

    name: str
    load: Loader
    source: str
    family: str
    n_rows: int | None = None
    n_columns: int | None = None
    n_actions: int | None = None
    stored: Callable[[], openml.Stored | None] | None = None


class Suite(Sequence[Entry]):
    """The datasets of a suite in their order; `suite.entry(name)` finds one by its name.

    >>> load_suite("bundled").entry("iris").load()
    Task('iris', 150 rows, 4 features, 3 actions)
    """

    def __init__(self, name: str, entries: Sequence[Entry]) -> None:
        self.name = name
        self.entries = tuple(entries)

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> "Suite": ...
    def __getitem__(self, index: int | slice) -> "Entry | Suite":
        if isinstance(index, slice):
            return Suite(self.name, self.entries[index])
        return self.entries[index]

    @property
    def names(self) -> list[str]:
        """The datasets' names, in order."""
        return [entry.name for entry in self.entries]

    def entry(self, name: str) -> Entry:
        """The dataset of that name."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise unknown(f"dataset in suite {self.name}", name, self.names)

    def __repr__(self) -> str:
        return f"Suite({self.name!r}, {len(self)} datasets)"


def load_suite(
    name: str | os.PathLike[str],
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Suite:
    """A suite by its name, or the data files of a directory.

    Nothing is read or fetched until an entry's `load` is called, so one unreadable dataset does
    not stop the others.

    Parameters
    ----------
    name
        `bundled` (inside scikit-learn, no network), `paper300` (the paper's list, from OpenML),
        `production` (made: clicks, A/B tests, ratings, revenue and other uses, whose expected
        rewards are known), `catalogue` (made: articles with features that come and go), `values`
        (a number to be chosen: scikit-learn's regression table), `values:DIR` (the same of every
        table in a directory, whose last column is the number) or a directory. With a MANIFEST.csv
        there, its rows are the datasets: columns `file` and `name`, and optionally `openml_id` and
        `id_like_columns` (a JSON list of columns to leave out); without one, every file that can
        be read.
    cache, progress
        For datasets from OpenML, as in `fetch`.

    Examples
    --------
    >>> load_suite("bundled").names
    ['iris', 'wine', 'breast_cancer', 'digits']
    >>> load_suite("paper300")
    Suite('paper300', 300 datasets)
    >>> load_suite("production").entry("ab-10pct-2").load()
    Task('ab-10pct-2', 10030 rows, 1 features, 2 actions)
    """
    if str(name) == "bundled":
        return Suite("bundled", list(_bundled()))
    if str(name) == "paper300":
        return Suite("paper300", list(_paper300(cache, progress)))
    if str(name) == "production":
        return Suite("production", list(_production()))
    if str(name) == "catalogue":
        return Suite("catalogue", list(_catalogue()))
    if str(name) == "values":
        load = partial(_load_values, None)
        return Suite("values", [Entry("diabetes", load, "scikit-learn", "diabetes", 442)])
    as_values = str(name).startswith("values:")
    directory = Path(str(name).removeprefix("values:")) if as_values else Path(name)
    if not directory.is_dir():
        known = ["bundled", "paper300", "production", "catalogue", "values"]
        error = unknown("suite", str(name), known)
        raise UnknownNameError(f"{error}, or a directory with data files")
    manifest = directory / "MANIFEST.csv"
    try:
        entries = list(_listed(manifest) if manifest.exists() else _found(directory))
    except OSError as error:
        raise file_error(error.filename or directory, "read", error) from None
    if not entries:
        raise DataError(
            f"{directory} holds no datasets; put files there that end in {', '.join(READABLE)}"
        )
    if as_values:
        files = [directory / Path(entry.source) for entry in entries]
        entries = [
            Entry(entry.name, partial(_load_values, file), entry.source, entry.family, entry.n_rows)
            for entry, file in zip(entries, files, strict=True)
        ]
    return Suite(directory.resolve().name, entries)


def family(name: str, openml_id: int | None = None) -> str:
    """The group of near-duplicates that a dataset belongs to; most stand alone.

    >>> family("fri_c3_100_50"), family("tic-tac-toe"), family("quake", 948)
    ('fri_c', 'tic-tac-toe', 'openml-772-948')
    """
    for pair in NEAR_DUPLICATES:
        if openml_id in pair:
            return f"openml-{pair[0]}-{pair[1]}"
    return "fri_c" if re.match(r"fri_c\d", name) else name


def _bundled() -> Iterator[Entry]:
    for name, n_rows in BUNDLED.items():
        yield Entry(name, partial(_load_bundled, name), "scikit-learn", name, n_rows)


def _load_bundled(name: str, *, keep_rows: bool = False) -> Task:
    with needed(f"dataset {name}", "bench"):
        import sklearn.datasets

        # isort: split
        import pandas as pd  # noqa: F401 - else scikit-learn asks for it, in its own words

    bunch = getattr(sklearn.datasets, f"load_{name}")(as_frame=True)
    frame = bunch.data.assign(target=[str(bunch.target_names[label]) for label in bunch.target])
    source = f"scikit-learn's load_{name}"
    return table_to_task(frame, "target", name=name, source=source, keep_rows=keep_rows)


def _paper300(
    cache: str | os.PathLike[str] | None, progress: Callable[[str], None] | None
) -> Iterator[Entry]:
    text = resources.files("melee.datasets").joinpath("paper300.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    plain = [row["name"] or f"openml-{row['openml_id']}" for row in rows]
    for row, name, given in zip(rows, _unique(plain, rows), plain, strict=True):
        # A note says why the paper's row count does not hold.
        openml_id, n_rows = int(row["openml_id"]), None if row["note"] else int(row["rows"])
        load = partial(
            openml.fetch, openml_id, cache=cache, expected_rows=n_rows, name=name, progress=progress
        )
        stored = partial(openml.cached, openml_id, cache=cache)
        source = f"OpenML {openml_id}"
        yield Entry(name, load, source, family(given, openml_id), n_rows, stored=stored)


def _load_values(file: Path | None, *, keep_rows: bool = False) -> Task:
    if file is not None:
        name = stem(file)
        return value_task(read_frame(file), name=name, source=file.name, keep_rows=keep_rows)
    with needed("dataset diabetes", "bench"):
        import sklearn.datasets

        # isort: split
        import pandas as pd  # noqa: F401 - else scikit-learn asks for it, in its own words

    bunch = sklearn.datasets.load_diabetes(as_frame=True)
    source = "scikit-learn's load_diabetes"
    return value_task(bunch.frame, "target", name="diabetes", source=source, keep_rows=keep_rows)


def _catalogue() -> Iterator[Entry]:
    for name, kiosk in KIOSKS.items():
        load, n_rows = partial(catalogue_task, name), kiosk.n_rounds + LABELLED
        yield Entry(name, load, "made", name, n_rows, 6)


def _production() -> Iterator[Entry]:
    for name, use in USES.items():
        load, n_rows = partial(load_use, name), use.n_rounds + LABELLED
        yield Entry(name, load, "made", name, n_rows, use.n_features, use.n_actions)


def _listed(manifest: Path) -> Iterator[Entry]:
    """The datasets that a manifest lists."""
    try:
        with manifest.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows, columns = list(reader), list(reader.fieldnames or [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{manifest}: cannot be read ({error}); write it as CSV, in UTF-8"
        ) from None
    if missing := [c for c in ("file", "name") if c not in columns]:
        raise DataError(
            f"{manifest}: there is no column '{missing[0]}'; it has {', '.join(columns)}"
        )
    for i, row in enumerate(rows, start=1):
        if not row["file"] or not row["name"]:
            raise DataError(
                f"{manifest}: data row {i} gives no file or no name; expected both in every row"
            )
    for row, name in zip(rows, _unique([row["name"] for row in rows], rows), strict=True):
        number = _whole(row, "openml_id")
        yield Entry(
            name,
            partial(_load_listed, manifest, row, name),
            row["file"],
            family(row["name"], number),
            _whole(row, "rows", "rows_got"),
            _whole(row, "features"),
            _whole(row, "classes"),
        )


def _load_listed(
    manifest: Path, row: dict[str, str], name: str, *, keep_rows: bool = False
) -> Task:
    drop = row.get("id_like_columns") or "[]"
    try:
        columns = json.loads(drop)
        if not isinstance(columns, list):
            raise ValueError
    except (ValueError, RecursionError):
        raise DataError(
            f"{manifest}: id_like_columns of {name} is {drop!r}; "
            'expected a JSON list of column names, such as ["id"]'
        ) from None
    file = manifest.parent / row["file"]
    return read_table(file, name=name, drop=[str(c) for c in columns], keep_rows=keep_rows)


def _found(directory: Path) -> Iterator[Entry]:
    """Every file of the directory whose name says that it can be read."""
    files = sorted(p for p in directory.iterdir() if p.name.lower().endswith(READABLE))
    stems = Counter(stem(path) for path in files)
    for path in files:
        name = stem(path) if stems[stem(path)] == 1 else path.name
        yield Entry(name, partial(read_table, path, name=name), path.name, family(stem(path)))


def _unique(names: list[str], rows: list[dict[str, str]]) -> list[str]:
    """Names that repeat carry their OpenML number, or else their file's name."""
    often = Counter(names)
    return [
        name if often[name] == 1 else f"{name}-{row.get('openml_id') or stem(Path(row['file']))}"
        for name, row in zip(names, rows, strict=True)
    ]


def _whole(row: dict[str, str], *columns: str) -> int | None:
    """The first of the columns that holds a whole number."""
    values = (row.get(column) or "" for column in columns)
    return next((int(value) for value in values if value.isdecimal() and len(value) < 19), None)
