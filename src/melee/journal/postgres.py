"""The shared journal: the same tables in PostgreSQL, and snapshots in one more.

Whoever writes locks the row of `journal`, so that all writers together make one chain. A process
that has it for itself holds an advisory lock; processes that share it hold the same lock together,
and write in turns: lock the row, read what the others have written, decide, append, commit.

One of those that share it has the lease, another advisory lock, and does what needs to be done once
(snapshots, giving up, dropping what is old). Such a lock ends with its connection, so PostgreSQL
itself notices who has died; no clocks are compared, as a row with a time in it would need. Nothing
goes wrong where two believe to have it for a moment: all that is written is checked in a turn.
"""

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from melee.errors import DataError, InputError
from melee.extras import needed
from melee.journal.events import DECISION, RECORD, Head
from melee.journal.snapshots import Snapshot, Snapshots
from melee.journal.store import Store, translated

PREFIXES = ("postgresql://", "postgres://")
LEASE = 0x6D656C6565
"""The advisory lock of who writes; after it come the lease, and the locks of opening and making."""
PATIENCE = 10
"""Seconds that a turn may take, that others wait for it, and that a connection may be dead."""
_ABANDONED: list[Any] = []
_IS_THERE = "SELECT to_regclass('journal')"
_INSERT = "INSERT INTO snapshots VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
T = TypeVar("T")


class Postgres(Store):
    """A store in PostgreSQL, in the schema that the address leads to.

    Parameters
    ----------
    address
        As psycopg takes it: `postgresql://user@host/database`.
    writing
        Whether to write, with nobody else who folds.
    shared
        Whether others may write, too: a node that decides, and leaves folding to another.
    """

    mark = "%s"
    lock_clause = " FOR UPDATE"

    def __init__(self, address: str, *, writing: bool, shared: bool = False) -> None:
        super().__init__()
        with needed("a journal in PostgreSQL", "postgres"):
            import psycopg
        self._library = psycopg
        self._address, self._shared = address, shared
        self._in_turn = self._has_lease = self._is_closed = False
        self._writer: Any = None
        self._reader: Any = None
        self._reading = threading.Lock()
        self._held: list[Any] = []  # what is closed at the end, whoever forgets to close it
        self._finalizer = weakref.finalize(self, _close_all, self._held)
        self.where = without_password(address)
        self.snapshots = Table(self)
        with self.guarded():
            if writing:
                self._writer = self._connect()
                self._begin(shared=shared)
            elif not self._is_there():
                raise DataError(f"{self.where}: no journal is there; check the address")
        self.check_format()

    def _connect(self) -> Any:
        made = self._library.connect(
            self._address,
            autocommit=True,
            connect_timeout=PATIENCE,
            keepalives_idle=PATIENCE // 2,
            keepalives_interval=2,
            keepalives_count=2,
            tcp_user_timeout=PATIENCE * 1000,
        )
        self._held.append(made)
        return made

    def _is_there(self) -> bool:
        return self.query(_IS_THERE) != [(None,)]

    def _begin(self, *, shared: bool) -> None:
        kind = "_shared" if shared else ""
        ((held,),) = self.execute(f"SELECT pg_try_advisory_lock{kind}({LEASE})")
        if not held:
            self.close()
            raise DataError(
                f"{self.where}: another process writes to this journal, and only one may; end it, "
                "or give another database"
            )
        self.execute("SET synchronous_commit = on")
        if shared:
            self.execute(f"SET lock_timeout = '{PATIENCE}s'")
            self.execute(f"SET idle_in_transaction_session_timeout = '{PATIENCE}s'")
        if not self._is_there():
            self._make()

    def _make(self) -> None:
        """Make the tables, unless another process has since: several may begin at once."""
        with self.transaction():
            self.execute(f"SELECT pg_advisory_xact_lock({LEASE + 3})")
            if self.execute(_IS_THERE) != [(None,)]:
                return
            self.make_tables("BIGINT", "DOUBLE PRECISION", "BYTEA")
            self.execute(
                "CREATE TABLE snapshots (agent TEXT NOT NULL, seq BIGINT NOT NULL, checksum BYTEA "
                "NOT NULL, content BYTEA NOT NULL, PRIMARY KEY (agent, seq, checksum))"
            )

    def guarded(self) -> Any:
        """A block in which errors of PostgreSQL become ours."""
        advice = "see whether the database can be reached"
        return translated(self.where, self._library.Error, OSError, advice=advice)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement on the connection that writes."""
        if self._writer is None:
            raise InputError(f"{self.where}: the journal was opened for reading only, or is closed")
        return _run(self._writer, statement, values)

    def execute_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of many."""
        with self._writer.cursor() as cursor:
            cursor.executemany(statement, values)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that only reads."""
        with self._reading:
            if self._is_closed:
                raise InputError(f"{self.where}: the journal is closed; open it again")
            if self._reader is not None:
                try:
                    return _run(self._reader, statement, values)
                except self._library.OperationalError:
                    if not self._reader.closed:
                        raise
                self._held[:] = [held for held in self._held if held is not self._reader]
            self._reader = self._connect()
            return _run(self._reader, statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block that is done as a whole or not at all, and synced when it ends."""
        if self._in_turn:
            self._in_turn = False
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                with suppress(self._library.Error):
                    self.execute("ROLLBACK")
                raise
            return
        if self._writer is not None and self._writer.closed:
            raise DataError(
                f"{self.where}: the connection is lost, and with it the right to write; open the "
                "journal again"
            )
        with self._writer.transaction():
            yield

    # -- turns ------------------------------------------------------------------------------------

    def begin_turn(self) -> Head:
        """Lock the row of `journal`, over a new connection where the old one is lost."""
        with self.guarded():
            return self._over_again(self._lock_row)

    def _over_again(self, act: Callable[[], T]) -> T:
        """Do something, over a new connection where the old one is lost."""
        try:
            return act()
        except self._library.OperationalError:
            if not self._writer.closed:
                raise
        self._connect_again()
        return act()

    def _lock_row(self) -> Head:
        self.execute("BEGIN")
        try:
            head = self._head(self.execute, for_update=True)
        except BaseException:
            with suppress(self._library.Error):
                self.execute("ROLLBACK")
            raise
        self._in_turn = True
        return head

    def _connect_again(self) -> None:
        self._held[:] = [held for held in self._held if held is not self._writer]
        self._has_lease = False
        self.forget_known()
        self._writer = self._connect()
        self._begin(shared=True)

    def end_turn(self) -> None:
        """Let go of the row."""
        if self._in_turn:
            self._in_turn = False
            with self.guarded():
                self.execute("ROLLBACK")

    def has_lease(self) -> bool:
        """Whether this process has the lease, or gets it now. Not in a turn of another thread."""
        if self._writer is None or self._writer.closed:
            return False
        if not self._has_lease:
            with self.guarded():
                ((held,),) = self.execute(f"SELECT pg_try_advisory_lock({LEASE + 1})")
            self._has_lease = bool(held)
        return self._has_lease

    @contextmanager
    def opening(self, *, patient: bool = False) -> Iterator[None]:
        """A block in which no other process makes agents.

        Who is patient waits as long as others take: one that starts may have much to read.
        """
        with self.guarded():
            self._over_again(lambda: self._lock_opening(patient=patient))
        try:
            yield
        finally:
            if not self._writer.closed:  # the lock ends with its connection
                with self.guarded():
                    self.execute(f"SELECT pg_advisory_unlock({LEASE + 2})")

    def _lock_opening(self, *, patient: bool) -> None:
        if patient:
            self.execute("SET lock_timeout = 0")
        self.execute(f"SELECT pg_advisory_lock({LEASE + 2})")
        if patient:
            self.execute(f"SET lock_timeout = '{PATIENCE}s'")

    def taken(self, ids: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of some agents and ids that decisions or records have."""
        if not ids:
            return set()
        with self.guarded():
            found = self.query(
                "SELECT agent, id FROM events WHERE id = ANY(%s) AND kind IN (%s, %s)",
                [[id for _, id in ids], DECISION, RECORD],
            )
        return set(found).intersection(ids)

    def attach(self, snapshot: Snapshot, content: bytes) -> None:
        """Keep a snapshot in the transaction of its event: who sees one sees the other."""
        self.execute(_INSERT, [snapshot.agent, *snapshot.head, content])

    def size(self) -> int:
        """Bytes that events take; what was dropped counts until PostgreSQL has cleared it away."""
        with self.guarded():
            ((used,),) = self.query("SELECT coalesce(sum(octet_length(body) + 150), 0) FROM events")
        return int(used)

    def shrink(self) -> None:
        """PostgreSQL clears away by itself."""

    def abandon(self) -> None:
        """Let go of what a fork has copied."""
        self._finalizer.detach()
        _ABANDONED.extend(self._held)  # closing them would end the parent's
        self._held.clear()
        self._writer = self._reader = None
        self._reading = threading.Lock()

    def close(self) -> None:
        """Close both connections, when nobody reads: libpq ends the process otherwise."""
        with self._reading:
            self._is_closed = True
            self._reader = self._writer = None
            _close_all(self._held)


class Table(Snapshots):
    """Snapshots in a table, so that every machine has them."""

    def __init__(self, store: Postgres) -> None:
        self._store = store

    def of(self, agent: str) -> list[Snapshot]:
        """Those of an agent, newest first."""
        with self._store.guarded():
            rows = self._store.query(
                "SELECT seq, checksum FROM snapshots WHERE agent = %s ORDER BY seq DESC", [agent]
            )
        return [Snapshot(agent, Head(seq, bytes(checksum))) for seq, checksum in rows]

    def agents(self) -> set[str]:
        """The names of agents that have any."""
        with self._store.guarded():
            return {str(agent) for (agent,) in self._store.query("SELECT agent FROM snapshots")}

    def read(self, snapshot: Snapshot) -> bytes:
        """The content of a snapshot."""
        with self._store.guarded():
            rows = self._store.query(
                "SELECT content FROM snapshots WHERE agent = %s AND seq = %s AND checksum = %s",
                [snapshot.agent, *snapshot.head],
            )
        if not rows:
            raise DataError(f"{self.where(snapshot)}: it is missing")
        return bytes(rows[0][0])

    def write(self, snapshot: Snapshot, content: bytes) -> None:
        """Keep a snapshot."""
        with self._store.guarded():
            # On the connection that reads: events must not wait for it.
            self._store.query(_INSERT, [snapshot.agent, *snapshot.head, content])

    def drop(self, snapshot: Snapshot) -> None:
        """Let a snapshot go."""
        with self._store.guarded():
            self._store.query(
                "DELETE FROM snapshots WHERE agent = %s AND seq = %s AND checksum = %s",
                [snapshot.agent, *snapshot.head],
            )


def _close_all(held: list[Any]) -> None:
    while held:
        with suppress(Exception):  # it may be lost already
            held.pop().close()


def _run(connection: Any, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(values) or None)
        return list(cursor.fetchall()) if cursor.description is not None else []


def without_password(address: str) -> str:
    """An address as messages show it; a directory is shown as it is.

    >>> without_password("postgresql://ann:secret@host/db")
    'postgresql://ann@host/db'
    """
    if not address.startswith(PREFIXES):
        return address
    scheme, _, rest = address.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{place.partition('?')[0]}"
