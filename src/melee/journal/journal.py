"""`Journal`: one agent's part of a store of events."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from melee.errors import DataError, InputError, shown, whole_number
from melee.journal.commits import Commits, Ticket
from melee.journal.events import (
    ROLLBACK,
    Draft,
    Event,
    Head,
    is_next,
    read_rollback,
)
from melee.journal.offers import Offer
from melee.journal.postgres import PREFIXES, Postgres
from melee.journal.snapshots import Snapshot, check_agent
from melee.journal.sqlite import SQLite
from melee.journal.store import Store

EVERY = 10_000
"""Events from one snapshot to the next."""
KEPT = 2
"""Snapshots that are kept at least: if the newest is damaged, there is one more."""
MOST = 16
"""Snapshots that are kept at most, for the past: they are thinned out evenly."""


class Dropped(NamedTuple):
    """What retention has let go."""

    n_events: int
    n_snapshots: int


class Journal:
    """Events of one agent, in order, on disk before anybody is answered.

    One process writes at a time; others may read.

    Parameters
    ----------
    place
        A directory, made if need be, or the address of a PostgreSQL database,
        `postgresql://user@host/database`.
    agent
        The name of the agent: several may share a journal.
    snapshot_every
        Events after which a snapshot is written, beside whatever goes on.
    keep_days, keep_bytes
        How long events are kept, and how much of them; what is older, or more, is dropped when a
        snapshot is written. By default everything is kept.
    writing
        Whether to write; whoever only reads never disturbs.
    shared
        Whether other processes write, too, in turns (see `begin_turn`); only in PostgreSQL.
    """

    def __init__(
        self,
        place: str | PathLike[str],
        agent: str = "agent",
        *,
        snapshot_every: int = EVERY,
        keep_days: float | None = None,
        keep_bytes: int | None = None,
        writing: bool = True,
        shared: bool = False,
    ) -> None:
        self.name = check_agent(agent)
        self.snapshot_every = whole_number("snapshot_every", snapshot_every, 1)
        if keep_days is not None and not keep_days >= 0.0:
            raise InputError(f"keep_days is {shown(keep_days)}; expected a number of days")
        if keep_bytes is not None:
            whole_number("keep_bytes", keep_bytes, 0)
        self.keep_days, self.keep_bytes, self.is_shared = keep_days, keep_bytes, shared
        self.store = open_store(place, writing=writing, shared=shared)
        self._commits = Commits(self.store.append)

    @classmethod
    def of(cls, store: Store, agent: str = "agent") -> "Journal":
        """The journal of an agent in a store that is open."""
        journal = cls.__new__(cls)
        journal.name, journal.store = check_agent(agent), store
        journal.snapshot_every, journal.keep_days, journal.keep_bytes = EVERY, None, None
        journal.is_shared = False
        journal._commits = Commits(store.append)
        return journal

    def another(self, name: str) -> "Journal":
        """The journal of another agent in the same place; they share their syncs."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self), name=check_agent(name))
        return other

    @property
    def where(self) -> str:
        """What it is called in messages."""
        return self.store.where

    # -- writing ----------------------------------------------------------------------------------

    def append(self, drafts: Sequence[Draft]) -> Ticket:
        """Queue events that belong together, at once; `wait` for them to be on disk."""
        return self._commits.add([(draft.agent or self.name, draft) for draft in drafts])

    def wait(self, ticket: Ticket) -> None:
        """Return when it is on disk; a `DataError` if it will not be."""
        self._commits.wait(ticket)

    @property
    def has_failed(self) -> bool:
        """Whether something could not be written: what is in memory is ahead of the disk."""
        return self._commits.error is not None

    @property
    def n_failures(self) -> int:
        """How many times something could not be written; agents that share a journal compare."""
        return self._commits.n_failures

    def start_over(self) -> None:
        """Write again, after a failure, from what is on disk."""
        self.store.forget_known()
        self._commits.start_over()

    def begin_turn(self) -> Head:
        """Take a turn in a journal that others write to as well; where the chain ends.

        Until `end_turn` nobody else writes, so what is decided now is decided by all that is there.
        """
        if self.has_failed:
            self.start_over()
        self._commits.begin_turn()
        try:
            return self.store.begin_turn()
        except BaseException:
            self._commits.end_turn()
            raise

    def end_turn(self) -> None:
        """Write what was queued in this turn, and let others write; tickets say how it went."""
        with suppress(DataError):  # nothing was to be written
            self._commits.end_turn(self.store.end_turn)

    @property
    def written(self) -> Head | None:
        """The last event that was written here, if any was."""
        return self._commits.written

    def held(self) -> AbstractContextManager[None]:
        """A block in which nothing is written."""
        return self._commits.held()

    @property
    def n_syncs(self) -> int:
        """How many times events were forced to the disk since it was opened."""
        return self._commits.n_syncs

    # -- reading ----------------------------------------------------------------------------------

    def events(self, after: Head | None = None, until: int | None = None) -> Iterator[Event]:
        """The agent's events after a place, in order; every link of the chain is checked.

        By default from the start of what there is to the end of what there is now.
        """
        place = self.store.start() if after is None else after
        end = self.store.head().seq if until is None else until
        for event in self.store.rows(place.seq, end):
            if not is_next(place, event):
                raise broken(self.where, place, event)
            place = event.head
            if event.agent == self.name:
                yield event
        if place.seq < end:
            raise DataError(
                f"{self.where}: event {place.seq + 1} is missing, and all after it, up to {end}; "
                "restore the journal from a copy"
            )

    def find(self, id: str, kind: str = "decision") -> Event | None:
        """The decision of that id, or its reward, or its record."""
        return self.store.find(self.name, id, kind)

    def given_up(self, decision: Event) -> Event | None:
        """The event that gave up a decision, if one did."""
        return self.store.given_up(self.name, decision)

    def is_taken(self, id: str) -> bool:
        """Whether a decision or a record has that id."""
        return self.store.is_taken(self.name, id)

    def offer(self, name: str) -> Offer:
        """What a decision could choose from."""
        return self.store.offer(name)

    @property
    def head(self) -> Head:
        """The end of the chain on disk."""
        return self.store.head()

    @property
    def first(self) -> Event | None:
        """The event that made the agent, unless it was dropped."""
        return self.store.created(self.name)

    @property
    def start(self) -> Head:
        """The last event that was dropped; nothing was where its number is 0."""
        return self.store.start()

    # -- snapshots --------------------------------------------------------------------------------

    def snapshots(self, until: int | None = None) -> list[Snapshot]:
        """Snapshots that belong to this chain, newest first, of no later than an event."""
        found = self.store.snapshots.of(self.name)
        return [
            snapshot
            for snapshot in found
            if (until is None or snapshot.head.seq <= until)
            and self.store.checksum_at(snapshot.head.seq) == snapshot.head.checksum
        ]

    def read_snapshot(self, snapshot: Snapshot) -> bytes:
        """The content of an agent's file."""
        return self.store.snapshots.read(snapshot)

    def write_snapshot(self, seq: int, content: bytes) -> Snapshot:
        """Keep the agent's file as it is after an event that is on disk."""
        checksum = self.store.checksum_at(seq)
        if checksum is None:
            raise InputError(f"{self.where}: event {seq} is not in the journal")
        snapshot = Snapshot(self.name, Head(seq, checksum))
        self.store.snapshots.write(snapshot, content)
        return snapshot

    def thin(self) -> None:
        """Let every other snapshot of the past go, where there are many."""
        found = self.snapshots()
        if len(found) > MOST:
            for snapshot in found[KEPT:-1:2]:
                self.store.snapshots.drop(snapshot)

    # -- retention --------------------------------------------------------------------------------

    def compact(
        self,
        *,
        keep_days: float | None = None,
        keep_bytes: int | None = None,
        now: float | None = None,
    ) -> Dropped:
        """Drop events that are too old or too many, up to a snapshot from which all goes on.

        Older snapshots go with them, but for two. An event is kept as long as any agent of the
        journal needs it.

        Parameters
        ----------
        keep_days, keep_bytes
            What to keep; by default as the journal was opened with.
        now
            Seconds since the epoch; by default the time it is.
        """
        known = self.store.latest_rollback()
        days = self.keep_days if keep_days is None else keep_days
        most = self.keep_bytes if keep_bytes is None else keep_bytes
        start, end = self.store.start().seq, self.store.head().seq
        until = start
        if days is not None:
            moment = time.time() if now is None else now
            until = max(until, self.store.seq_before(moment - days * 86_400.0))
        if most is not None and end > start:
            size = self.store.size()
            if size > most:
                until = max(until, end - int((end - start) * most / size))
        kept, surplus = None, []
        for name in self.store.agents():
            sound = self.another(name).snapshots()
            past = self.another(name)._needed(until)
            usable = [snapshot for snapshot in sound if snapshot.head.seq <= past]
            needed = usable[0].head if usable else self.another(name)._before(past)
            kept = needed if kept is None or needed.seq < kept.seq else kept
            fresh = {snapshot.name for snapshot in sound[:KEPT]} | {
                snapshot.name for snapshot in usable[:1]
            }
            surplus += [
                snapshot for snapshot in self.store.snapshots.of(name) if snapshot.name not in fresh
            ]
        n_events = 0 if kept is None else self._drop(kept, known)
        start = self.store.start().seq
        gone = [snapshot for snapshot in surplus if snapshot.head.seq < start]
        for snapshot in gone:
            self.store.snapshots.drop(snapshot)
        return Dropped(n_events, len(gone))

    def _before(self, until: int) -> Head:
        """Where an agent without a snapshot is derived from: its first event."""
        return Head() if self.first is None else Head(min(self.first.seq - 1, until))

    def _needed(self, until: int) -> int:
        """The last event up to which others may go: a rollback that stays needs what it names."""
        for event in reversed(self.store.turns(self.name, ROLLBACK)):
            if event.seq > until:
                until = min(until, read_rollback(event)[0])
        return until

    def _drop(self, until: Head, known: int) -> int:
        """Drop events, some at a time: callers must not wait for all of it.

        A rollback after the event `known` may need what was to be dropped; then the rest stays.
        """
        dropped = 0
        while True:
            with self._commits.held():
                some = self.store.drop_some(until, known)
                dropped += some
                if some == 0:
                    if dropped:
                        with self.store.guarded():
                            self.store.shrink()
                    return dropped

    def close(self) -> None:
        """Let go of it; another process may write then."""
        self.store.close()

    def __repr__(self) -> str:
        return f"<Journal of {self.name!r} in {self.where}>"


def is_shareable(address: Any) -> bool:
    """Whether several processes may write to a journal of this address."""
    return isinstance(address, str) and address.startswith(PREFIXES)


def open_store(address: Any, *, writing: bool, shared: bool = False) -> Store:
    """The store at an address."""
    if is_shareable(address):
        return Postgres(address, writing=writing, shared=shared)
    if shared:
        raise InputError(
            f"the journal is {shown(address)}, which one process writes; to share it among "
            "several, give the address of a PostgreSQL database"
        )
    is_path = isinstance(address, str | PathLike) and str(address) and "\0" not in str(address)
    if not is_path or (isinstance(address, str) and "://" in address):
        raise InputError(
            f"the journal is {shown(address)}; expected a directory, or the address of a "
            "PostgreSQL database such as postgresql://user@host/database"
        )
    return SQLite(Path(address), writing=writing)


def no_agent(journal: Journal) -> DataError:
    """The error for an agent that has no events."""
    return DataError(
        f"{journal.where}: no agent {journal.name!r} is in this journal; there are "
        f"{', '.join(journal.store.agents()) or 'none'}"
    )


def broken(where: str, place: Head, event: Event) -> DataError:
    """The error for an event that does not follow the one before."""
    if event.seq != place.seq + 1:
        missing = f"event {place.seq + 1} is missing"
        if event.seq > place.seq + 2:
            missing = f"events {place.seq + 1} to {event.seq - 1} are missing"
        return DataError(f"{where}: {missing}; restore the journal from a copy")
    return DataError(
        f"{where}: event {event.seq} was changed, or the one before it: its checksum does not fit; "
        "restore the journal from a copy"
    )
