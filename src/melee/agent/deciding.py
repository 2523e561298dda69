"""Deciding: a context and the open actions become a decision, which waits for its reward.

Here for an agent with actions of its own; `offering` is the same for one to which they come with
the question.
"""

import zlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.agent.arguments import check_alike, is_for_each, read_open
from melee.agent.ids import Ids, check_new, read_new
from melee.agent.knowledge import Encoded, Labels
from melee.agent.offered import Offered
from melee.agent.overdue import give_up, keep_room, now
from melee.agent.pending import Waiting
from melee.arrays import Ints
from melee.contexts import Context, read_context, read_contexts
from melee.decision import Decision
from melee.errors import InputError
from melee.labels import Label

if TYPE_CHECKING:
    from melee.agent.agent import Agent

_new: Any = tuple.__new__


def decide(agent: "Agent", context: Any, actions: Any, id: str | None) -> Decision:
    """Choose one of the open actions."""
    read = read_context(context)
    with agent._guard:
        chosen = None if actions is None else find(agent, actions)
        if id is not None:
            check_id(agent, id)
        return decide_among(agent, read, chosen, id)


def decide_among(agent: "Agent", context: Context, chosen: Ints | None, id: str | None) -> Decision:
    """The same for who holds the agent already, and has checked what is given."""
    agent._knowledge.ready(context, some=chosen is not None)
    time = now()
    if agent.timeout is not None:
        give_up(agent, time)
    name = namer(agent).name(id, context, chosen, agent._pending)
    draw = zlib.crc32(name.encode())
    labels, pmf, action, encoded = agent._knowledge.decide(context, draw, chosen)
    decision = decided(agent, context, name, labels, pmf, action, time, encoded)
    if len(agent._pending.waiting) > agent.max_pending:
        keep_room(agent, time)
    return decision


def decide_many(
    agent: "Agent", contexts: Any, actions: Any, ids: Sequence[str] | None
) -> list[Decision]:
    """Choose one of the open actions for each of many contexts."""
    read = read_contexts(contexts)
    with agent._guard:
        opened = _find_each(agent, actions, len(read))
        given = read_ids(agent, ids, read)
        check_many(agent, read)
        time = now()
        give_up(agent, time)
        if len(read) == 0:
            return []
        agent._knowledge.ready(read[0], some=opened[0] is not None)
        rows = agent._knowledge.encode_many(read)
        made = namer(agent)
        names = [
            made.name(id, context, chosen, agent._pending)
            for id, context, chosen in zip(given, read, opened, strict=True)
        ]
        draws = np.array([zlib.crc32(name.encode()) for name in names], np.int64)
        decisions: list[Decision] = []
        for some in _alike(opened):
            chosen = opened[some.start]
            agent._knowledge.ready(read[some.start], some=chosen is not None)
            labels, pmfs, drawn = agent._knowledge.decide_many(rows[some], draws[some], chosen)
            made_of = zip(read[some], names[some], pmfs, drawn, strict=True)
            for context, name, pmf, action in made_of:
                own = context if isinstance(context, dict) else context.copy()
                decisions.append(decided(agent, own, name, labels, pmf, action, time))
        keep_room(agent, time)
        return decisions


def pmf(agent: "Agent", context: Any, actions: Any) -> dict[Label, float]:
    """The probability of every open action; changes nothing."""
    read = read_context(context)
    with agent._lock:
        chosen = None if actions is None else find(agent, actions)
        return agent._knowledge.pmf(read, chosen)


def decided(
    agent: "Agent",
    context: Context,
    id: str,
    labels: Labels,
    pmf: list[float],
    action: int,
    time: float,
    encoded: Encoded | None = None,
    offered: Offered | None = None,
) -> Decision:
    """The decision, which waits for its reward from now on."""
    label, probability, version = labels[action], pmf[action], agent._knowledge.version
    # As Decision(...) and Waiting(...), in half the time.
    decision: Decision = _new(
        Decision, (id, label, probability, agent._policy, version, labels, tuple(pmf))
    )
    features = None if offered is None else offered.features[action]
    kept = (context, label, probability, time, version, None, None, encoded, features, None)
    waiting: Waiting = _new(Waiting, kept)
    if agent._log is not None:
        others = None if offered is None else offered.features
        waiting = waiting._replace(actions=labels, probabilities=np.array(pmf), others=others)
    agent._pending.waiting[id] = waiting
    if agent._keeper is not None:
        agent._keeper.decided(id, waiting, labels, pmf, action, offered)
    return decision


def namer(agent: "Agent") -> Ids:
    """What names decisions: with a journal, so that no other process makes the same names."""
    return agent._ids if agent._keeper is None else agent._keeper.ids


def read_ids(agent: "Agent", ids: Any, contexts: Sequence[Any]) -> Sequence[str | None]:
    """The ids that a caller brings for each of many contexts, or none."""
    if ids is None:
        return [None] * len(contexts)
    names = read_new(ids, len(contexts), agent._pending)
    if agent._keeper is not None:
        for id in names:
            agent._keeper.check_new(id)
    return names


def check_id(agent: "Agent", id: str) -> None:
    """Refuse an id that is none, or that is taken, in a journal however long ago."""
    check_new(id, agent._pending)
    if agent._keeper is not None:
        agent._keeper.check_new(id)


def check_many(agent: "Agent", contexts: Sequence[Context]) -> None:
    """Refuse contexts of several kinds, and more than may wait."""
    check_alike(contexts)
    if len(contexts) > agent.max_pending:
        raise InputError(
            f"{len(contexts)} contexts, and only {agent.max_pending} decisions may wait for "
            "their rewards; raise max_pending, or decide about fewer at a time"
        )


def _find_each(agent: "Agent", actions: Any, n: int) -> list[Ints | None]:
    """The numbers of the actions that are open for each of n contexts, None for all."""
    if not is_for_each(actions):
        return [None if actions is None else find(agent, actions)] * n
    if len(actions) != n:
        raise InputError(
            f"{len(actions)} lists of actions for {n} contexts; expected one for each, or one for "
            "all"
        )
    opened: list[Ints | None] = []
    for i, some in enumerate(actions):
        try:
            opened.append(None if some is None else find(agent, some))
        except InputError as error:
            raise InputError(f"the actions of number {i} of the contexts: {error}") from None
    return opened


def _alike(opened: list[Ints | None]) -> Iterator[slice]:
    """Where contexts with the same open actions follow each other."""
    first = 0
    for i in range(1, len(opened) + 1):
        if i == len(opened) or opened[i] is not opened[first]:
            yield slice(first, i)
            first = i


def find(agent: "Agent", actions: Iterable[Hashable]) -> Ints:
    """The numbers of the actions that are open."""
    labels = read_open(actions)
    numbers = [agent._knowledge.number(label) for label in labels]
    return np.array(sorted(numbers), np.int64)  # in what order they came does not matter
