"""The past of a service's agents: what a decision was about, what became of it, why it was made."""

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.agent.recalling import decision_of, explain_past, offered_in
from melee.journal import Event, events
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
    context = decided.context
    answer = to_json(decision) | {
        "time": event.time,
        "context": context.tolist() if isinstance(context, np.ndarray) else context,
        **await _outcome(service, served, event),
    }
    features = offered_in(event, journal).features
    if features is not None:
        answer["features"] = [
            value.tolist() if isinstance(value, np.ndarray) else value for value in features
        ]
    if explain:
        answer["explanation"] = await replay(service, served, id)
    return answer


async def _outcome(service: "Service", served: Served, event: Event) -> dict[str, Any]:
    """What became of a decision: it waits, has its reward, or was given up.

    What was given up has the default reward, if it taught that.
    """
    id, journal, pending = str(event.id), served.keeper.journal, served.agent._pending
    reward = journal.find(id, events.REWARD)
    end = None
    if reward is None and id not in pending.waiting:
        async with service.one_replay:
            end = await asyncio.to_thread(journal.given_up, event)
    learned = None
    if reward is not None:
        learned = reward.content["reward"]
    elif end is not None:
        learned = end.content.get("reward", pending.done.get(id))  # early journals do not say it
    waits = reward is None and end is None
    return {"waits": waits, "given_up": end is not None, "reward": learned}


async def replay(service: "Service", served: Served, id: str) -> dict[str, Any] | None:
    """Why a decision was made, by the agent as it was; one at a time, beside all else."""
    async with service.one_replay:
        found = await asyncio.to_thread(explain_past, served.keeper.journal, id)
    return None if found is None else explanation_to_json(found)
