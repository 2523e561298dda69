"""Is a journal whole? Every link of its chain, what its events name, and its snapshots."""

from collections.abc import Iterator
from typing import NamedTuple

from melee.errors import DataError
from melee.journal.events import (
    CREATED,
    DECISION,
    KINDS,
    ROLLBACK,
    Head,
    chosen_from,
    is_next,
    read_decision,
    read_rollback,
)
from melee.journal.journal import Journal, broken


class Fault(NamedTuple):
    """Something that is not as it was written: the number of the event, and a sentence."""

    seq: int
    sentence: str


def verify(journal: Journal) -> Iterator[Fault]:
    """The faults of a journal, all agents in it; none where it is whole.

    After a fault, checking goes on from what is there: a changed event is one fault, not one for
    every event after it.
    """
    store = journal.store
    place, end = store.start(), store.head()
    agents: set[str] = set()
    for event in store.rows(place.seq, end.seq):
        if not is_next(place, event):
            yield Fault(event.seq, str(broken(store.where, place, event)))
        elif event.kind not in KINDS:
            yield Fault(
                event.seq, f"event {event.seq} is a {event.kind!r:.40}, which no melee writes"
            )
        elif event.kind == DECISION:
            try:
                decided = read_decision(event)
                offer = chosen_from(event, store.offer(decided.offer))
                read_decision(event, len(offer.labels))
            except (DataError, TypeError, ValueError, KeyError) as error:
                yield Fault(event.seq, str(error))
        elif event.kind == ROLLBACK:
            try:
                read_rollback(event)
            except DataError as error:
                yield Fault(event.seq, str(error))
        if event.agent not in agents:
            agents.add(event.agent)
            if event.kind != CREATED and place.seq == 0:
                yield Fault(event.seq, f"event {event.seq}: {event.agent} was never created")
        place = event.head
    if place.seq < end.seq:
        yield Fault(
            place.seq + 1,
            f"{store.where}: events {place.seq + 1} to {end.seq} are missing, the last that were "
            "written; restore the journal from a copy",
        )
    elif place != end:
        yield Fault(end.seq, f"{store.where}: it ends otherwise than it says; restore a copy")
    for name in sorted(agents | {journal.name}):
        yield from _snapshots(journal.another(name), end)


def _snapshots(journal: Journal, end: Head) -> Iterator[Fault]:
    """Snapshots of another chain, or of events that are not there."""
    sound = {snapshot.name for snapshot in journal.snapshots()}
    start = journal.start.seq
    for snapshot in journal.store.snapshots.of(journal.name):
        if snapshot.name in sound or snapshot.head.seq < start:
            continue
        where = journal.store.snapshots.where(snapshot)
        if snapshot.head.seq > end.seq:
            sentence = f"{where}: of event {snapshot.head.seq}, and the journal ends at {end.seq}"
        else:
            sentence = f"{where}: of another journal, or of events that were changed since"
        yield Fault(snapshot.head.seq, sentence)
    is_known = journal.first is not None or any(
        snapshot.head.seq >= start for snapshot in journal.snapshots()
    )
    if start > 0 and not is_known:
        yield Fault(
            start, f"{journal.where}: events up to {start} were dropped, and no snapshot is left"
        )
