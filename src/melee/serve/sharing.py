"""A journal that several services share: what a turn of one of them is.

In its turn a service locks the end of the journal, folds what the others have written, does what
it was asked for, appends it and commits. What takes long is done in nobody's turn, so that others
need not wait for it: an agent that others have made is read, and what is known after a rollback is
derived, before the turn begins.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress

from melee.agent import Agent, storing
from melee.agent.folding import fold
from melee.agent.keeping import Keeper
from melee.agent.knowledge import Knowledge
from melee.agent.recovering import read_file
from melee.agent.rolling_back import Past, known_after
from melee.errors import DataError, InputError, shown
from melee.journal import Event, Head, Journal
from melee.journal.commits import Ticket
from melee.journal.events import ROLLBACK, TRIAL, Draft, is_next
from melee.journal.journal import broken
from melee.journal.postgres import Postgres

EVERY = 1.0
"""Seconds from one look at the journal to the next, where nobody calls."""
LONG = 3.0
"""Seconds since the last look after which there may be much to fold."""
MANY = 2_000
"""Events of others that are folded in a turn; of more, most are before it."""
_log = logging.getLogger("melee.serve")


class Change(ABC):
    """Something that changes agents, all of it in one call."""

    @abstractmethod
    def note(self) -> Ticket:
        """Do it; what there is to wait for."""

    def undo(self) -> None:  # noqa: B027
        """Forget what agents themselves do not: it could not be kept."""

    def wait(self, journal: Journal, ticket: Ticket) -> None:
        """Return when it is on disk; a `DataError` if it will not be."""
        try:
            journal.wait(ticket)
        except BaseException:
            self.undo()
            raise


class NodeKeeper(Keeper):
    """Keeps an agent's journal in turns with others.

    Parameters
    ----------
    agent, journal, position
        As of a `Keeper`.
    sharing
        In whose turns alone the agent may change.
    """

    def __init__(self, agent: Agent, journal: Journal, position: Head, sharing: "Sharing") -> None:
        super().__init__(agent, journal, position)
        self.waits = False
        self.sharing = sharing
        self.free: set[str] = set()  # ids that nobody has, as of this turn

    def __enter__(self) -> None:
        if not self.sharing.is_open:
            raise RuntimeError("an agent that several services share changes in a turn only")
        if self._is_ahead_or_behind:
            raise DataError("the agent has to be read again from its journal; send it again")
        super().__enter__()

    def check_new(self, id: str) -> None:
        """Refuse the id of any decision in the journal; most were asked for when the turn began."""
        if "\0" in id:
            raise InputError(f"id is {shown(id)}; PostgreSQL keeps no text with a NUL in it")
        if id not in self.free:
            super().check_new(id)

    def catch_up(self, found: Sequence[Event], head: Head) -> list[Event]:
        """Fold the agent's events of others, up to where the journal ends; those events."""
        if self.has_to_recover:
            with self.agent._lock:
                self._fold_again()
            return []
        last = self._last.seq or 0
        new = [event for event in found if event.seq > last and event.agent == self.journal.name]
        known = {  # whoever asks something of the agent does not wait for that
            event.seq: self._known_after(event) for event in new if event.kind == ROLLBACK
        }
        with self.agent._lock:
            try:
                fold(self.agent, new, self.journal, known)
            except BaseException:
                self._is_behind = True
                raise
            self._last = Ticket(seq=max(head.seq, last))
            self._since += len(new)
        return new

    def _gone_back(self, past: Past) -> Draft:
        """What the rollback leaves comes with it: the others need not derive it."""
        return super()._gone_back(past)._replace(file=storing.to_bytes(self.agent._noted()))

    def _known_after(self, event: Event) -> Knowledge:
        """What is known after a rollback: as it came with it, or derived again."""
        for snapshot in self.journal.snapshots(event.seq)[:1]:
            if snapshot.head == event.head:
                with suppress(DataError):
                    return read_file(self.journal.read_snapshot(snapshot))._knowledge
        return known_after(event, self.journal)

    @property
    def has_to_recover(self) -> bool:
        """Whether the agent is not what the disk says, as after a commit that failed."""
        return self._is_ahead_or_behind

    def snapshot(self) -> int:
        """Write a snapshot of between two turns; the number of the last event in it."""
        with self.journal.held(), self.agent._lock:
            last = self._last.seq
            if self._is_ahead_or_behind or last is None:
                raise DataError(f"{self.journal.where}: the journal failed meanwhile; try again")
            content = self.agent._noted()
            self._since = 0
        self.journal.write_snapshot(last, storing.to_bytes(content))
        return last

    def _snapshot_soon(self) -> None:
        if self.sharing.leads:
            super()._snapshot_soon()

    def finish(self) -> None:
        """Write a snapshot, if this service is the one to do it."""
        if self.sharing.leads:
            super().finish()


class Sharing:
    """What a service does to a journal that others write to as well; in one thread at a time.

    Parameters
    ----------
    journal
        The shared one.
    keepers
        Those of the agents, by name, as they are.
    adopt
        Is called with the name of an agent that others have made, or whose trials they changed.

    Attributes
    ----------
    is_open
        Whether agents may change now.
    leads
        Whether this service has the lease.
    n_behind
        Events of others that the last look has brought.
    """

    def __init__(
        self,
        journal: Journal,
        keepers: Callable[[], dict[str, Keeper]],
        adopt: Callable[[str], None],
    ) -> None:
        store = journal.store
        if not isinstance(store, Postgres):
            raise InputError(f"{journal.where}: only a journal in PostgreSQL is shared in turns")
        self.journal, self._store = journal, store
        self._keepers, self._adopt = keepers, adopt
        self.is_open = self.leads = False
        self.n_behind = 0
        self._place = min((keeper.began for keeper in keepers().values()), default=journal.head)
        self._fresh = time.monotonic()
        self._not_before = 0.0

    @property
    def last(self) -> int:
        """The number of the last event that the models have."""
        return self._place.seq

    @property
    def age(self) -> float:
        """Seconds since the model was known to have all events of the journal."""
        return time.monotonic() - self._fresh

    # -- turns ------------------------------------------------------------------------------------

    def begin(self, ids: Sequence[tuple[str, str]] = ()) -> list[Event]:
        """Lock the end of the journal, and catch up; the events of others.

        Parameters
        ----------
        ids
            Agents and ids that are about to be given to decisions.
        """
        is_much = self.age > LONG or any(keeper.has_to_recover for keeper in self._nodes())
        folded = self.look() if is_much else []
        while True:
            head = self.journal.begin_turn()
            try:
                found = self._read(head)
                if not self._takes_long(found):
                    folded += self._fold(found, head)
                    self._look_for(ids)
                    return folded
            except BaseException:
                self.journal.end_turn()
                raise
            self.journal.end_turn()
            with self.journal.held():
                folded += self._fold(found, head)

    def close(self) -> None:
        """Have no agent change any more in this turn."""
        self.is_open = False
        for keeper in self._nodes():
            keeper.free.clear()  # from now on others may take them

    def finish(self) -> None:
        """Append what was done in the turn, and commit; tickets say how that went."""
        before = self.journal.n_failures
        self.journal.end_turn()
        if self.journal.n_failures != before:
            return
        end = self.journal.written
        if end is not None and end.seq > self._place.seq:
            self._place = end
            for keeper in self._keepers().values():
                keeper._last = Ticket(seq=end.seq)
        self._fresh = time.monotonic()
        with self.journal.held():
            self._ask_for_lease()
        for keeper in self._keepers().values():
            if keeper._since >= self.journal.snapshot_every:
                keeper._snapshot_soon()

    def alone(self, change: Change) -> list[Event]:
        """Have something changed in a turn of its own, and be on disk; the events of others.

        Every agent is what the journal says then, nothing else is queued, and nobody makes agents.
        """
        with self._store.opening():
            found = self.begin()
            self.is_open = True
            try:
                ticket = change.note()
            finally:
                self.close()
                self.finish()
            change.wait(self.journal, ticket)
        return found

    # -- between turns ----------------------------------------------------------------------------

    def look(self) -> list[Event]:
        """Catch up with the others, in nobody's turn, and ask for the lease; their events."""
        if self.journal.has_failed:
            self.journal.start_over()
        with self.journal.held():
            head = self.journal.head
            folded = self._fold(self._read(head), head)
            self._ask_for_lease()
        return folded

    def look_at_last(self) -> None:
        """Catch up before the end: who stops last leaves a snapshot of all that there is."""
        self._not_before = 0.0
        self.look()

    def _ask_for_lease(self) -> None:
        """Have the lease if nobody else has it; once in a while."""
        now = time.monotonic()
        if now < self._not_before:
            return
        self._not_before = now + EVERY / 2
        had, self.leads = self.leads, False
        with suppress(DataError):  # a database that cannot be reached is noticed by who needs it
            self.leads = self._store.has_lease()
        if self.leads and not had:
            _log.info("%s: this service has the lease now", self.journal.where)

    # -- catching up ------------------------------------------------------------------------------

    def _nodes(self) -> list[NodeKeeper]:
        return [keeper for keeper in self._keepers().values() if isinstance(keeper, NodeKeeper)]

    def _read(self, head: Head) -> list[Event]:
        """What others have written, up to where the journal ends."""
        found, place = [], self._place
        for event in self._store.rows(place.seq, head.seq):
            if not is_next(place, event):
                raise broken(self.journal.where, place, event)
            place = event.head
            found.append(event)
        if place != head:
            raise DataError(f"{self.journal.where}: it ends otherwise than it says; restore a copy")
        return found

    def _takes_long(self, found: Sequence[Event]) -> bool:
        """Whether others should not wait until events are folded."""
        return len(found) > MANY or any(
            event.kind == ROLLBACK or self._is_for_adopting(event) for event in found
        )

    def _is_for_adopting(self, event: Event) -> bool:
        return event.kind == TRIAL or event.agent not in self._keepers()

    def _fold(self, found: Sequence[Event], head: Head) -> list[Event]:
        """Have all agents be what the journal says; the events of others."""
        folded = []
        for keeper in self._nodes():
            folded += keeper.catch_up(found, head)
        for name in dict.fromkeys(event.agent for event in found if self._is_for_adopting(event)):
            self._adopt(name)
        self.n_behind = len(found)
        self._place, self._fresh = head, time.monotonic()
        return folded

    def _look_for(self, ids: Sequence[tuple[str, str]]) -> None:
        """Note which ids nobody has, as long as the turn lasts."""
        taken = self._store.taken(ids)
        keepers = self._keepers()
        for name, id in ids:
            keeper = keepers[name]
            if isinstance(keeper, NodeKeeper) and (name, id) not in taken:
                keeper.free.add(id)
