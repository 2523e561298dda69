"""Rewards of decisions: learned once, however often they come."""

from typing import TYPE_CHECKING, Any

from melee.checks import check_reward
from melee.errors import InputError, shown
from melee.journal import events
from melee.serve import ids, noting, trying
from melee.serve.refusals import Refusal
from melee.serve.served import Served

if TYPE_CHECKING:
    from melee.serve.service import Service


async def reward(
    service: "Service", served: Served, rewards: list[tuple[str, float]]
) -> dict[str, Any]:
    """Rewards of decisions, all or none; those that came before are not learned again.

    The agent or its trials have made them; all of it is one turn.
    """
    await service.turn(served)
    groups = trying.by_owner(service, served, rewards) if served.trials else [(served, rewards)]
    for member, _ in groups:
        if member.agent.timeout is not None:
            member.agent.give_up()
    new = [(member, _new(member, group)) for member, group in groups]
    learned = sum(_learn(member, own) for member, own in new)
    for member, _ in groups:
        await service.on_disk(member)
    n_new = sum(len(own) for _, own in new)
    return {"learned": learned, "repeated": len(rewards) - n_new}


def _new(served: Served, rewards: list[tuple[str, float]]) -> dict[str, float]:
    """Those of an agent's rewards that did not come before, by id; a refusal if one cannot be."""
    agent = served.agent
    new: dict[str, float] = {}
    for id, given in rewards:
        number = check_reward(given, agent._range)
        if id in new and new[id] != number:
            raise Refusal(409, f"decision {shown(id)} has two rewards here; send the final one")
        if _waits(served, id, number):
            new[id] = number
    return new


def _learn(served: Served, new: dict[str, float]) -> int:
    """Have an agent learn rewards of decisions that wait; of how many the actions exist."""
    agent = served.agent
    waiting = agent._pending.waiting
    labels = {id: waiting[id].action for id in new}
    learned = 0
    if len(new) == 1:
        ((id, number),) = new.items()
        learned = int(agent.learn(id, number))
    elif new:
        learned = agent.learn_many(list(new), list(new.values()))
    noting.rewarded(served, labels, new)
    return learned


def _waits(served: Served, id: str, reward: float) -> bool:
    """Whether a decision waits for its reward; False if it had this one before."""
    pending = served.agent._pending
    if id in pending.waiting:
        return True
    if id in pending.done:
        try:
            return not pending.repeats(id, reward)
        except InputError as error:
            raise Refusal(410 if pending.done[id] is None else 409, str(error)) from None
    ids.find(served, id)
    known = served.keeper.journal.find(id, events.REWARD)
    if known is None:
        raise Refusal(410, f"decision {shown(id)} was given up before its reward came")
    if known.content["reward"] != reward:
        raise Refusal(
            409,
            f"decision {shown(id)} has the reward {known.content['reward']:g} already, and now "
            f"gets {reward:g}; a decision is rewarded once: send the final reward only",
        )
    return False
