"""The agent that a journal tells of: a snapshot, and all events after it."""

import logging
import warnings
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from melee.agent.folding import fold
from melee.errors import DataError, MeleeWarning
from melee.journal import Head, Journal, events
from melee.journal.journal import no_agent
from melee.labels import label_from_json

if TYPE_CHECKING:
    from melee.agent.agent import Agent

FEW = 64
"""Events that are folded without waiting for machine code."""
_log = logging.getLogger("melee")


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
        for program in agent._programs:
            program.wait()
    last = fold(agent, found, journal)
    return agent, place if last is None else last.head


def newest(journal: Journal, *, until: int, log: Any = None) -> tuple["Agent", Head]:
    """The agent of the newest good snapshot, or a new one, and the event that it is of."""
    for snapshot in journal.snapshots(until):
        where = journal.store.snapshots.where(snapshot)
        try:
            return read_file(journal.read_snapshot(snapshot), log), snapshot.head
        except DataError as error:
            _log.warning("%s is left out: %s", where, error)
    return _from_nothing(journal, log)


def earliest(journal: Journal) -> tuple["Agent", Head]:
    """The agent at the first place that can be derived: as it was made, or its oldest snapshot.

    Where agents share a journal, what retention has dropped for one may be more than what it has
    dropped for another.
    """
    if journal.start.seq == 0 or journal.first is not None:
        return _from_nothing(journal)
    for snapshot in reversed(journal.snapshots()):
        if snapshot.head.seq >= journal.start.seq:
            try:
                return read_file(journal.read_snapshot(snapshot)), snapshot.head
            except DataError as error:
                _log.warning("%s is left out: %s", snapshot.name, error)
    raise _nothing_left(journal)


def _from_nothing(journal: Journal, log: Any = None) -> tuple["Agent", Head]:
    """The new agent that the first event tells of, and the place before that event."""
    first = journal.first
    if first is None and journal.start.seq > 0:
        raise _nothing_left(journal)
    agent, before = created(journal, log), 0 if first is None else first.seq - 1
    checksum = journal.store.checksum_at(before)
    if checksum is None:
        raise DataError(
            f"{journal.where}: event {before} is missing; restore the journal from a copy"
        )
    return agent, Head(before, checksum)


def _nothing_left(journal: Journal) -> DataError:
    return DataError(
        f"{journal.where}: events up to {journal.start.seq} were dropped, and no good snapshot of "
        f"{journal.name} is left; restore one from a copy"
    )


def read_file(content: bytes, log: Any = None) -> "Agent":
    """The agent of a file, without the warnings for who loads one."""
    from melee.agent.agent import Agent

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        return Agent.from_bytes(content, log=log)


def created(journal: Journal, log: Any = None) -> "Agent":
    """The new agent that the first event tells of."""
    from melee.agent.agent import Agent

    first = journal.first or next(journal.events(), None)  # which names what is missing
    if first is None or first.kind != events.CREATED:
        raise no_agent(journal)
    try:
        if "file" in first.content:
            return read_file(b64decode(first.content["file"]), log)
        given = dict(first.content["parameters"])
        if given["actions"] is not None:
            given["actions"] = [label_from_json(label) for label in given["actions"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MeleeWarning)
            return Agent(**given, log=log)
    except (KeyError, TypeError, ValueError) as error:
        raise events.unreadable(first, error) from None
