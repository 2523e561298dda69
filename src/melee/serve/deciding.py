"""Requests for decisions: one, many, a ranking, or a choice that the caller has made."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from melee.agent.arguments import is_for_each
from melee.contexts import read_context
from melee.errors import InputError, shown
from melee.labels import Label
from melee.serve import ids as taken_ids
from melee.serve import noting, repeating, trying
from melee.serve.forms import explanation_to_json, to_json
from melee.serve.ids import is_taken
from melee.serve.refusals import Refusal
from melee.serve.served import Served

if TYPE_CHECKING:
    from melee.serve.service import Service


async def decide(
    service: "Service",
    served: Served,
    context: Any,
    actions: Any = None,
    id: str | None = None,
    *,
    explain: bool = False,
    unit: str | None = None,
) -> dict[str, Any]:
    """One decision; the same one again for the same request under the same id."""
    new = None
    if id is not None:
        await taken_ids.take(service, served, [id])
    else:
        new = trying.new_id(served)
        await service.turn(served, [] if new is None else [new])
    served, id, about = trying.drawn(service, served, id, unit, new)
    agent = served.agent
    try:
        with served.keeper.noting(**about):
            decision = agent.act(context, actions=actions, id=id)
    except InputError:
        if id is None or not is_taken(served, id):
            raise
        return await repeating.again(
            service, served, id, read_context(context), actions, explain=explain
        )
    offered = actions if agent.actions is None else None
    why = agent.explain(decision, actions=offered) if explain else None
    noting.decided(served, [decision])
    await service.on_disk(served)
    answer = to_json(decision)
    if why is not None:
        answer["explanation"] = explanation_to_json(why)
    return answer


async def follow(
    service: "Service",
    served: Served,
    context: Any,
    chosen: Label,
    probability: Any = None,
    actions: Sequence[Label] | None = None,
    id: str | None = None,
) -> dict[str, Any]:
    """A choice of the caller's, repeated; it is learned from when its reward comes."""
    agent = served.agent
    await taken_ids.take(service, served, [] if id is None else [id])
    if id is not None and trying.owner(service, served, id) is not served:
        raise repeating.is_another_choice(id)
    try:
        decision = agent.follow(context, chosen, probability=probability, actions=actions, id=id)
    except InputError:
        if id is None or not is_taken(served, id):
            raise
        given = (chosen, probability)
        return await repeating.again(service, served, id, read_context(context), actions, given)
    served.follows = True
    noting.decided(served, [decision])
    await service.on_disk(served)
    return to_json(decision)


async def rank(
    service: "Service", served: Served, context: Any, actions: Any, id: str | None, top: Any
) -> dict[str, Any]:
    """Several actions, best first; the same ones again for the same request and id."""
    await service.turn(served, [] if id is None else [id, f"{id}/1"])
    if id is not None and trying.owners(service, served, [id]):
        raise Refusal(
            409, f"id {shown(id)} is taken by a decision; give each ranking an id of its own"
        )
    try:
        ranking = served.agent.act(context, actions=actions, id=id, top=top)
    except InputError:
        if id is None or not is_taken(served, f"{id}/1"):
            raise
        return await repeating.rank_again(service, served, id, read_context(context), actions, top)
    noting.decided(served, ranking.places)
    await service.on_disk(served)
    return {"id": ranking.id, "places": [to_json(place) for place in ranking.places]}


async def decide_many(
    service: "Service",
    served: Served,
    contexts: list[Any],
    actions: Any = None,
    ids: list[Any] | None = None,
    *,
    unit: str | None = None,
) -> list[dict[str, Any]]:
    """Many decisions, all or none; those that were made before are answered again.

    They are drawn into a trial together, by the unit or by the first id.
    """
    await taken_ids.take(service, served, ids or ())
    first = None if not ids or not isinstance(ids[0], str) else ids[0]
    drawn, _, about = trying.drawn(service, served, first, unit, many=True)
    return await _decide_many(service, served, drawn, contexts, actions, ids, about)


async def _decide_many(
    service: "Service",
    served: Served,
    drawn: Served,
    contexts: list[Any],
    actions: Any,
    ids: list[Any] | None,
    about: dict[str, Any],
) -> list[dict[str, Any]]:
    """The same in a turn, by whoever was drawn; what was made before is whoever's it is."""
    agent = drawn.agent
    taken = {} if ids is None else trying.owners(service, served, ids)
    if ids is None or not taken or len(ids) != len(contexts) or len(set(ids)) != len(ids):
        with drawn.keeper.noting(**about):
            decisions = agent.act_many(contexts, actions=actions, ids=ids)
        noting.decided(drawn, decisions)
        await service.on_disk(drawn)
        return [to_json(decision) for decision in decisions]
    each = None
    own_ones = agent.actions is None or is_for_each(actions)
    if own_ones and isinstance(actions, list) and len(actions) == len(ids):
        each = dict(zip(ids, actions, strict=True))  # candidates of each, or open actions
    answers = {}
    for id, context in zip(ids, contexts, strict=True):
        if id in taken:
            own = each[id] if each is not None else actions
            read = read_context(context)
            answers[id] = await repeating.again(service, taken[id], id, read, own)
    new = [i for i, id in enumerate(ids) if id not in taken]
    if new:
        fresh = [ids[i] for i in new]
        rest = [contexts[i] for i in new]
        own = actions
        if each is not None:
            left = [each[id] for id in fresh]
            own = None if all(some is None for some in left) else left  # None: all actions
        await service.turn(served, fresh)
        made = await _decide_many(service, served, drawn, rest, own, fresh, about)
        answers |= dict(zip(fresh, made, strict=True))
    return [answers[id] for id in ids]
