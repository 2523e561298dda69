"""Turns: callers of a service wait for those that it takes in a journal that others share.

Every decision is by the model of all events before it, whichever service makes it, and one replay
of the journal derives all of them. Callers of one turn share one lock, one look and one sync; while
it runs, those of the next gather.

Between turns a service looks once a second at what the others have written. One service has the
lease: it also gives up decisions whose time is over where nobody calls, writes snapshots and drops
what is old. When it dies, another one gets the lease.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from melee.errors import DataError, MeleeError
from melee.journal import Event
from melee.journal.commits import Ticket
from melee.serve.sharing import EVERY, Change, Sharing

_log = logging.getLogger("melee.serve")


class Turns:
    """Has callers wait for turns, and takes them.

    Parameters
    ----------
    sharing
        What a turn is.
    seen
        Is called with each event of others, after it was folded.
    """

    def __init__(self, sharing: Sharing, seen: Callable[[Event], None]) -> None:
        self.sharing, self._seen = sharing, seen
        self._asked: list[tuple[asyncio.Future[None], Sequence[tuple[str, str]]]] = []
        self._jobs: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []
        self._called = asyncio.Event()
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_over = False
        self._running = asyncio.create_task(self._run())

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

    async def alone(self, change: Change) -> None:
        """Have something changed in a thread, in a turn of its own, and be on disk."""
        self.look_at(await self.between(lambda: self.sharing.alone(change)))

    async def wait(self, ticket: Ticket) -> None:
        """Return when it is on disk; a `DataError` if it will not be."""
        if ticket.is_open:
            await asyncio.shield(self._end)
        self.sharing.journal.wait(ticket)

    async def stop(self) -> None:
        """Take no more turns, when all who wait have had theirs; then catch up a last time.

        So the last service to stop leaves a snapshot of all that there is, whoever wrote it.
        """
        self._is_over = True
        self._called.set()
        await self._running
        try:
            await asyncio.to_thread(self.sharing.look_at_last)
        except MeleeError as error:  # nothing is lost: the next start takes longer
            self.sharing.leads = False
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
                self.look_at(await asyncio.to_thread(self.sharing.look))
            except Exception as error:
                self.sharing.leads = False
                _log.warning("%s", error)

    async def _turn(self) -> None:
        asked, self._asked = self._asked, []
        try:
            wanted = [id for _, ids in asked for id in ids]
            found = await asyncio.to_thread(self.sharing.begin, wanted)
        except Exception as error:
            for future, _ in asked:
                if not future.done():
                    future.set_exception(_same(error))
            return
        self._end = asyncio.get_running_loop().create_future()
        self.sharing.is_open = True
        for future, _ in asked:
            if not future.done():  # its caller may have gone
                future.set_result(None)
        await asyncio.sleep(0)  # each of them does what it came for, before this goes on
        self.sharing.close()
        try:
            await asyncio.to_thread(self.sharing.finish)
        finally:
            self._end.set_result(None)
        self.look_at(found)

    def look_at(self, found: Sequence[Event]) -> None:
        """Have events of others be seen, in order."""
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
