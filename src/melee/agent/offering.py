"""Deciding among candidates, which come with the question and have features of their own."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from melee.agent.catalogue import Catalogue
from melee.agent.deciding import check_id, check_many, decided, namer, read_ids
from melee.agent.offered import Offered
from melee.agent.overdue import give_up, keep_room, now
from melee.agent.parameters import check_written
from melee.contexts import Context, read_context, read_contexts
from melee.decision import Decision
from melee.errors import InputError
from melee.labels import Label

if TYPE_CHECKING:
    from melee.agent.agent import Agent


def choose(agent: "Agent", context: Any, actions: Any, id: str | None) -> Decision:
    """Choose one of the candidates."""
    read = read_context(context)
    with agent._guard:
        known = _known_by(agent)
        offered = read_offer(agent, known, actions)
        if id is not None:
            check_id(agent, id)
        return choose_among(agent, known, read, offered, id)


def choose_among(
    agent: "Agent", known: Catalogue, context: Context, offered: Offered, id: str | None
) -> Decision:
    """The same for who holds the agent already, and has checked what is given."""
    known.ready_for(context, offered)
    time = now()
    if agent.timeout is not None:
        give_up(agent, time)
    return _choose(agent, known, context, offered, id, time)


def choose_many(
    agent: "Agent", contexts: Any, actions: Any, ids: Sequence[str] | None
) -> list[Decision]:
    """Choose one of the candidates for each of many contexts."""
    read = read_contexts(contexts)
    with agent._guard:
        known = _known_by(agent)
        given = read_ids(agent, ids, read)
        check_many(agent, read)
        offers = _read_offers(agent, known, actions, len(read))
        time = now()
        give_up(agent, time)
        decisions = []
        known.check_kinds(offers)
        for context, offered in zip(read, offers, strict=True):
            known.ready_for(context, offered)
        for context, offered, id in zip(read, offers, given, strict=True):
            own = context if isinstance(context, dict) else context.copy()
            decisions.append(_choose(agent, known, own, offered, id, time))
        return decisions


def _known_by(agent: "Agent") -> Catalogue:
    """What an agent knows, once it is held: a journal that failed may have been folded again."""
    known = agent._knowledge
    assert isinstance(known, Catalogue)
    return known


def _choose(
    agent: "Agent",
    known: Catalogue,
    context: Context,
    offered: Offered,
    id: str | None,
    time: float,
) -> Decision:
    name = namer(agent).name(id, context, offered.content, agent._pending)
    pmf, action, encoded = known.choose(context, offered, zlib.crc32(name.encode()))
    decision = decided(agent, context, name, offered.labels, pmf, action, time, encoded, offered)
    if len(agent._pending.waiting) > agent.max_pending:
        keep_room(agent, time)
    return decision


def pmf(agent: "Agent", known: Catalogue, context: Any, actions: Any) -> dict[Label, float]:
    """The probability of every candidate; changes nothing."""
    read = read_context(context)
    with agent._lock:
        offered = read_offer(agent, known, actions)
        return dict(zip(offered.labels, known.probabilities(read, offered), strict=True))


def read_offer(agent: "Agent", known: Catalogue, actions: Any) -> Offered:
    """The candidates of a question, which a log has to be able to hold if there is one."""
    if actions is None:
        raise InputError(
            "there are no candidates; this agent has no actions of its own: give them with the "
            "question, act(context, actions={label: features, ...})"
        )
    offered = known.read(actions)
    if agent._log is not None or agent._keeper is not None:
        check_written(offered.labels)
    return offered


def _read_offers(agent: "Agent", known: Catalogue, actions: Any, n: int) -> list[Offered]:
    """The candidates of each of many questions: their own, or the same for all."""
    each = isinstance(actions, list | tuple) and not all(
        isinstance(given, str | int | float) for given in actions
    )
    if each and len(actions) != n:
        raise InputError(
            f"{len(actions)} lists of candidates for {n} contexts; expected one for each, or one "
            "dict or table for all"
        )
    if each:
        return [read_offer(agent, known, given) for given in actions]
    return [read_offer(agent, known, actions)] * n if n else []
