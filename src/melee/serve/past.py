"""The past of a service's agents: what a decision was about, what became of it, why it was made."""

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.agent.recalling import decision_of, explain_past, offered_in
from melee.journal import events
from melee.serve import ids, trying
from melee.serve.forms import explanation_to_json, to_json
from melee.serve.served import Served

if TYPE_CHECKING:
    from melee.serve.service import Service


async def look(
    service: "Service", served: Served, id: str, *, explain: bool = False
) -> dict[str, Any]:
    """A decision of any time: what it was about, its reward, and why it was made."""
    served = trying.owner(service, served, id)
    if service.turns is None:
        await service.turn(served)
        await service.on_disk(served)
    journal = served.keeper.journal
    event = ids.find(served, id)
    decision, decided = decision_of(event, journal)
    reward = journal.find(id, events.REWARD)
    waits = reward is None and id in served.agent._pending.waiting
    context = decided.context
    answer = to_json(decision) | {
        "time": event.time,
        "context": context.tolist() if isinstance(context, np.ndarray) else context,
        "waits": waits,
        "reward": None if reward is None else reward.content["reward"],
    }
    features = offered_in(event, journal).features
    if features is not None:
        answer["features"] = [
            value.tolist() if isinstance(value, np.ndarray) else value for value in features
        ]
    if explain:
        answer["explanation"] = await replay(service, served, id)
    return answer


async def replay(service: "Service", served: Served, id: str) -> dict[str, Any] | None:
    """Why a decision was made, by the agent as it was; one at a time, beside all else."""
    async with service.one_replay:
        found = await asyncio.to_thread(explain_past, served.keeper.journal, id)
    return None if found is None else explanation_to_json(found)
