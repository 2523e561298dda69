"""One thread that waits for the disk, for all callers of an event loop."""

import asyncio
import threading
from queue import Empty, SimpleQueue
from typing import Any

from melee.journal import Journal
from melee.journal.commits import Ticket

Asked = tuple[Ticket, "asyncio.Future[None]"]


class Syncing:
    """Has callers wait for their tickets without a thread each.

    While one sync runs, tickets gather; the next one takes all of them.

    Parameters
    ----------
    journal
        Whose tickets they are.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._asked: SimpleQueue[Asked | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="melee sync", daemon=True)
        self._thread.start()

    async def wait(self, ticket: Ticket) -> None:
        """Return when it is on disk; a `DataError` if it will not be."""
        if ticket.seq is None:
            future = self._loop.create_future()
            self._asked.put((ticket, future))
            await future

    def stop(self) -> None:
        """End the thread, when all who wait have been answered."""
        self._asked.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            some = [self._asked.get()]
            while True:
                try:
                    some.append(self._asked.get_nowait())
                except Empty:
                    break
            done = [
                (waiting[1], self._error(waiting[0])) for waiting in some if waiting is not None
            ]
            if done:
                self._loop.call_soon_threadsafe(_resolve, done)
            if None in some:
                return

    def _error(self, ticket: Ticket) -> Exception | None:
        try:
            self._journal.wait(ticket)
        except Exception as error:  # whoever waits must be told of any
            return error
        return None


def _resolve(done: list[tuple[Any, Exception | None]]) -> None:
    for future, error in done:
        if future.done():  # its caller has gone
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
