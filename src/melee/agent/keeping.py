"""An agent that has a journal: what it does is on disk before it is answered.

Everything that an agent does to itself is noted as an event, under its lock and in the order in
which it happens; the lock is let go before anybody waits for the disk, so that many callers wait
for one sync. If that fails, what is in memory is ahead of the disk: all who wait are told, and the
next call folds the journal again before it does anything.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any

from melee.agent import storing, trials
from melee.agent.ids import Ids, unique_prefix
from melee.agent.knowledge import Labels, Lesson
from melee.agent.noted_offers import NotedOffers
from melee.agent.offered import Offered
from melee.agent.pending import Waiting
from melee.agent.recovering import recover
from melee.agent.rolling_back import Past, check_place, take_over
from melee.errors import DataError, InputError, MeleeError, MeleeWarning
from melee.journal import Head, Journal, events
from melee.journal.commits import Ticket
from melee.labels import Label, label_to_json

if TYPE_CHECKING:
    from melee.agent.agent import Agent

GIVEN = "given"
"""What stands for the policy where the caller chose."""
NEAR = 500
"""Events that others may have to wait for, where most was read beside them."""
REST = 20.0
"""A snapshot that took a second is followed by so many without one."""
_log = logging.getLogger("melee")


class Keeper:
    """Keeps an agent's journal; a block `with keeper:` is one call that changes the agent.

    Parameters
    ----------
    agent, journal
        The agent, which is as the journal says.
    position
        The last event that it has folded.
    last
        What of it is on its way to the disk; by default nothing is.

    Attributes
    ----------
    began
        That position.
    waits
        Whether a call returns only when it is on disk. A server that has many callers in one
        thread says no, and waits for `latest` itself before it answers.
    """

    def __init__(
        self, agent: "Agent", journal: Journal, position: Head, last: Ticket | None = None
    ) -> None:
        self.agent, self.journal, self.began = agent, journal, position
        self.waits = True
        self.ids = Ids(agent.seed)
        self.ids.prefix = unique_prefix()
        self.ids.are_others = True
        self._last = Ticket(seq=position.seq) if last is None else last
        self._unit: list[events.Draft] = []
        self._queued: Ticket | None = None  # the last of this call
        self._offers = NotedOffers()
        self._is_behind = False  # whether a call was interrupted while it changed the agent
        self._n_failures = journal.n_failures  # those that the agent has recovered from
        self._since = 0  # events since the last snapshot
        self._not_before = 0.0
        self._snapshotting: threading.Thread | None = None
        self._process: int | None = os.getpid()
        self._local = threading.local()

    # -- a call -----------------------------------------------------------------------------------

    def __enter__(self) -> None:
        self.agent._lock.acquire()
        try:
            self._check_open()
            if self._is_ahead_or_behind:
                self._fold_again()
        except BaseException:
            self.agent._lock.release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ticket = None
        try:
            if error is not None and not isinstance(error, MeleeError | MeleeWarning):
                # Nobody knows how far it came: nothing of it is kept.
                noted = bool(self._unit) or self._queued is not None
                self._is_behind = self._is_behind or noted or not isinstance(error, Exception)
                self._unit = []
            else:
                self._queue()
            ticket, self._queued = self._queued, None
        finally:
            self.agent._lock.release()
        if ticket is not None:  # after an error too: what came before it has happened
            if self.waits:
                self.journal.wait(ticket)
            if self._since >= self.journal.snapshot_every:
                self._snapshot_soon()

    def _queue(self) -> None:
        """Have what was noted so far be on its way to the disk."""
        unit, self._unit = self._unit, []
        if unit:
            self._last = self._queued = self.journal.append(unit)
            self._since += len(unit)

    def _check_open(self) -> None:
        if self._process is None:
            raise InputError("the agent is closed; open its journal again: Agent(..., journal=...)")
        if self._process != os.getpid():
            raise InputError(
                "this process was forked from the one that keeps the agent's journal, and only one "
                "may write to it; make the agent after the fork, in one process"
            )

    @property
    def latest(self) -> Ticket:
        """The last that was noted: when it is on disk, so is all that the agent has done."""
        return self._last

    @property
    def _is_ahead_or_behind(self) -> bool:
        """Whether the agent is not what the disk says; another one may have started over."""
        return self._is_behind or self.journal.n_failures != self._n_failures

    def _fold_again(self) -> None:
        """Have the agent be what the disk says."""
        failures = self.journal.n_failures
        if self.journal.has_failed:
            self.journal.start_over()
        elif failures == self._n_failures:
            self.journal.wait(self._last)  # what others have done before the interrupted call
        agent, position = recover(self.journal, log=self.agent.log)
        self.agent._knowledge, self.agent._pending = agent._knowledge, agent._pending
        self.agent._ids, self.agent._trials = agent._ids, agent._trials
        self._last = Ticket(seq=position.seq)
        self._offers = NotedOffers()
        self._is_behind, self._n_failures = False, failures

    # -- what is noted ----------------------------------------------------------------------

    def decided(
        self,
        id: str,
        waiting: Waiting,
        labels: Labels,
        pmf: list[float],
        action: int,
        offered: Offered | None = None,
    ) -> None:
        """A decision was made, by the model as it is."""
        knowledge, change = self.agent._knowledge, None
        if offered is not None:
            some = False
            offer, change = self._offers.among(offered)
        else:
            some = labels is not knowledge.labels
            offer = self._offers.of(labels, some=some)
        left = tuple(float(array[0]) for array in knowledge.model.latest)
        further = getattr(self._local, "about", {})
        policy = GIVEN if "given" in further else self.agent._policy
        about = (pmf, action, waiting.version, policy, some, left, change, further)
        decided = events.Decided(waiting.context, offer.name, *about)
        self._unit.append(events.decision(id, waiting.time, decided, offer))
        self.agent._ids.count += 1

    @contextmanager
    def noting(self, **about: Any) -> Iterator[None]:
        """A block whose decisions, in this thread, have further fields."""
        before = getattr(self._local, "about", {})
        self._local.about = {**before, **about}
        try:
            yield
        finally:
            self._local.about = before

    def tries(
        self,
        name: str,
        explorer: str | None,
        share: float | None,
        begin: Callable[[], tuple[events.Draft, Callable[[Ticket], None]]] | None = None,
    ) -> None:
        """A trial begins, gets another share, or ends.

        An agent that begins with it gets its first event from `begin`, and is handed over by what
        that returns, too. Both events are written together: neither is there without the other.
        """
        body: dict[str, Any] = {"trial": name, "share": share}
        if explorer is not None:
            body |= {"explorer": explorer, "salt": os.urandom(8).hex()}
        change = events.change(events.TRIAL, time.time(), body)
        if begin is None:
            self._unit.append(change)
        else:
            first, hand_over = begin()
            self._unit += [first, change]
            self._queue()
            hand_over(self._last)  # before anybody is drawn into the trial
        trials.change(self.agent, name, explorer, share, body.get("salt"))

    def rewarded(self, rewards: dict[str, float]) -> None:
        """Decisions that wait get their rewards."""
        now = time.time()
        self._unit += [events.reward(id, now, reward) for id, reward in rewards.items()]

    def gave_up(self, ids: Sequence[str], now: float, *, full: bool) -> None:
        """Decisions wait no longer."""
        default = self.agent.default_reward
        taught = None if default is None else float(default)
        self._unit.append(events.time_out(now, ids, taught, full=full))

    def learned(
        self, lessons: Sequence[Lesson], ids: Sequence[str | None], times: Sequence[int]
    ) -> None:
        """Full records are learned."""
        now = time.time()
        rounds = zip(ids, lessons, times, strict=True)
        self._unit += [
            events.record(id, now, *lesson[:4], n, lesson.features) for id, lesson, n in rounds
        ]

    def changed(self, what: str, labels: Sequence[Label]) -> None:
        """Actions were `added` or `removed`."""
        if labels:
            body = {what: [label_to_json(label) for label in labels]}
            self._unit.append(events.change(events.ACTIONS, time.time(), body))

    def roll_back(self, to: int, relearn_after: int | None = None) -> None:
        """Go back to what was known after an event; see `melee.agent.rolling_back`.

        What came since is read beside whatever goes on; only its end, and the change itself, is
        waited for by others. A snapshot follows, so that the next start need not go back again.
        """
        self.go_back(self.past(to, relearn_after))
        self.try_snapshot()

    def past(self, to: int, relearn_after: int | None = None) -> Past:
        """What to go back to; it is read beside whatever goes on."""
        self._check_open()
        check_place(self.journal, to, relearn_after)
        past = Past(self.journal, to, relearn_after)
        past.come_near(NEAR)
        return past

    def go_back(self, past: Past) -> None:
        """Go back, once the past was led through what came meanwhile."""
        with self:
            self.journal.wait(self._last)
            # It may have been dropped meanwhile.
            check_place(self.journal, past.to, past.relearn_after)
            past.go_on(_number(self._last))
            take_over(self.agent, past.agent._knowledge)
            self._unit.append(self._gone_back(past))

    def _gone_back(self, past: Past) -> events.Draft:
        return events.rollback(time.time(), past.to, past.relearn_after)

    def check_new(self, id: str) -> None:
        """Refuse the id of any decision in the journal, however long ago."""
        if self.journal.is_taken(id):
            raise InputError(f"id {id!r} is taken by an earlier decision; expected a new one")

    # -- snapshots --------------------------------------------------------------------------

    def _snapshot_soon(self) -> None:
        running = self._snapshotting
        if monotonic() < self._not_before or (running is not None and running.is_alive()):
            return
        with self.agent._lock:
            if self._since < self.journal.snapshot_every:
                return
            self._since = 0
        self._snapshotting = threading.Thread(
            target=self._snapshot_beside, name="melee snapshot", daemon=True
        )
        self._snapshotting.start()

    def _snapshot_beside(self) -> None:
        began = monotonic()
        try:
            self.snapshot()
            self.journal.thin()
            if self.journal.keep_days is not None or self.journal.keep_bytes is not None:
                self.journal.compact()
        except Exception as error:  # the journal is whole without it
            _log.warning("%s: no snapshot was written (%s)", self.journal.where, error)
        self._not_before = monotonic() + REST * (monotonic() - began)

    def snapshot(self) -> int:
        """Write a snapshot; the number of the last event in it. Others go on meanwhile."""
        with self.agent._lock:
            self._check_open()
            if self._is_ahead_or_behind:
                self._fold_again()
            content, last = self.agent._noted(), self._last
            self._since = 0
        self.journal.wait(last)
        seq = _number(last)
        self.journal.write_snapshot(seq, storing.to_bytes(content))
        return seq

    def try_snapshot(self) -> None:
        """Write a snapshot if that can be: the journal is whole without it."""
        try:
            self.snapshot()
        except MeleeError as error:
            _log.warning("%s: no snapshot was written (%s)", self.journal.where, error)

    def finish(self) -> None:
        """Write a snapshot, unless there is one of just now."""
        running = self._snapshotting
        if running is not None:
            running.join()
        if self._since:
            self.snapshot()

    def close(self) -> None:
        """Write a snapshot, and let go of the journal."""
        if self._process != os.getpid():
            return
        try:
            self.finish()
        finally:
            with self.agent._lock:
                self._process = None
                self.journal.close()

    def abandon(self) -> None:
        """Let go of what a fork has copied."""
        if self._process is not None:
            self.journal.store.abandon()


def _number(done: Ticket) -> int:
    """The number of the last event of a ticket that was waited for."""
    if done.seq is None:
        raise DataError("the journal failed meanwhile; try again")
    return done.seq
