"""Group commit: many callers wait for one sync.

Whoever waits first leads: it writes all that is queued, in one go. Meanwhile others queue more and
wait; when the leader is done, one of them leads, and writes what all of them have queued. No thread
of its own is needed, and a lone caller waits for nobody.
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

    __slots__ = ("called", "error", "leads", "n_events", "n_waiting", "seq")

    def __init__(self, n_events: int = 0, seq: int | None = None) -> None:
        self.n_events = n_events
        self.seq = seq
        self.error: BaseException | None = None
        self.leads = False  # whether one of those who wait for it has to lead
        self.n_waiting = 0
        self.called: threading.Event | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is neither done nor failed."""
        return self.seq is None and self.error is None

    def call(self) -> None:
        """Wake all who wait: it is done, has failed, or one of them has to lead."""
        if self.called is not None:
            self.called.set()


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
        self._is_led = False
        self.error: BaseException | None = None
        self.n_syncs = self.n_failures = 0
        self.written: Head | None = None  # the last that was written here

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
        with self._queueing:
            follows = ticket.is_open and self._is_led
            leads = ticket.is_open and not self._is_led
            self._is_led = self._is_led or leads
            if follows:
                ticket.n_waiting += 1
                ticket.called = ticket.called or threading.Event()
        if leads or (follows and self._is_called_to_lead(ticket)):
            self._lead()
        if ticket.error is not None:
            raise DataError(
                f"{ticket.error}; nothing of this call is kept, so it can be repeated"
            ) from ticket.error

    def _is_called_to_lead(self, ticket: Ticket) -> bool:
        """Wait for whoever leads; whether it is this one's turn."""
        called = ticket.called
        try:
            while called is not None and called.wait():
                with self._queueing:
                    if not ticket.is_open:
                        break
                    if ticket.leads:  # several may wait for one ticket, and one of them leads
                        ticket.leads = False
                        called.clear()
                        ticket.n_waiting -= 1
                        return True
        except BaseException:  # Ctrl-C: whoever was called to lead must not be missing
            with self._queueing:
                ticket.n_waiting -= 1
                if ticket.leads:
                    ticket.leads = False
                    self._hand_over()
            raise
        with self._queueing:
            ticket.n_waiting -= 1
        return False

    def _lead(self) -> None:
        try:
            self._write_all()
        finally:
            with self._queueing:
                self._hand_over()

    def _hand_over(self) -> None:
        """Let one of those who wait lead, or nobody."""
        for ticket in self._tickets:
            if ticket.n_waiting:
                ticket.leads = True
                ticket.call()
                return
        self._is_led = False

    def _write_all(self) -> None:
        drafts, tickets = self._take_all()
        with self._writing:
            self._write_some(drafts, tickets)

    def _take_all(self) -> tuple[list[tuple[str, Draft]], list[Ticket]]:
        with self._queueing:
            taken = self._queue, self._tickets
            self._queue, self._tickets = [], []
        return taken

    def _write_some(self, drafts: list[tuple[str, Draft]], tickets: list[Ticket]) -> None:
        try:
            head = self._write(drafts)
        except BaseException as error:
            self._fail(error, tickets)
            if not isinstance(error, Exception):  # Ctrl-C is the caller's
                raise
            return
        self.n_syncs += 1
        self.written = head
        seq = head.seq - len(drafts)
        with self._queueing:
            for ticket in tickets:
                seq += ticket.n_events
                ticket.seq = seq
                ticket.call()

    def _fail(self, error: BaseException, tickets: list[Ticket]) -> None:
        """Whatever was queued after what failed builds on it, and fails as well."""
        with self._queueing:
            self.error = error
            self.n_failures += 1
            for ticket in (*tickets, *self._tickets):
                ticket.error = error
                ticket.call()
            self._queue, self._tickets = [], []

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block in which nothing is written."""
        with self._writing:
            yield

    def begin_turn(self) -> None:
        """Have nothing written but by `end_turn`, in whatever thread that is."""
        self._writing.acquire()

    def end_turn(self, otherwise: Callable[[], None] | None = None) -> None:
        """Write all that is queued; where nothing is, do something else."""
        try:
            drafts, tickets = self._take_all()
            if drafts:
                self._write_some(drafts, tickets)
            elif otherwise is not None:
                otherwise()
        finally:
            self._writing.release()

    def start_over(self) -> None:
        """Take from the queue again, after a failure."""
        with self._writing, self._queueing:
            self.error = None
