"""Requests that come again, under the same id: they are answered as they were before."""

from typing import TYPE_CHECKING, Any

import numpy as np

from melee.agent import offering
from melee.agent.keeping import GIVEN
from melee.agent.recalling import decision_of, offered_in
from melee.contexts import Context
from melee.errors import shown
from melee.journal import Event
from melee.labels import Label
from melee.serve.forms import to_json
from melee.serve.past import replay
from melee.serve.refusals import Refusal
from melee.serve.served import Served

if TYPE_CHECKING:
    from melee.serve.service import Service


async def again(
    service: "Service",
    served: Served,
    id: str,
    context: Context,
    actions: Any,
    given: tuple[Label, float | None] | None = None,
    *,
    explain: bool = False,
) -> dict[str, Any]:
    """The decision that was made under an id, if this is the same request.

    `given` is what the caller has chosen, and its probability, where it has.
    """
    await service.on_disk(served)
    event = served.keeper.journal.find(id)
    if event is None:
        raise Refusal(409, f"id {shown(id)} is taken by a round that was learned from a record")
    decision, decided = decision_of(event, served.keeper.journal)
    if not (_is_same(context, decided.context) and _is_offered(served, event, actions)):
        raise Refusal(
            409,
            f"id {shown(id)} is taken by a decision about another context or other actions; "
            "give each decision an id of its own",
        )
    if given is None:
        is_same = decision.policy != GIVEN
    else:
        chosen, probability = given
        chance = 1.0 if probability is None else probability
        asked = (GIVEN, chosen, chance)
        is_same = (decision.policy, decision.action, decision.probability) == asked
    if not is_same:
        raise is_another_choice(id)
    answer = to_json(decision)
    if explain:
        answer["explanation"] = await replay(service, served, id)
    return answer


async def rank_again(
    service: "Service", served: Served, id: str, context: Context, actions: Any, top: Any
) -> dict[str, Any]:
    """The ranking that was made under an id, if this is the same request."""
    if actions is None and served.agent.actions is not None:
        actions = served.agent.actions_  # what a ranking is made of, if nothing is said
    first = await again(service, served, f"{id}/1", context, actions)
    journal, places = served.keeper.journal, [first]
    while (event := journal.find(f"{id}/{len(places) + 1}")) is not None:
        places.append(to_json(decision_of(event, journal)[0]))
    if len(places) != top:
        raise Refusal(
            409,
            f"id {shown(id)} is taken by a ranking of {len(places)}, and now top is "
            f"{shown(top)}; give each ranking an id of its own",
        )
    return {"id": id, "places": places}


def is_another_choice(id: str) -> Refusal:
    """The refusal of an id that something else has: a decision, or what a caller has chosen."""
    return Refusal(
        409, f"id {shown(id)} is taken by another choice; give each decision an id of its own"
    )


def _is_offered(served: Served, event: Event, actions: Any) -> bool:
    """Whether these are the actions, or candidates, that a past decision chose from."""
    agent, offer = served.agent, offered_in(event, served.keeper.journal)
    if agent.actions is None:
        with agent._lock:
            given = offering.read_offer(agent, agent._knowledge, actions)  # type: ignore[arg-type]
        pairs = zip(given.features, offer.features or (), strict=False)
        return given.labels == offer.labels and all(_is_same(*pair) for pair in pairs)
    some = event.content.get("some", False)
    return some == (actions is not None) and (not some or set(actions) == set(offer.labels))


def _is_same(context: Context, other: Context) -> bool:
    if isinstance(context, dict) or isinstance(other, dict):
        return isinstance(context, dict) and isinstance(other, dict) and context == other
    return np.array_equal(context, other)
