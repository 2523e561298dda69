"""Turns: several services on several machines write to one journal.

In its turn a service locks the end of the journal, folds what the others have written, does what
its callers have asked for meanwhile, appends it and commits. So every decision is by the model of
all events before it, whichever service makes it, and one replay of the journal derives all of them.
Callers of one turn share one lock, one look and one sync; while it runs, those of the next gather.

Between turns a service looks once a second at what the others have written. One service has the
lease: it also gives up decisions whose time is over where nobody calls, writes snapshots and drops
what is old. When it dies, another one gets the lease.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from melee.agent import Agent, storing
from melee.agent.folding import fold
from melee.agent.keeping import Keeper
from melee.errors import DataError, InputError, MeleeError, shown
from melee.journal import Event, Head, Journal
from melee.journal.commits import Ticket
from melee.journal.events import TRIAL, is_next
from melee.journal.journal import broken
from melee.journal.postgres import Postgres

EVERY = 1.0
"""Seconds from one look at the journal to the next, where nobody calls."""
LONG = 3.0
"""Seconds since the last look after which there may be much to fold."""
_log = logging.getLogger("melee.serve")


class NodeKeeper(Keeper):
    """Keeps an agent's journal in turns with others.

    Parameters
    ----------
    agent, journal, position
        As of a `Keeper`.
    turns
        In which alone the agent may change.
    """

    def __init__(self, agent: Agent, journal: Journal, position: Head, turns: "Turns") -> None:
        super().__init__(agent, journal, position)
        self.waits = False
        self.turns = turns
        self.free: set[str] = set()  # ids that nobody has, as of this turn

    def __enter__(self) -> None:
        if not self.turns.is_open:
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
        with self.agent._lock:
            if self._is_ahead_or_behind:
                self._fold_again()
                return []
            last = self._last.seq or 0
            new = [
                event for event in found if event.seq > last and event.agent == self.journal.name
            ]
            try:
                fold(self.agent, new, self.journal)
            except BaseException:
                self._is_behind = True
                raise
            self._last = Ticket(seq=max(head.seq, last))
            self._since += len(new)
        return new

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
        if self.turns.leads:
            super()._snapshot_soon()

    def finish(self) -> None:
        """Write a snapshot, if this service is the one to do it."""
        if self.turns.leads:
            super().finish()


class Turns:
    """Takes turns with the other services that share a journal.

    Parameters
    ----------
    journal
        The shared one.
    keepers
        Those of the agents, by name, as they are.
    seen
        Is called with each event of others, after it was folded.
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
        seen: Callable[[Event], None],
        adopt: Callable[[str], None],
    ) -> None:
        store = journal.store
        if not isinstance(store, Postgres):
            raise InputError(f"{journal.where}: only a journal in PostgreSQL is shared in turns")
        self.journal, self._store = journal, store
        self._keepers, self._seen, self._adopt = keepers, seen, adopt
        self.is_open = self.leads = False
        self.n_behind = 0
        self._place = min((keeper.began for keeper in keepers().values()), default=journal.head)
        self._fresh = time.monotonic()
        self._not_before = 0.0
        self._asked: list[tuple[asyncio.Future[None], Sequence[tuple[str, str]]]] = []
        self._jobs: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []
        self._called = asyncio.Event()
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_over = False
        self._running = asyncio.create_task(self._run())

    @property
    def last(self) -> int:
        """The number of the last event that the models have."""
        return self._place.seq

    @property
    def age(self) -> float:
        """Seconds since the model was known to have all events of the journal."""
        return time.monotonic() - self._fresh

    # -- for callers ------------------------------------------------------------------------------

    async def take(self, ids: Sequence[tuple[str, str]] = ()) -> None:
        """Return in a turn, which lasts until the caller awaits something else.

        Parameters
        ----------
        ids
            Agents and ids that are about to be given to decisions: all callers' are looked for
            at once.
        """
        self._check()
        future = asyncio.get_running_loop().create_future()
        self._asked.append((future, ids))
        self._called.set()
        await future

    async def between(self, job: Callable[[], Any]) -> Any:
        """Have something done in a thread, in nobody's turn."""
        self._check()
        future = asyncio.get_running_loop().create_future()
        self._jobs.append((future, job))
        self._called.set()
        return await future

    async def wait(self, ticket: Ticket) -> None:
        """Return when it is on disk; a `DataError` if it will not be."""
        if ticket.is_open:
            await asyncio.shield(self._end)
        self.journal.wait(ticket)

    async def stop(self) -> None:
        """Take no more turns, when all who wait have had theirs; then catch up a last time.

        So the last service to stop leaves a snapshot of all that there is, whoever wrote it.
        """
        self._is_over = True
        self._called.set()
        await self._running
        self._not_before = 0.0
        try:
            await asyncio.to_thread(self._look)
        except MeleeError as error:  # nothing is lost: the next start takes longer
            self.leads = False
            _log.warning("%s", error)

    def _check(self) -> None:
        if self._is_over:
            raise DataError("the service stops; send it again, to another one")

    # -- turns ------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while self._asked or self._jobs or not self._is_over:
            if not (self._asked or self._jobs):
                await self._rest()
            while self._jobs:
                future, job = self._jobs.pop(0)
                await _settle(future, asyncio.to_thread(job))
            if self._asked:
                try:
                    await self._turn()
                except Exception:  # the next callers must not wait for ever
                    _log.exception("a defect of melee")

    async def _rest(self) -> None:
        """Wait for callers; look at what others do where there are none."""
        self._called.clear()
        try:
            async with asyncio.timeout(EVERY):
                await self._called.wait()
        except TimeoutError:
            try:
                self._look_at(await asyncio.to_thread(self._look))
            except Exception as error:
                self.leads = False
                _log.warning("%s", error)

    async def _turn(self) -> None:
        asked, self._asked = self._asked, []
        try:
            found = await asyncio.to_thread(self._begin, [id for _, ids in asked for id in ids])
        except Exception as error:
            for future, _ in asked:
                if not future.done():
                    future.set_exception(_same(error))
            return
        self._end = asyncio.get_running_loop().create_future()
        self.is_open = True
        for future, _ in asked:
            if not future.done():  # its caller may have gone
                future.set_result(None)
        await asyncio.sleep(0)  # each of them does what it came for, before this goes on
        self.is_open = False
        for keeper in self._keepers().values():
            if isinstance(keeper, NodeKeeper):
                keeper.free.clear()  # from now on others may take them
        try:
            await asyncio.to_thread(self._finish)
        finally:
            self._end.set_result(None)
        self._look_at(found)

    def _begin(self, ids: list[tuple[str, str]]) -> list[Event]:
        """Lock the end of the journal, and catch up; the events of others."""
        before = self._look() if self.age > LONG else []  # nobody should wait for all of that
        head = self.journal.begin_turn()
        try:
            found = before + self._catch_up(head)
            taken = self._store.taken(ids)
            keepers = self._keepers()
            for name, id in ids:
                keeper = keepers[name]
                if isinstance(keeper, NodeKeeper) and (name, id) not in taken:
                    keeper.free.add(id)
        except BaseException:
            self.journal.end_turn()
            raise
        return found

    def _finish(self) -> None:
        """Append what callers have done, and commit."""
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

    def _look(self) -> list[Event]:
        """Catch up with the others, in nobody's turn, and ask for the lease; their events."""
        with self.journal.held():
            found = self._catch_up(self.journal.head)
            self._ask_for_lease()
        return found

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

    def _catch_up(self, head: Head) -> list[Event]:
        found, place = [], self._place
        for event in self._store.rows(place.seq, head.seq):
            if not is_next(place, event):
                raise broken(self.journal.where, place, event)
            place = event.head
            found.append(event)
        if place != head:
            raise DataError(f"{self.journal.where}: it ends otherwise than it says; restore a copy")
        folded = []
        for keeper in list(self._keepers().values()):
            if isinstance(keeper, NodeKeeper):
                folded += keeper.catch_up(found, head)
        self.n_behind = len(found)
        self._place, self._fresh = head, time.monotonic()
        known = self._keepers()
        for name in dict.fromkeys(
            event.agent for event in found if event.agent not in known or event.kind == TRIAL
        ):
            self._adopt(name)
        return folded

    def _look_at(self, found: Sequence[Event]) -> None:
        for event in sorted(found, key=lambda each: each.seq):
            self._seen(event)


async def _settle(future: "asyncio.Future[Any]", job: Any) -> None:
    """Have a future be what a job comes to."""
    try:
        result = await job
    except Exception as error:
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(result)


def _same(error: Exception) -> Exception:
    """The error for one of several callers, of whom each raises one of its own."""
    return DataError(str(error)) if isinstance(error, DataError) else error
