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
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from melee.agent import storing, trials
from melee.agent.catalogue import Offered
from melee.agent.decision import Decision
from melee.agent.explanation import Explanation
from melee.agent.folding import CHANGEABLE, change_settings, fold, fold_decision
from melee.agent.ids import Ids
from melee.agent.knowledge import Labels, Lesson
from melee.agent.pending import Waiting
from melee.agent.rolling_back import Past, check_place, take_over
from melee.contexts import Context
from melee.errors import DataError, InputError, MeleeError, MeleeWarning, shown
from melee.journal import Event, Head, Journal, events
from melee.journal.commits import Ticket
from melee.labels import Label, label_from_json, label_to_json
from melee.version import __version__

if TYPE_CHECKING:
    from melee.agent.agent import Agent

GIVEN = "given"
"""What stands for the policy where the caller chose."""
FEW = 64
"""Events that are folded without waiting for machine code."""
REST = 20.0
"""A snapshot that took a second is followed by so many without one."""
_log = logging.getLogger("melee")


class _Base(NamedTuple):
    """Candidates that are in the table of offers."""

    offered: Offered
    features: dict[Label, Context]
    offer: events.Offer


class Keeper:
    """Keeps an agent's journal; a block `with keeper:` is one call that changes the agent.

    Parameters
    ----------
    agent, journal
        The agent, which is as the journal says.
    position
        The last event that it has folded.

    Attributes
    ----------
    began
        That position.
    waits
        Whether a call returns only when it is on disk. A server that has many callers in one
        thread says no, and waits for `latest` itself before it answers.
    """

    def __init__(self, agent: "Agent", journal: Journal, position: Head) -> None:
        self.agent, self.journal, self.began = agent, journal, position
        self.waits = True
        self.ids = Ids(agent.seed)
        self.ids.prefix = unique_prefix()
        self.ids.are_others = True
        self._last = Ticket(seq=position.seq)
        self._unit: list[events.Draft] = []
        self._offer: tuple[Labels, events.Offer] | None = None
        self._base: _Base | None = None
        self._once: tuple[Offered, dict[Label, Context]] | None = None  # candidates that came once
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
        unit, self._unit = self._unit, []
        ticket = None
        try:
            if error is not None and not isinstance(error, MeleeError | MeleeWarning):
                # Nobody knows how far it came: nothing of it is kept.
                self._is_behind = self._is_behind or bool(unit) or not isinstance(error, Exception)
            elif unit:
                ticket = self._last = self.journal.append(unit)
                self._since += len(unit)
        finally:
            self.agent._lock.release()
        if ticket is not None:  # after an error too: what came before it has happened
            if self.waits:
                self.journal.wait(ticket)
            if self._since >= self.journal.snapshot_every:
                self._snapshot_soon()

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
        self._offer, self._base, self._once = None, None, None
        self._is_behind, self._n_failures = False, failures

    # -- what is noted ----------------------------------------------------------------------

    def decided(
        self,
        id: str,
        one: Waiting,
        labels: Labels,
        pmf: list[float],
        action: int,
        offered: Offered | None = None,
    ) -> None:
        """A decision was made, by the model as it is."""
        knowledge, change = self.agent._knowledge, None
        if offered is not None:
            some = False
            offer, change = self._offer_among(offered)
        else:
            some = labels is not knowledge.labels
            offer = self._offer_of(labels, some=some)
        left = tuple(float(array[0]) for array in knowledge.model.latest)
        further = getattr(self._local, "about", {})
        policy = GIVEN if "given" in further else self.agent._policy
        about = (pmf, action, one.version, policy, some, left, change, further)
        decided = events.Decided(one.context, offer.name, *about)
        self._unit.append(events.decision(id, one.time, decided, offer))
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

    def tries(self, name: str, explorer: str | None, share: float | None) -> None:
        """A trial begins, gets another share, or ends."""
        body: dict[str, Any] = {"trial": name, "share": share}
        if explorer is not None:
            body |= {"explorer": explorer, "salt": os.urandom(8).hex()}
        self._unit.append(events.change(events.TRIAL, time.time(), body))
        trials.change(self.agent, name, explorer, share, body.get("salt"))

    def rewarded(self, rewards: dict[str, float]) -> None:
        """Decisions that wait get their rewards."""
        now = time.time()
        self._unit += [events.reward(id, now, reward) for id, reward in rewards.items()]

    def gave_up(self, ids: Sequence[str], now: float, *, full: bool) -> None:
        """Decisions wait no longer."""
        self._unit.append(events.time_out(now, ids, full=full))

    def learned(
        self, lessons: Sequence[Lesson], ids: Sequence[str | None], times: Sequence[int]
    ) -> None:
        """Full records are learned."""
        now = time.time()
        rounds = zip(ids, lessons, times, strict=True)
        self._unit += [events.record(id, now, *one[:4], n, one.features) for id, one, n in rounds]

    def changed(self, what: str, labels: Sequence[Label]) -> None:
        """Actions were `added` or `removed`."""
        if labels:
            body = {what: [label_to_json(label) for label in labels]}
            self._unit.append(events.change(events.ACTIONS, time.time(), body))

    def roll_back(self, to: int, again: int | None = None) -> None:
        """Go back to what was known after an event; see `melee.agent.rolling_back`.

        What came since is read beside whatever goes on; only its end, and the change itself, is
        waited for by others. A snapshot follows, so that the next start need not go back again.
        """
        with self:
            last = self._last
        self.journal.wait(last)
        check_place(self.journal, to, again)
        past = Past(self.journal, to, again)
        past.go_on(_number(last))
        with self:
            self.journal.wait(self._last)
            past.go_on(_number(self._last))
            self._unit.append(events.rollback(time.time(), to, again))
            take_over(self.agent, past.agent._knowledge)
        try:
            self.snapshot()
        except MeleeError as error:
            _log.warning("%s: no snapshot was written (%s)", self.journal.where, error)

    def _offer_of(self, labels: Labels, *, some: bool) -> events.Offer:
        if some:
            return events.offer_of(labels)
        if self._offer is None or self._offer[0] is not labels:
            self._offer = labels, events.offer_of(labels)
        return self._offer[1]

    def _offer_among(self, offered: Offered) -> tuple[events.Offer, events.Change | None]:
        """Candidates as what is there in full, and what they differ by from that."""
        labels, features = offered.labels, offered.features
        if self._base is not None:
            if self._base.offered is offered:
                return self._base.offer, None
            change = events.changed_from(self._base.features, labels, features)
            if change is not None:
                return self._base.offer, None if change.is_none else change
        named = dict(zip(labels, features, strict=True))
        if self._once is not None:
            once, before = self._once
            if once is offered or events.changed_from(before, labels, features) is not None:
                self._base = _Base(offered, named, events.offer_among(labels, features))
                return self._base.offer, None
        self._once = offered, named
        return events.nothing(), events.in_full(labels, features)

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


def unique_prefix() -> str:
    """What ids begin with: no other process, and no other life of this one, has the same.

    Seconds first, so that ids of about the same time are close to each other in an index.
    """
    return f"{int(time.time()):08x}{os.urandom(6).hex()}"


# -- opening -----------------------------------------------------------------------------------


def recover(journal: Journal, *, until: int | None = None, log: Any = None) -> tuple["Agent", Head]:
    """The agent of a journal, and the last event in it: a snapshot, and all events after it.

    Parameters
    ----------
    journal
        It is only read.
    until
        The last event to fold; by default the last there is.
    log
        The agent's.
    """
    end = journal.head if until is None else Head(until)
    agent, place = newest(journal, until=end.seq, log=log)
    found = journal.events(after=place, until=end.seq)
    if end.seq - place.seq > FEW:
        for one in agent._programs:
            one.wait()
    last = fold(agent, found, journal)
    return agent, place if last is None else last.head


def newest(journal: Journal, *, until: int, log: Any = None) -> tuple["Agent", Head]:
    """The agent of the newest good snapshot, or a new one, and the event that it is of."""
    from melee.agent.agent import Agent

    for snapshot in journal.snapshots(until):
        where = journal.store.snapshots.where(snapshot)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MeleeWarning)
                return Agent.from_bytes(journal.read_snapshot(snapshot), log=log), snapshot.head
        except DataError as error:
            _log.warning("%s is left out: %s", where, error)
    if journal.start.seq > 0:
        raise _nothing_left(journal)
    return created(journal, log), journal.start


def earliest(journal: Journal) -> tuple["Agent", Head]:
    """The agent at the first place that can be derived: as it was made, or its oldest snapshot.

    Where agents share a journal, what retention has dropped for one may be more than what it has
    dropped for another.
    """
    from melee.agent.agent import Agent

    if journal.start.seq == 0:
        return created(journal), journal.start
    for snapshot in reversed(journal.snapshots()):
        if snapshot.head.seq >= journal.start.seq:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MeleeWarning)
                    return Agent.from_bytes(journal.read_snapshot(snapshot)), snapshot.head
            except DataError as error:
                _log.warning("%s is left out: %s", snapshot.name, error)
    raise _nothing_left(journal)


def _nothing_left(journal: Journal) -> DataError:
    return DataError(
        f"{journal.where}: events up to {journal.start.seq} were dropped, and no good snapshot of "
        f"{journal.name} is left; restore one from a copy"
    )


def created(journal: Journal, log: Any = None) -> "Agent":
    """The new agent that the first event tells of."""
    from melee.agent.agent import Agent

    first = next(journal.events(), None)
    if first is None or first.kind != events.CREATED:
        raise DataError(
            f"{journal.where}: no agent {journal.name!r} is in this journal; there are "
            f"{', '.join(journal.store.agents()) or 'none'}"
        )
    try:
        if "file" in first.content:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MeleeWarning)
                return Agent.from_bytes(b64decode(first.content["file"]), log=log)
        given = dict(first.content["parameters"])
        if given["actions"] is not None:
            given["actions"] = [label_from_json(label) for label in given["actions"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MeleeWarning)
            return Agent(**given, log=log)
    except (KeyError, TypeError, ValueError) as error:
        raise events.unreadable(first, error) from None


def keep(agent: "Agent", journal: Journal) -> Keeper:
    """Have a new agent be the one of the journal, or have a new journal begin with it."""
    known = journal.store.latest_change(journal.name)
    mine = agent._parameters()
    if known is None and not journal.store.has(journal.name):
        body = {"parameters": mine, **_about(agent)}
        ticket = journal.append([events.change(events.CREATED, time.time(), body)])
        journal.wait(ticket)
        return Keeper(agent, journal, journal.head)
    found, position = recover(journal, log=agent.log)
    settings = _changed(journal, mine, found)
    agent._knowledge, agent._pending, agent._ids = found._knowledge, found._pending, found._ids
    agent._first_labels, agent._trials = found._first_labels, found._trials
    for name in CHANGEABLE:
        setattr(agent, name, getattr(found, name))
    keeper = Keeper(agent, journal, position)
    keeper._since = position.seq - max((one.head.seq for one in journal.snapshots()), default=0)
    _note_changes(keeper, settings, known)
    return keeper


def begin(agent: "Agent", journal: Journal) -> Keeper:
    """Have a new journal begin with an agent as it is: what it knows is part of the first event."""
    if journal.store.has(journal.name):
        raise InputError(
            f"{journal.where} has an agent {journal.name!r} already, which goes on by "
            "Agent(..., journal=...); give another place, or another name: Journal(place, name)"
        )
    file = b64encode(agent.to_bytes()).decode()
    body = {"parameters": agent._parameters(), **_about(agent), "file": file}
    ticket = journal.append([events.change(events.CREATED, time.time(), body)])
    journal.wait(ticket)
    return Keeper(agent, journal, journal.head)


def reopen(journal: Journal, *, note: bool = True) -> "Agent":
    """The agent of a journal, with the parameters that it has there; it goes on from now.

    What is otherwise than before (melee's version, the explorer's code) is noted, unless it is not
    to be.
    """
    agent, position = recover(journal)
    known = journal.store.latest_change(journal.name)
    keeper = Keeper(agent, journal, position)
    keeper._since = position.seq - max((one.head.seq for one in journal.snapshots()), default=0)
    agent.journal = journal
    agent._hold(keeper)
    if note:
        _note_changes(keeper, {}, known)
    return agent


def _note_changes(keeper: Keeper, settings: dict[str, Any], known: Event | None) -> None:
    """Note what is otherwise than before: parameters, the explorer's code, melee's version."""
    about = _about(keeper.agent)
    before = {} if known is None else known.content
    if settings or any(before.get(name) != value for name, value in about.items()):
        body = {"parameters": settings, **about}
        with keeper:
            keeper._unit.append(events.change(events.SETTINGS, time.time(), body))
            change_settings(keeper.agent, settings)


def _about(agent: "Agent") -> dict[str, str]:
    return {"policy": agent._policy, "melee": __version__}


def _changed(journal: Journal, mine: dict[str, Any], found: "Agent") -> dict[str, Any]:
    """The parameters that are to change; refuses those that cannot."""
    theirs = found._parameters()
    if theirs["actions"] is None and mine["actions"] is not None:
        raise InputError(
            f"the actions are {shown(mine['actions'])}, and those of the agent in {journal.where} "
            "come with each question; leave actions out, or give another place for a new agent"
        )
    now = [label_to_json(label) for label in found.actions_]
    if mine["actions"] not in (theirs["actions"], now):
        raise InputError(
            f"the actions are {shown(mine['actions'])}, and the agent in {journal.where} began "
            f"with {shown(theirs['actions'])} and has {shown(now)} now; give either of these, then "
            "use add_actions and remove_actions"
        )
    changed = {name: mine[name] for name in CHANGEABLE if mine[name] != theirs[name]}
    for name, value in mine.items():
        fixed = name not in (*CHANGEABLE, "actions")
        less = name == "max_pending" and name in changed and value < theirs[name]
        if (fixed or less) and value != theirs[name]:
            raise InputError(
                f"{name} is {shown(value)}, and the agent in {journal.where} has "
                f"{shown(theirs[name])}, which cannot {'become less' if less else 'change'}; give "
                "that, or another place for a new agent"
            )
    return changed


def offered_in(event: Event, journal: Journal) -> events.Offer:
    """What a past decision could choose from."""
    return events.chosen_from(event, journal.offer(event.content["offer"]))


def decision_of(
    event: Event, journal: Journal, offer: events.Offer | None = None
) -> tuple[Decision, events.Decided]:
    """A past decision as `Agent.act` answered it, and as its event has it."""
    offer = offered_in(event, journal) if offer is None else offer
    decided = events.read_decision(event, len(offer.labels))
    decision = Decision(
        str(event.id),
        offer.labels[decided.action],
        decided.pmf[decided.action],
        decided.policy,
        decided.version,
        offer.labels,
        tuple(decided.pmf),
    )
    return decision, decided


def explain_past(journal: Journal, id: str) -> Explanation | None:
    """Why a decision was made, by the agent as it was then; None if it is not in the journal."""
    event = journal.find(id)
    if event is None:
        return None
    agent, _ = recover(journal, until=event.seq - 1)
    offer = offered_in(event, journal)
    decision, decided = decision_of(event, journal, offer)
    fold_decision(agent, event, decided, offer)
    if offer.features is None:
        return agent.explain(decision)
    return agent.explain(decision, actions=dict(zip(offer.labels, offer.features, strict=True)))
