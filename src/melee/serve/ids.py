"""Ids that requests name: whether a journal could hold one, and whether a decision has it."""

from typing import Any

from melee.agent.pending import is_ranking
from melee.checks import is_unicode
from melee.errors import shown
from melee.journal import Event
from melee.serve.refusals import Refusal
from melee.serve.served import Served


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
