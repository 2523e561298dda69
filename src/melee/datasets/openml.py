"""Datasets of openml.org, fetched once and kept on disk with a checksum."""

import gzip
import hashlib
import io
import json
import os
import socket
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError

from melee.atomic import make_directory, write_atomically
from melee.datasets.tables import table_to_task
from melee.errors import DataError, InputError
from melee.extras import needed
from melee.task import Task

if TYPE_CHECKING:
    import pandas as pd

TIMEOUT = 60.0
"""Seconds that the server may be silent before a fetch gives up."""


@dataclass(frozen=True)
class Stored:
    """What the cache knows of a dataset without opening its rows."""

    openml_id: int
    name: str
    version: str
    target: str
    rows: int
    columns: int
    classes: int
    bytes: int
    sha256: str
    notes: tuple[str, ...] = ()


def cache_directory(cache: str | os.PathLike[str] | None = None) -> Path:
    """Where fetched datasets are kept.

    The directory given, else the one in the environment variable `MELEE_DATA`, else `melee` in
    the user's cache (`XDG_CACHE_HOME` or `~/.cache`).

    >>> cache_directory("here").as_posix()
    'here'
    """
    if cache is not None:
        return Path(cache)
    if os.environ.get("MELEE_DATA"):
        return Path(os.environ["MELEE_DATA"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "melee"


def fetch(
    data_id: int,
    *,
    cache: str | os.PathLike[str] | None = None,
    expected_rows: int | None = None,
    name: str | None = None,
    progress: Callable[[str], None] | None = None,
    keep_rows: bool = False,
) -> Task:
    """A dataset from OpenML as a task; the network is used only the first time.

    The rows are checked against OpenML's checksum on arrival and against ours on every later
    read. A damaged copy is fetched again, which `progress` and the task's notes say.

    Parameters
    ----------
    data_id
        The dataset's number on openml.org.
    cache
        Directory of the copies; `cache_directory` says which one by default.
    expected_rows
        Refuse the dataset if it has another number of rows.
    name
        Name of the task; OpenML's name when left out.
    progress
        Called with a sentence when something takes time or goes wrong on the way.
    keep_rows
        Keep the rows as they are beside their numbers, for `rehearse`.

    Examples
    --------
    >>> fetch(37, expected_rows=768)  # doctest: +SKIP
    Task('diabetes', 768 rows, 8 features, 2 actions)
    """
    if isinstance(data_id, bool) or not isinstance(data_id, int) or data_id < 1:
        raise InputError(f"data_id is {data_id!r}; expected the number of a dataset, 1 or larger")
    say = progress or (lambda sentence: None)
    directory = cache_directory(cache) / "openml"
    notes: list[str] = []
    try:
        stored, frame = _load(directory, data_id)
    except FileNotFoundError:
        say(f"fetching dataset {data_id} from OpenML")
    except (DataError, OSError) as error:
        notes.append(f"the cached copy was damaged and fetched again: {error}")
        say(f"dataset {data_id}: {notes[0]}")
    else:
        _check_rows(data_id, stored.rows, expected_rows)
        return _to_task(frame, asdict(stored), name, notes, keep_rows)

    frame, about = _download(data_id)
    _check_rows(data_id, frame.shape[0], expected_rows)
    task = _to_task(
        frame, about, name, notes, keep_rows
    )  # before storing: it refuses unusable data
    try:
        _store(directory, data_id, frame, about | {"classes": task.n_actions})
    except DataError as error:
        say(f"dataset {data_id} could not be kept: {error}")
    return task


def cached(data_id: int, *, cache: str | os.PathLike[str] | None = None) -> Stored | None:
    """What is stored of a dataset, or None; a glance at its size, not a check of its bytes.

    >>> cached(37, cache="no-such-directory") is None
    True
    """
    directory = cache_directory(cache) / "openml"
    try:
        stored = _sidecar(directory, data_id)
        complete = (directory / f"{data_id}.parquet").stat().st_size == stored.bytes
    except (DataError, OSError):
        return None
    return stored if complete else None


def _to_task(
    frame: "pd.DataFrame",
    about: dict[str, Any],
    name: str | None,
    notes: list[str],
    keep_rows: bool,
) -> Task:
    version = f" version {about['version']}" if about["version"] else ""
    return table_to_task(
        frame,
        about["target"],
        name=name or about["name"],
        source=f"OpenML {about['openml_id']} ({about['name']}{version})",
        notes=(*about["notes"], *notes),
        keep_rows=keep_rows,
    )


def _check_rows(data_id: int, found: int, expected: int | None) -> None:
    if expected is not None and found != expected:
        raise DataError(
            f"OpenML {data_id}: {expected} rows are expected but it has {found}; "
            "it may have changed since, so leave it out or fetch it without expected_rows"
        )


def _download(data_id: int) -> tuple["pd.DataFrame", dict[str, Any]]:
    """The dataset's columns as OpenML has them now, and what it says about them."""
    with needed("fetching from OpenML", "bench"):
        import pandas as pd
        import pyarrow as pa  # noqa: F401 - what keeps the rows
        from sklearn.datasets import fetch_openml

    # A directory of its own: a download cut short leaves nothing that a later one would trust.
    with (
        tempfile.TemporaryDirectory(prefix="melee-openml-") as scratch,
        warnings.catch_warnings(record=True) as warned,
        _timeout(TIMEOUT),
        _explained(data_id),
    ):
        warnings.simplefilter("always")
        bunch = fetch_openml(
            data_id=data_id, as_frame="auto", parser="auto", data_home=scratch, n_retries=2
        )
    targets = list(bunch.target_names)
    if len(targets) != 1:
        raise DataError(
            f"OpenML {data_id}: it has {len(targets)} target columns; a task needs exactly one"
        )
    frame = bunch.frame
    if frame is None:  # sparse ARFF
        frame = pd.DataFrame(bunch.data.toarray(), columns=bunch.feature_names)
        frame[targets[0]] = bunch.target
    about = {
        "openml_id": data_id,
        "name": str(bunch.details["name"]),
        "version": str(bunch.details.get("version", "")),
        "target": targets[0],
        "rows": frame.shape[0],
        "columns": frame.shape[1] - 1,
        "notes": [str(w.message) for w in warned if str(w.message).startswith(("Ver", "OpenML"))],
    }
    return _portable(frame), about


@contextmanager
def _timeout(seconds: float) -> Iterator[None]:
    """A limit on silent connections; scikit-learn sets none and would wait for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


@contextmanager
def _explained(data_id: int) -> Iterator[None]:
    """What can go wrong between here and OpenML, each as a sentence."""
    who = f"OpenML {data_id}"
    try:
        yield
    except HTTPError as error:
        error.close()
        raise DataError(
            f"{who}: the server answered {error.code} {error.reason}; try again later"
        ) from None
    except (URLError, TimeoutError, ConnectionError) as error:
        raise DataError(
            f"{who}: cannot reach the server ({getattr(error, 'reason', error)}); check the "
            "connection, or use the suite 'bundled', which needs none"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError) as error:
        raise DataError(
            f"{who}: the server's answer is not what OpenML's interface promises "
            f"({type(error).__name__}: {error}); is a proxy or login page in between?"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{who}: the download is cut off or damaged ({error}); try again") from None
    except (ValueError, OSError) as error:
        if "not found" in str(error):
            raise DataError(
                f"{who}: OpenML knows no such dataset; look its number up on openml.org"
            ) from None
        if "md5" in str(error):
            raise DataError(
                f"{who}: the download does not match OpenML's own checksum; try again"
            ) from None
        raise DataError(f"{who}: the download cannot be read ({error})") from None


def _store(directory: Path, data_id: int, frame: "pd.DataFrame", about: dict[str, Any]) -> None:
    """Write the rows, then the sidecar that vouches for them; each appears whole or not at all."""
    make_directory(directory)
    content: bytes = frame.to_parquet(None, engine="pyarrow", index=False)
    write_atomically(directory / f"{data_id}.parquet", content)
    about = about | {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    write_atomically(directory / f"{data_id}.json", (json.dumps(about, indent=1) + "\n").encode())


def _portable(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The frame with levels as text: Parquet stores one type per column."""
    with needed("fetching from OpenML", "bench"):
        import pandas as pd

    columns = {
        name: column.cat.rename_categories([str(level) for level in column.cat.categories])
        for name, column in frame.items()
        if isinstance(column.dtype, pd.CategoricalDtype)
    }
    return frame.assign(**{str(name): column for name, column in columns.items()})


def _sidecar(directory: Path, data_id: int) -> Stored:
    path = directory / f"{data_id}.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        return Stored(**about | {"notes": tuple(about["notes"])})
    except (ValueError, TypeError, KeyError):
        raise DataError(f"{path.name} is not a description of a dataset") from None


def _load(directory: Path, data_id: int) -> tuple[Stored, "pd.DataFrame"]:
    """The stored copy, whose bytes are what was written; FileNotFoundError if there is none."""
    stored = _sidecar(directory, data_id)
    path = directory / f"{data_id}.parquet"
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != stored.sha256:
        raise DataError(
            f"{path.name} has {len(content)} bytes that do not match their checksum "
            f"({stored.bytes} were written)"
        )
    with needed("reading Parquet", "tables"):
        import pandas as pd
        import pyarrow as pa  # noqa: F401 - through pandas
    frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    if frame.shape != (stored.rows, stored.columns + 1) or stored.target not in frame.columns:
        raise DataError(f"{data_id}.json does not describe the rows in {path.name}")
    return stored, frame
