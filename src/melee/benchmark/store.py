"""The store: finished cells in one append-only file, each with its checksum.

A record is appended when its cell is finished, and outlives the driver once the call returns: a
killed driver or worker loses only what was still running. Once a second, and at the end, records
are forced to the disk, so that a machine that stops loses no more than that second's. A torn record
at the end is cut off and its cell runs again; a damaged one in the middle is named, skipped and
runs again. The records tell what they are: a damaged store.json is made again for them.

    DIR/store.json     what this is, and its format version
    DIR/plan.json      the plan of the latest run
    DIR/datasets.json  what is known of the datasets' files
    DIR/cells.log      the records
    DIR/lock           held by the one driver that may write
"""

import contextlib
import fcntl
import hashlib
import json
import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import FileIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from melee.arrays import Floats
from melee.atomic import clear, sync_directory, target_of, write_atomically
from melee.benchmark.cells import Plan
from melee.benchmark.files import read_checked, sentences, write_checked
from melee.errors import DataError, file_error
from melee.version import __version__

FORMAT, FORMAT_VERSION = "melee-bench", 1
_MAGIC = b"MELC"
_HEAD = struct.Struct("<4sII16s")  # magic, bytes of the header, bytes of the rewards, checksum
_FILES = ("store.json", "plan.json", "datasets.json", "cells.log")
SYNC_EVERY = 1.0
"""Seconds between two times that records are forced to the disk."""


@dataclass(frozen=True)
class Record:
    """A finished cell: its rewards, packed, or the problem that kept it from having any.

    Rewards of 0 and 1 are packed to bits, others kept as eight bytes, and compressed. The expected
    reward and the share are there where the dataset knows its expected rewards.
    """

    key: str
    n: int
    coding: str
    payload: bytes
    seconds: float
    problem: str = ""
    expected_reward: float | None = None
    share: float | None = None

    @classmethod
    def of(
        cls,
        key: str,
        rewards: Floats,
        seconds: float,
        expected_reward: float | None = None,
        share: float | None = None,
    ) -> "Record":
        """The record of a run."""
        if ((rewards == 0.0) | (rewards == 1.0)).all():
            coding, raw = "bits", np.packbits(rewards.astype(bool)).tobytes()
        else:
            coding, raw = "f8", np.ascontiguousarray(rewards, dtype="<f8").tobytes()
        payload = zlib.compress(raw, 1)
        return cls(key, len(rewards), coding, payload, seconds, "", expected_reward, share)

    @classmethod
    def failure(cls, key: str, problem: str) -> "Record":
        """The record of a cell that could not be run."""
        return cls(key, 0, "bits", zlib.compress(b"", 1), 0.0, problem)

    @property
    def rewards(self) -> Floats:
        """The reward of every round."""
        raw = zlib.decompress(self.payload)
        if self.coding == "bits":
            return np.unpackbits(np.frombuffer(raw, np.uint8), count=self.n).astype(np.float64)
        return np.frombuffer(raw, "<f8").astype(np.float64)


class CellStore:
    """The finished cells of a directory; `CellStore.open` to write, `CellStore.read` to look.

    Attributes
    ----------
    damage
        What of the records is lost, a text for each place.
    remark
        What a reader should know although nothing is lost, or an empty text.
    """

    def __init__(self, directory: Path, remark: str = "") -> None:
        self.directory = directory
        self.damage: list[str] = []
        self.remark = remark
        self._places: dict[str, tuple[int, int]] = {}  # key → begin and end of its rewards
        self._heads: dict[str, dict[str, Any]] = {}
        self._log: FileIO | None = None
        self._synced = 0.0
        self._lock: BinaryIO | None = None

    @classmethod
    def read(cls, directory: str | os.PathLike[str]) -> "CellStore":
        """Open a store to look at it; nothing on disk is changed."""
        path = Path(directory)
        store = cls(path, _check_format(path, todo="give one that melee bench --out has written"))
        store._scan(repair=False)
        return store

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> "CellStore":
        """Open or make a store to write to it; refuses if another driver does."""
        path = Path(directory)
        store = cls(path, check_free(path))
        try:
            with sentences(path):
                path.mkdir(parents=True, exist_ok=True)
                store._take_lock()
                for name in _FILES:
                    clear(path / name)
                if store.remark or not (path / "store.json").exists():
                    about = {"format": FORMAT, "format_version": FORMAT_VERSION}
                    content = json.dumps(about | {"melee": __version__}) + "\n"
                    write_atomically(path / "store.json", content.encode())
                store._scan(repair=True)
                store._log = FileIO(path / "cells.log", "a")
                sync_directory(path)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Let go of the files and the lock."""
        if self._log is not None:
            os.fsync(self._log.fileno())
        for file in (self._log, self._lock):
            if file is not None:
                file.close()
        self._log = self._lock = None

    def __enter__(self) -> "CellStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, key: str) -> bool:
        return key in self._heads

    def __len__(self) -> int:
        return len(self._heads)

    def failed(self, key: str) -> bool:
        """Whether a cell is there as a failure."""
        return bool(self._heads[key]["problem"])

    def seconds(self, key: str) -> float:
        """Time that a cell took in the compiled pass."""
        return float(self._heads[key]["seconds"])

    def add(self, record: Record) -> None:
        """Append a finished cell; it outlives this process once this returns, and soon power."""
        assert self._log is not None, "opened for reading"
        head = {name: value for name, value in vars(record).items() if name != "payload"}
        header, payload = json.dumps(head).encode(), record.payload
        checksum = hashlib.sha256(header + payload).digest()[:16]
        content = _HEAD.pack(_MAGIC, len(header), len(payload), checksum) + header + payload
        begin = os.fstat(self._log.fileno()).st_size
        with sentences(self.directory):
            try:
                written = self._log.write(content)
                while written < len(content):  # a full disk takes a part, then refuses
                    written += self._log.write(content[written:])
            except BaseException:
                self._log.truncate(begin)
                raise
            if time.monotonic() - self._synced >= SYNC_EVERY:
                os.fsync(self._log.fileno())
                self._synced = time.monotonic()
        at = begin + _HEAD.size + len(header)
        self._places[record.key] = (at, at + len(payload))
        self._heads[record.key] = head

    def records(self, keys: Iterable[str] | None = None) -> Iterator[Record]:
        """The records of some cells in their order, or all in the file's; one at a time."""
        wanted = list(self._places if keys is None else keys)
        if not wanted:
            return
        with (self.directory / "cells.log").open("rb") as log:
            for key in wanted:
                begin, end = self._places[key]
                log.seek(begin)
                yield Record(**self._heads[key], payload=log.read(end - begin))

    def save_plan(self, plan: Plan, about: dict[str, Any]) -> None:
        """Note the plan of this run, and what a reader should know of it."""
        content = {"plan": plan.as_dict(), "about": about}
        write_checked(self.directory / "plan.json", content)

    def load_plan(self) -> tuple[Plan, dict[str, Any]]:
        """The plan of the latest run, and what was noted of it."""
        file = self.directory / "plan.json"
        try:
            content = read_checked(file)
        except FileNotFoundError:
            raise DataError(
                f"{self.directory}: no run has begun here; start with melee bench"
            ) from None
        except (OSError, DataError) as error:
            raise DataError(
                f"{error}; run the same melee bench command again, which finds the finished cells "
                "by their keys"
            ) from None
        try:
            return Plan.from_dict(content["plan"]), dict(content["about"])
        except (TypeError, KeyError, AttributeError, ValueError):
            raise DataError(
                f"{file}: the plan of another version of melee; run the same melee bench command "
                "again"
            ) from None

    def _take_lock(self) -> None:
        path = self.directory / "lock"
        self._lock = path.open("a+b")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            holder = self._lock.read().decode(errors="replace").strip() or "unknown"
            self._lock.close()
            self._lock = None
            raise DataError(
                f"{self.directory}: another run is writing there (process {holder}); wait for it "
                "to end, or give another directory"
            ) from None
        self._lock.truncate(0)
        self._lock.write(f"{os.getpid()}\n".encode())
        self._lock.flush()

    def _scan(self, *, repair: bool) -> None:
        """Find all good records; with `repair`, leave only those in the file."""
        file = self.directory / "cells.log"
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise file_error(file, "read", error) from None
        good: list[tuple[int, int]] = []
        at = 0
        while at < len(content):
            end = _record_end(content, at)
            if end is not None:
                good.append((at, end))
                at = end
                continue
            following = content.find(_MAGIC, at + 1)
            while following >= 0 and _record_end(content, following) is None:
                following = content.find(_MAGIC, following + 1)
            if following < 0:
                self.damage.append(f"{file}: the last {len(content) - at} bytes are torn")
                break
            self.damage.append(f"{file}: bytes {at} to {following} are damaged")
            at = following
        if repair and self.damage:
            content = b"".join(content[begin:end] for begin, end in good)
            write_atomically(file, content)
            ends = list(accumulate(end - begin for begin, end in good))
            good = list(pairwise([0, *ends]))
        for begin, end in good:
            rewards_at = _rewards_at(content, begin)
            head = json.loads(content[begin + _HEAD.size : rewards_at])
            self._heads[head["key"]] = head
            self._places[head["key"]] = (rewards_at, end)


def _rewards_at(content: bytes, at: int) -> int:
    return at + _HEAD.size + int(_HEAD.unpack_from(content, at)[1])


def _record_end(content: bytes, at: int) -> int | None:
    """Where the record that begins here ends, if it is whole and its checksum is right."""
    if len(content) - at < _HEAD.size:
        return None
    magic, n_header, n_payload, checksum = _HEAD.unpack_from(content, at)
    begin, end = at + _HEAD.size, at + _HEAD.size + n_header + n_payload
    if magic != _MAGIC or end > len(content):
        return None
    return end if hashlib.sha256(content[begin:end]).digest()[:16] == checksum else None


def check_free(path: Path) -> str:
    """Refuse a directory for results that belongs to something else; a remark, as `_check_format`.

    A driver that was killed while it made the store leaves a lock and temporary files at most.
    """
    with sentences(path):
        if path.exists() and not path.is_dir():
            raise DataError(f"{path}: a file; give a directory for the results")
        if path.is_dir() and any(
            file.name != "lock" and target_of(file.name) not in _FILES for file in path.iterdir()
        ):
            return _check_format(path, todo="give a new or an empty directory")
    return ""


def _check_format(path: Path, *, todo: str) -> str:
    """Refuse a directory that is not a store of this version.

    A remark if store.json is lost and the records, by which a store is known as well, are there.
    """
    if not path.is_dir():
        raise DataError(f"{path}: there is no such directory; melee bench --out {path} makes it")
    file = path / "store.json"
    about: Any = None
    with contextlib.suppress(OSError, ValueError, RecursionError):
        about = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(about, dict) or "format" not in about or "format_version" not in about:
        if _holds_records(path / "cells.log"):
            return f"{file}: lost or damaged; the cells are in cells.log, and none is lost by it"
        if not file.exists():
            raise DataError(f"{path}: it holds other files and no benchmark; {todo}")
        raise DataError(f"{file}: not that of a MELEE benchmark; give another directory")
    if about["format"] != FORMAT:
        raise DataError(f"{file}: not that of a MELEE benchmark; give another directory")
    if about["format_version"] != FORMAT_VERSION:
        raise DataError(
            f"{file}: format version {about['format_version']}, written by melee "
            f"{about.get('melee')}; this is melee {__version__}, which reads version "
            f"{FORMAT_VERSION}: install that one, or give another directory"
        )
    return ""


def _holds_records(log: Path) -> bool:
    """Whether a log begins with a record; another version of the format has another mark."""
    try:
        with log.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False
