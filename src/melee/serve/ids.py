"""Ids that requests name: whether a journal could hold one, and whether a decision has it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from melee.agent.pending import is_ranking
from melee.checks import is_unicode
from melee.errors import shown
from melee.journal import Event
from melee.serve.refusals import Refusal
from melee.serve.served import Served

if TYPE_CHECKING:
    from melee.serve.service import Service


def can_be_kept(id: Any) -> bool:
    """Whether an id is a text that any journal holds."""
    return isinstance(id, str) and 0 < len(id) <= 200 and "\0" not in id and is_unicode(id)


def is_taken(served: Served, id: Any) -> bool:
    """Whether an agent has a decision, or a round of a record, of that id."""
    if not isinstance(id, str) or not 0 < len(id) <= 200:
        return False
    if served.agent._pending.knows(id):
        return True
    if id in getattr(served.keeper, "free", ()):  # nobody has it, as of this turn
        return False
    return _event(served, id) is not None


async def take(service: "Service", served: Served, ids: Sequence[Any]) -> None:
    """Return in a turn in which decisions are about to have these ids; refuse those of rankings.

    A ranking is known by its first place. A decision may have an id like that of one, too: so its
    event is asked, in nobody's turn.
    """
    firsts = [f"{id}/1" for id in ids if isinstance(id, str)]
    await service.turn(served, [*ids, *firsts])
    some = [first for first in firsts if _may_be_taken(served, first)]
    if not some:
        return
    await service.on_disk(served)
    for first in some:
        event = _event(served, first)
        if event is not None and "place" in event.content:
            id = first.removesuffix("/1")
            raise Refusal(
                409, f"id {shown(id)} is taken by a ranking; give each decision an id of its own"
            )
    await service.turn(served, ids)


def _may_be_taken(served: Served, id: str) -> bool:
    """Whether it is, or a record has it: what the index alone tells, in a third of the time."""
    if served.agent._pending.knows(id):
        return True
    if id in getattr(served.keeper, "free", ()) or not can_be_kept(id):
        return False
    return served.keeper.journal.is_taken(id)


def find(served: Served, id: str) -> Event:
    """The decision of that id, as the journal has it; a refusal if there is none."""
    event = _event(served, id)
    if event is None and is_taken(served, f"{id}/1"):
        raise Refusal(404, is_ranking(id))
    if event is None:
        raise Refusal(
            404,
            f"decision {shown(id)} is not known: agent {served.name} did not make it, or it was "
            "dropped from the journal since",
        )
    return event


def _event(served: Served, id: str) -> Event | None:
    if not can_be_kept(id):
        return None
    try:
        return served.keeper.journal.find(id)
    except (UnicodeError, ValueError):  # no text that could be kept
        return None
