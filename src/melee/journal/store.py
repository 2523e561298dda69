"""Tables of events, the same in every SQL database.

    events     seq, agent, kind, id, time, body, checksum: the chain
    offers     name, body: what decisions could choose from, under the hash of its content
    journal    one row: the format, the last event, and the last one that retention has dropped

A transaction appends to `events` and moves the row of `journal`, so that a chain whose end was cut
off is noticed, and several writers take turns.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from melee.errors import DataError
from melee.journal.events import (
    CREATED,
    DECISION,
    RECORD,
    REWARD,
    TIME_OUT,
    Draft,
    Event,
    Head,
    chosen_from,
    link,
)
from melee.journal.offers import Offer, read_offer
from melee.journal.snapshots import Snapshot, Snapshots

FORMAT = 1
CHUNK = 2000
"""Rows that are read, or dropped, at a time."""
MOST_KNOWN, MOST_READ = 100_000, 1000
"""Offers that are known to be there, and such whose content is in memory."""

_CHANGES = "kind IN ('created', 'settings')"
_TURNS = "kind IN ('rollback', 'trial')"
_log = logging.getLogger("melee.journal")
_COLUMNS = "seq, agent, kind, id, time, body, checksum"


class Store(ABC):
    """A place for events. One thread at a time may write; another connection reads.

    Attributes
    ----------
    where
        What it is called in messages.
    snapshots
        The files of agents beside it.
    """

    where: str
    snapshots: Snapshots
    mark = "?"
    """What stands for a value in a statement."""

    def __init__(self) -> None:
        self._known: set[str] = set()  # offers that are there
        self._offers: dict[str, Offer] = {}

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement on the connection that writes; its rows."""

    @abstractmethod
    def execute_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of many."""

    @abstractmethod
    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that only reads, beside whoever writes."""

    @abstractmethod
    def transaction(self) -> Any:
        """A block that is done as a whole or not at all, and is on disk when it ends."""

    @abstractmethod
    def size(self) -> int:
        """Bytes that the events take."""

    @abstractmethod
    def shrink(self) -> None:
        """Give room back that dropped events have taken."""

    @abstractmethod
    def abandon(self) -> None:
        """Let go of what a fork has copied, without a trace in the parent's."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    @abstractmethod
    def guarded(self) -> Any:
        """A block in which errors of the database become ours."""

    # -- writing ----------------------------------------------------------------------------------

    def append(self, drafts: Sequence[tuple[str, Draft]]) -> Head:
        """Put events, each with its agent, at the end; they are on disk when this returns."""
        with self.guarded():
            new: dict[str, Offer] = {}
            for _, draft in drafts:
                if draft.offer is not None and draft.offer.name not in self._known:
                    new[draft.offer.name] = draft.offer
            with self.transaction():
                head = self._head(self.execute, for_update=True)
                rows = []
                for agent, draft in drafts:
                    event = link(head, agent, draft)
                    rows.append(event)
                    head = event.head
                for offer in new.values():
                    self._insert_offer(offer)
                marks = ", ".join([self.mark] * 7)
                self.execute_many(f"INSERT INTO events ({_COLUMNS}) VALUES ({marks})", rows)
                for event, (_, draft) in zip(rows, drafts, strict=True):
                    if draft.file is not None:
                        self.attach(Snapshot(event.agent, event.head), draft.file)
                self.execute(f"UPDATE journal SET head = {self.mark}, checksum = {self.mark}", head)
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            self._known.update(new)
        if _log.isEnabledFor(logging.DEBUG):
            for event, (_, draft) in zip(rows, drafts, strict=True):
                _log.debug(event.kind, extra=_told(event, draft.offer))
        return head

    def _insert_offer(self, offer: Offer) -> None:
        m = self.mark
        if not self.execute(f"SELECT 1 FROM offers WHERE name = {m}", [offer.name]):
            self.execute(f"INSERT INTO offers (name, body) VALUES ({m}, {m})", offer[::2])

    def attach(self, snapshot: Snapshot, content: bytes) -> None:
        """Keep a snapshot together with its event, where they are in one database."""
        raise DataError(
            f"{self.where}: snapshots are files beside it, so none comes with an event; a journal "
            "that several services share is in PostgreSQL"
        )

    def forget_known(self) -> None:
        """Ask again what is there: a transaction may have failed."""
        self._known.clear()

    def drop_some(self, until: Head, known: int) -> int:
        """Drop the oldest events, none after a place, and some only; how many were dropped.

        None are where there is a rollback after the event `known`: it may need them.
        """
        m = self.mark
        with self.guarded(), self.transaction():
            self._head(self.execute, for_update=True)  # no rollback can come meanwhile
            start = self._start(self.execute)
            last = min(start.seq + CHUNK, until.seq)
            if last <= start.seq or self._latest_rollback(self.execute) > known:
                return 0
            row = self.execute(f"SELECT checksum FROM events WHERE seq = {m}", [last])
            if not row:
                raise DataError(f"{self.where}: event {last} is missing; nothing more is dropped")
            self.execute(f"DELETE FROM events WHERE seq <= {m}", [last])
            place = [last, bytes(row[0][0])]
            self.execute(f"UPDATE journal SET start = {m}, start_checksum = {m}", place)
        return last - start.seq

    def begin_turn(self) -> Head:
        """Have nobody else write; where the chain ends. What is appended next ends the turn."""
        raise self._no_turns()

    def end_turn(self) -> None:
        """Let others write, where nothing was appended."""
        raise self._no_turns()

    def _no_turns(self) -> DataError:
        return DataError(
            f"{self.where}: one process alone writes here, so nobody takes turns; a journal that "
            "several write to is in PostgreSQL"
        )

    # -- reading ----------------------------------------------------------------------------------

    def head(self) -> Head:
        """The end of the chain."""
        with self.guarded():
            return self._head(self.query)

    def start(self) -> Head:
        """Where the chain begins: the last event that was dropped."""
        with self.guarded():
            return self._start(self.query)

    def _head(
        self, run: Callable[[str], list[tuple[Any, ...]]], *, for_update: bool = False
    ) -> Head:
        lock = self.lock_clause if for_update else ""
        ((seq, checksum),) = run(f"SELECT head, checksum FROM journal{lock}")
        return Head(seq, bytes(checksum))

    def _start(self, run: Callable[[str], list[tuple[Any, ...]]]) -> Head:
        ((seq, checksum),) = run("SELECT start, start_checksum FROM journal")
        return Head(seq, bytes(checksum))

    lock_clause = ""

    def rows(self, after: int, until: int | None = None) -> Iterator[Event]:
        """Events as they are, in order."""
        m = self.mark
        while True:
            with self.guarded():
                found = self.query(
                    f"SELECT {_COLUMNS} FROM events WHERE seq > {m} ORDER BY seq LIMIT {CHUNK}",
                    [after],
                )
            for row in found:
                if until is not None and row[0] > until:
                    return
                yield _event(row)
            if len(found) < CHUNK:
                return
            after = found[-1][0]

    def find(self, agent: str, id: str, kind: str) -> Event | None:
        """The event of a kind that is about this decision, the first of them."""
        with self.guarded():
            m = self.mark
            found = self.query(
                f"SELECT {_COLUMNS} FROM events WHERE id = {m} AND agent = {m} AND kind = {m} "
                "ORDER BY seq LIMIT 1",
                [id, agent, kind],
            )
        return _event(found[0]) if found else None

    def latest(
        self, n: int, *, agent: str | None = None, kind: str | None = None, id: str | None = None
    ) -> list[Event]:
        """The last events, oldest first: of an agent, of a kind, or about a decision.

        They are as they are: whether they follow each other is not looked at.
        """
        given = {"agent": agent, "kind": kind, "id": id}
        asked = {column: value for column, value in given.items() if value is not None}
        which = " AND ".join(f"{column} = {self.mark}" for column in asked) or "true"
        with self.guarded():
            rows = self.query(
                f"SELECT {_COLUMNS} FROM events WHERE {which} ORDER BY seq DESC LIMIT {self.mark}",
                [*asked.values(), n],
            )
        found = {event.seq: event for event in map(_event, rows)}
        if id is not None and kind in (None, TIME_OUT):
            for decision in self.latest(n, agent=agent, kind=DECISION, id=id):
                end = self.given_up(decision.agent, decision)
                found |= {} if end is None else {end.seq: end}
        return [found[seq] for seq in sorted(found)[-n:]]

    def given_up(self, agent: str, decision: Event) -> Event | None:
        """The event that gave up a decision; none where it was not, or a reward came.

        Most are found soon: time is over for the oldest first.
        """
        m = self.mark
        after, end = decision.seq, self.head().seq
        while after < end:
            with self.guarded():
                rows = self.query(
                    f"SELECT {_COLUMNS} FROM events WHERE seq > {m} AND seq <= {m} AND agent = {m} "
                    f"AND kind = {m} ORDER BY seq",
                    [after, after + CHUNK, agent, TIME_OUT],
                )
            for event in map(_event, rows):
                if decision.id in event.content["ids"]:
                    return event
            after += CHUNK
        return None

    def is_taken(self, agent: str, id: str) -> bool:
        """Whether an agent has a decision or a record of that id."""
        with self.guarded():
            m = self.mark
            found = self.query(
                f"SELECT 1 FROM events WHERE id = {m} AND agent = {m} AND kind IN ({m}, {m}) "
                "LIMIT 1",
                [id, agent, DECISION, RECORD],
            )
        return bool(found)

    def taken(self, ids: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of some agents and ids that decisions or records have."""
        return {pair for pair in ids if self.is_taken(*pair)}

    def checksum_at(self, seq: int) -> bytes | None:
        """The checksum of an event, or of the start; None where there is none."""
        start = self.start()
        if seq == start.seq:
            return start.checksum
        with self.guarded():
            row = self.query(f"SELECT checksum FROM events WHERE seq = {self.mark}", [seq])
        return bytes(row[0][0]) if row else None

    def time_at(self, seq: int) -> float | None:
        """When an event happened; None where it is not there any more."""
        with self.guarded():
            row = self.query(f"SELECT time FROM events WHERE seq = {self.mark}", [seq])
        return float(row[0][0]) if row else None

    def seq_before(self, time: float) -> int:
        """The last event before the first that is younger."""
        with self.guarded():
            found = self.query(
                f"SELECT seq FROM events WHERE time > {self.mark} ORDER BY seq LIMIT 1", [time]
            )
        return int(found[0][0]) - 1 if found else self.head().seq

    def latest_change(self, agent: str) -> Event | None:
        """The last event that made the agent or changed its settings, if it is still there."""
        with self.guarded():
            found = self.query(
                f"SELECT {_COLUMNS} FROM events WHERE agent = {self.mark} AND {_CHANGES} "
                "ORDER BY seq DESC LIMIT 1",
                [agent],
            )
        return _event(found[0]) if found else None

    def created(self, agent: str) -> Event | None:
        """The event that made the agent, if it is still there."""
        with self.guarded():
            m = self.mark
            found = self.query(
                f"SELECT {_COLUMNS} FROM events WHERE agent = {m} AND {_CHANGES} AND kind = {m} "
                "ORDER BY seq LIMIT 1",
                [agent, CREATED],
            )
        return _event(found[0]) if found else None

    def latest_rollback(self) -> int:
        """The number of the last rollback of any agent; 0 where there is none."""
        with self.guarded():
            return self._latest_rollback(self.query)

    def _latest_rollback(self, run: Callable[[str], list[tuple[Any, ...]]]) -> int:
        ((seq,),) = run(
            f"SELECT coalesce(max(seq), 0) FROM events WHERE {_TURNS} AND kind = 'rollback'"
        )
        return int(seq)

    def turns(self, agent: str, kind: str) -> list[Event]:
        """Rollbacks, or changes of trials: events that are few, and matter for long."""
        with self.guarded():
            found = self.query(
                f"SELECT {_COLUMNS} FROM events WHERE agent = {self.mark} AND {_TURNS} "
                f"AND kind = {self.mark} ORDER BY seq",
                [agent, kind],
            )
        return [_event(row) for row in found]

    def has(self, agent: str) -> bool:
        """Whether there are any events or snapshots of an agent."""
        with self.guarded():
            found = self.query(f"SELECT 1 FROM events WHERE agent = {self.mark} LIMIT 1", [agent])
        return bool(found) or bool(self.snapshots.of(agent))

    def agents(self, *, thorough: bool = False) -> list[str]:
        """The names of all agents: those that were made, and those whose beginning was dropped.

        Events are dropped only up to a snapshot of every agent; so a small index answers. A
        thorough answer has those, too, whose beginning somebody has taken away.
        """
        which = "" if thorough else f" WHERE {_CHANGES}"
        with self.guarded():
            rows = self.query(f"SELECT DISTINCT agent FROM events{which}")
        found = {str(name) for (name,) in rows}
        return sorted(found | self.snapshots.agents())

    def offer(self, name: str) -> Offer:
        """What was offered under that name."""
        if name not in self._offers:
            with self.guarded():
                row = self.query(f"SELECT body FROM offers WHERE name = {self.mark}", [name])
            if not row:
                raise DataError(f"{self.where}: what was offered as {name} is missing")
            if len(self._offers) > MOST_READ:
                self._offers.clear()
            self._offers[name] = read_offer(name, row[0][0])
        return self._offers[name]

    # -- making -----------------------------------------------------------------------------------

    def make_tables(self, integer: str, real: str, blob: str) -> None:
        """Make the tables, unless they are there; refuse those of another format."""
        with self.transaction():
            self.execute(
                "CREATE TABLE IF NOT EXISTS events (seq " + integer + " PRIMARY KEY, "
                f"agent TEXT NOT NULL, kind TEXT NOT NULL, id TEXT, time {real} NOT NULL, "
                f"body TEXT NOT NULL, checksum {blob} NOT NULL)"
            )
            self.execute(
                "CREATE INDEX IF NOT EXISTS events_by_id ON events (id) WHERE id IS NOT NULL"
            )
            self.execute(
                f"CREATE INDEX IF NOT EXISTS changes ON events (agent, seq) WHERE {_CHANGES}"
            )
            self.execute(f"CREATE INDEX IF NOT EXISTS turns ON events (agent, seq) WHERE {_TURNS}")
            self.execute(
                "CREATE TABLE IF NOT EXISTS offers (name TEXT PRIMARY KEY, body TEXT NOT NULL)"
            )
            self.execute(
                f"CREATE TABLE IF NOT EXISTS journal (format {integer} PRIMARY KEY, "
                f"head {integer} NOT NULL, checksum {blob} NOT NULL, "
                f"start {integer} NOT NULL, start_checksum {blob} NOT NULL)"
            )
            if not self.execute("SELECT format FROM journal"):
                marks = ", ".join([self.mark] * 5)
                self.execute(f"INSERT INTO journal VALUES ({marks})", [FORMAT, *Head(), *Head()])

    def check_format(self) -> None:
        """Refuse tables of another format."""
        with self.guarded():
            found = self.query("SELECT format FROM journal")
        if found != [(FORMAT,)]:
            raise DataError(
                f"{self.where}: a journal of format {found[0][0] if found else None}, and this "
                f"melee reads {FORMAT}; install the version that wrote it, or a newer one"
            )


def _event(row: tuple[Any, ...]) -> Event:
    seq, agent, kind, id, time, body, checksum = row
    return Event(seq, agent, kind, id, time, body, bytes(checksum))


def _told(event: Event, offer: Offer | None) -> dict[str, Any]:
    """What a line of the log says of an event beside its kind; contexts stay in the journal."""
    content = event.content
    about: dict[str, Any] = {"event": event.seq, "agent": event.agent}
    if event.id is not None:
        about["id"] = event.id
    if offer is not None:
        about["action"] = chosen_from(event, offer).labels[content["action"]]
    elif event.kind in (REWARD, RECORD):
        about["reward"] = content["reward"]
    elif event.kind != CREATED:
        about["change"] = content
    return about


@contextmanager
def translated(
    where: str, *errors: type[BaseException], advice: str = "check the place and its disk"
) -> Iterator[None]:
    """Errors of a database as ours."""
    try:
        yield
    except errors as error:
        said = " ".join(str(error).split()) or type(error).__name__
        full = re.search(r"\b(full|space)\b", said.lower())
        todo = "make room on the disk" if full else advice
        raise DataError(f"{where}: the journal cannot be used ({said}); {todo}") from error
