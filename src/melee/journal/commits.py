"""Group commit: many callers wait for one sync.

Whoever waits first writes all that is queued, in one go; meanwhile others queue more, and the first
of them to get its turn writes that. No thread of its own is needed, and a lone caller waits for
nobody.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from melee.errors import DataError
from melee.journal.events import Draft, Head


class Ticket:
    """A place in the queue: still to come, done, or failed.

    Attributes
    ----------
    seq
        The number of the last of its events, once it is done.
    error
        Why it failed.
    """

    __slots__ = ("error", "n_events", "seq")

    def __init__(self, n_events: int = 0, seq: int | None = None) -> None:
        self.n_events = n_events
        self.seq = seq
        self.error: BaseException | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is neither done nor failed."""
        return self.seq is None and self.error is None


class Commits:
    """A queue before a function that writes.

    Parameters
    ----------
    write
        Writes events, each with its agent, as a whole or not at all; they are on disk when it
        returns where the chain ends.
    """

    def __init__(self, write: Callable[[Sequence[tuple[str, Draft]]], Head]) -> None:
        self._write = write
        self._queueing, self._writing = threading.Lock(), threading.Lock()
        self._queue: list[tuple[str, Draft]] = []
        self._tickets: list[Ticket] = []
        self.error: BaseException | None = None
        self.n_syncs = 0

    def add(self, drafts: Sequence[tuple[str, Draft]]) -> Ticket:
        """Queue what belongs together; nothing is written yet."""
        ticket = Ticket(len(drafts))
        with self._queueing:
            if self.error is not None:
                ticket.error = self.error
                return ticket
            self._queue.extend(drafts)
            self._tickets.append(ticket)
        return ticket

    def wait(self, ticket: Ticket) -> None:
        """Return when it is on disk; raise if it will not be."""
        if ticket.is_open:
            with self._writing:
                if ticket.is_open:
                    self._write_all()
        if ticket.error is not None:
            raise DataError(
                f"{ticket.error}; nothing of this call is kept, so it can be repeated"
            ) from ticket.error

    def _write_all(self) -> None:
        with self._queueing:
            drafts, tickets = self._queue, self._tickets
            self._queue, self._tickets = [], []
        try:
            head = self._write(drafts)
        except BaseException as error:
            self._fail(error, tickets)
            if not isinstance(error, Exception):  # Ctrl-C is the caller's
                raise
            return
        self.n_syncs += 1
        seq = head.seq - len(drafts)
        for one in tickets:
            seq += one.n_events
            one.seq = seq

    def _fail(self, error: BaseException, tickets: list[Ticket]) -> None:
        """Whatever was queued after what failed builds on it, and fails as well."""
        with self._queueing:
            self.error = error
            for one in (*tickets, *self._tickets):
                one.error = error
            self._queue, self._tickets = [], []

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block in which nothing is written."""
        with self._writing:
            yield

    def start_over(self) -> None:
        """Take from the queue again, after a failure."""
        with self._writing, self._queueing:
            self.error = None
