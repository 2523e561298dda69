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
    """Rewards of decisions, all or none; those that came before are not learned again."""
    if served.trials:
        return await _reward_all(service, served, rewards)
    return await _reward_own(service, served, rewards)


async def _reward_all(
    service: "Service", served: Served, rewards: list[tuple[str, float]]
) -> dict[str, Any]:
    """Rewards of decisions that the agent or its trials made."""
    groups = trying.by_owner(service, served, rewards)
    for member, group in groups:  # all are fine, or none is learned
        await service.turn(member)
        for id, given in group:
            _waits(member, id, check_reward(given, member.agent._range))
    total = {"learned": 0, "repeated": 0}
    for member, group in groups:
        for name, n in (await _reward_own(service, member, group)).items():
            total[name] += n
    return total


async def _reward_own(
    service: "Service", served: Served, rewards: list[tuple[str, float]]
) -> dict[str, Any]:
    agent = served.agent
    await service.turn(served)
    if agent.timeout is not None:
        agent.give_up()
    new: dict[str, float] = {}
    for id, given in rewards:
        number = check_reward(given, agent._range)
        if id in new and new[id] != number:
            raise Refusal(409, f"decision {shown(id)} has two rewards here; send the final one")
        if _waits(served, id, number):
            new[id] = number
    waiting = agent._pending.waiting
    labels = {id: waiting[id].action for id in new}
    learned = 0
    if len(new) == 1:
        ((id, number),) = new.items()
        learned = int(agent.learn(id, number))
    elif new:
        learned = agent.learn_many(list(new), list(new.values()))
    noting.rewarded(served, labels, new)
    await service.on_disk(served)
    return {"learned": learned, "repeated": len(rewards) - len(new)}


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
