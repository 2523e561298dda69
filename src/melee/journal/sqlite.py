"""The embedded journal: a directory with a SQLite database and, beside it, snapshots.

    journal.sqlite   the events; -wal and -shm beside it are SQLite's
    writer.lock      held by the process that writes
    snapshots/       files of agents

WAL mode with `synchronous=FULL`: a commit writes to the end of one file and syncs it. Only one
connection writes, and that one checkpoints: SQLite up to 3.51.2 may lose pages when one connection
writes while another checkpoints. Those that read are read-only, and never do.
"""

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from melee.atomic import make_directory
from melee.errors import DataError, InputError
from melee.journal.snapshots import Directory
from melee.journal.store import Store, translated

try:
    import fcntl
except ImportError:  # Windows: SQLite's own locks are left
    fcntl = None  # type: ignore[assignment]

FILE = "journal.sqlite"
BUSY = 10.0
"""Seconds that a connection waits for another one's lock."""
_ABANDONED: list[Any] = []
"""Connections that a fork has copied: neither used nor closed, which might drop others' locks."""


def _library() -> Any:
    """`apsw`, which brings a current SQLite, or Python's own."""
    try:
        from melee.extras import needed

        with needed("a current SQLite", "journal"):
            import apsw
        return apsw
    except ImportError:
        import sqlite3

        return sqlite3


class SQLite(Store):
    """A store in a directory.

    Parameters
    ----------
    directory
        Where; made if need be, unless it is only read.
    writing
        Whether to write: then no other process may.
    vfs
        A file system of apsw's, for tests.
    """

    def __init__(self, directory: Path, *, writing: bool, vfs: str | None = None) -> None:
        super().__init__()
        self.where = str(directory)
        self._path, self._vfs = directory / FILE, vfs
        self._held: list[Any] = []  # what is closed at the end, whoever forgets to close it
        self._finalizer = weakref.finalize(self, _close_all, self._held)
        self._writer: Any = None
        self._reader: Any = None
        self._reading = threading.Lock()
        self._library = _library()
        self._errors = (self._library.Error, OSError)
        self.snapshots = Directory(directory / "snapshots")
        if writing:
            make_directory(directory)
            self._held.append(_lock(directory))
            try:
                with self.guarded():
                    self._open_writer()
            except BaseException:
                self.close()
                raise
        elif not self._path.is_file():
            raise DataError(f"{directory}: no journal is there; check the path")
        self.check_format()

    def _open_writer(self) -> None:
        self._writer = self._connect("rwc")
        self.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = FULL")
        self.make_tables("INTEGER", "REAL", "BLOB")

    def _connect(self, mode: str) -> Any:
        if self._library.__name__ == "sqlite3":
            made = self._library.connect(
                f"{self._path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=BUSY,
            )
        else:
            flags = {
                "ro": self._library.SQLITE_OPEN_READONLY,
                "rwc": self._library.SQLITE_OPEN_READWRITE | self._library.SQLITE_OPEN_CREATE,
            }
            made = self._library.Connection(str(self._path), flags=flags[mode], vfs=self._vfs)
            made.set_busy_timeout(int(BUSY * 1000))
        self._held.append(made)
        return made

    def guarded(self) -> Any:
        """A block in which errors of SQLite become ours."""
        return translated(self.where, *self._errors)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement on the connection that writes."""
        if self._writer is None:
            raise InputError(f"{self.where}: the journal was opened for reading only, or is closed")
        return list(self._writer.execute(statement, tuple(values)))

    def execute_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of many."""
        self._writer.executemany(statement, values)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that only reads."""
        with self._reading:
            if self._reader is None:
                self._reader = self._connect("ro")
            return list(self._reader.execute(statement, tuple(values)))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block that is done as a whole or not at all, and synced when it ends."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(*self._errors):  # SQLite may have done so, as where the disk is full
                self.execute("ROLLBACK")
            raise

    def size(self) -> int:
        """Bytes that the database takes."""
        with self.guarded():
            ((used,),) = self.query(
                "SELECT (p.page_count - f.freelist_count) * s.page_size FROM pragma_page_count p, "
                "pragma_freelist_count f, pragma_page_size s"
            )
        return int(used)

    def shrink(self) -> None:
        """Give room back to the file system."""
        self.execute("PRAGMA incremental_vacuum")
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def abandon(self) -> None:
        """Let go of what a fork has copied."""
        self._finalizer.detach()
        for item in self._held:
            if isinstance(item, int):
                os.close(item)  # the parent's copy still holds the lock
            else:
                _ABANDONED.append(item)
        self._held.clear()
        self._writer = self._reader = None
        self._reading = threading.Lock()

    def close(self) -> None:
        """Close both connections, and let another process write."""
        with self._reading:
            self._writer = self._reader = None
            _close_all(self._held)


def _close_all(held: list[Any]) -> None:
    """Close connections and files, the latest first."""
    while held:
        item = held.pop()
        if isinstance(item, int):
            os.close(item)
        else:
            item.close()


def _lock(directory: Path) -> int:
    """Hold the lock of who writes, to the end of this process."""
    with translated(str(directory), OSError):
        descriptor = os.open(directory / "writer.lock", os.O_RDWR | os.O_CREAT, 0o666)
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise DataError(
                f"{directory}: process {holder or 'unknown'} writes to this journal, and only one "
                "may; end it, or give another directory"
            ) from None
        except OSError:  # a file system without locks
            pass
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor
