"""Trials of a service's agents: who is drawn into which, whose decision is whose, how they do."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from melee.agent.ids import unique_prefix
from melee.agent.trials import acted, agent_name, check_trial, draw
from melee.errors import InputError, MeleeError, shown
from melee.explorers import parse
from melee.journal.snapshots import check_agent
from melee.serve.ids import is_taken
from melee.serve.refusals import Refusal
from melee.serve.served import Served

if TYPE_CHECKING:
    from melee.serve.service import Service

SOME = 1000
"""Events that are read for trials at a time, beside all else."""
_ADVICE = "begin trials while they run: PUT /v1/trials/NAME"
NEAR = 50_000
"""Events that are read before somebody who asks is answered."""


def family(service: "Service", served: Served) -> list[Served]:
    """An agent and those of its trials, also of those that have ended: rewards come late."""
    names = [agent_name(served.name, name) for name in served.trials]
    return [served, *(service.agents[name] for name in names if name in service.agents)]


def owner(service: "Service", served: Served, id: str) -> Served:
    """Whose decision it is; the agent's own if nobody's."""
    if served.trials:
        for member in family(service, served):
            if is_taken(member, id):
                return member
    return served


def new_id(served: Served) -> str | None:
    """An id for a decision that has none, where it matters who is drawn."""
    return unique_prefix() if _are_drawn(served) else None


def _are_drawn(served: Served) -> bool:
    return any(trial.share > 0.0 for trial in served.agent._trials.values())


def drawn(
    service: "Service",
    served: Served,
    id: str | None,
    unit: str | None,
    new: str | None = None,
    *,
    many: bool = False,
) -> tuple[Served, str | None, dict[str, Any]]:
    """Who decides, under which id, and what is noted of how that was drawn; in a turn.

    Many decisions are drawn together, as if they were all about one. `new` is for a decision that
    has no id.
    """
    if unit is not None and not 0 < len(unit) <= 200:
        raise InputError(f"unit is {shown(unit)}; expected a text of 1 to 200 characters")
    if not _are_drawn(served):
        return served, id, {} if unit is None else {"unit": unit}
    if id is not None and is_taken(mine := owner(service, served, id), id):
        return mine, id, {}  # asked again, or by mistake
    name = (new or unique_prefix()) if id is None else id
    trial = draw(served.agent._trials.values(), name if unit is None else unit)
    chosen = served
    if trial is not None:
        chosen = service.agents[agent_name(served.name, trial.name)]
    return chosen, name, {"unit": name if many and unit is None else unit}


def by_owner(
    service: "Service", served: Served, rewards: Sequence[tuple[str, float]]
) -> list[tuple[Served, list[tuple[str, float]]]]:
    """Rewards by whose decisions they are of."""
    groups: dict[str, list[tuple[str, float]]] = {}
    for id, reward in rewards:
        groups.setdefault(owner(service, served, id).name, []).append((id, reward))
    return [(service.agents[name], group) for name, group in groups.items()]


def check_alone(service: "Service", advice: str) -> None:
    """Refuse what several services that share a journal cannot do."""
    if service.journal.is_shared:
        raise Refusal(409, f"services share this journal, and cannot do this together; {advice}")


def begin_at_once(
    service: "Service", served: Served, name: str, explorer: str, share: float
) -> None:
    """Begin a trial, or give one another share, before the service answers anybody."""
    known = served.agent._trials.get(name)
    if known is not None and known.share == share:
        return
    from melee.trials.trials import begin

    check_alone(service, _ADVICE)
    own = agent_name(served.name, name)
    others = {name: service.agents[own].agent} if name in served.trials else {}
    begin(served.keeper, others, name, explorer, share)
    if name in others and name not in served.trials:
        service.take(own, others[name])
        served.trials.append(name)
    service.journal.wait(served.keeper.latest)


async def change(
    service: "Service", served: Served, name: str, explorer: Any, share: Any
) -> dict[str, Any]:
    """Begin a trial, or give one another share."""
    from melee.trials.trials import align, begin

    agent, keeper = served.agent, served.keeper
    async with service.one_change:
        await service.turn(served)
        known = agent._trials.get(name)
        if known is not None and explorer is None:
            explorer = known.explorer
        trial = check_trial(name, explorer, share, agent._trials.values())
        own = agent_name(served.name, name)
        if own in service.agents and name not in served.trials:
            raise Refusal(409, f"there is an agent {own} already; give the trial another name")
        others = {name: service.agents[own].agent} if own in service.agents else {}
        is_new = trial.share > 0.0 and not others
        if is_new and len(service.agents) >= service.max_agents:
            raise Refusal(409, f"there are {len(service.agents)} agents, and no more are allowed")
        if service.turns is None:
            await asyncio.to_thread(begin, keeper, others, name, explorer, share)
            if is_new:
                service.take(check_agent(own), others[name])
        else:
            if is_new:
                await _join_shared(service, served, name, trial.explorer)
                others[name] = service.agents[own].agent
                await service.turn(served)
                align(agent, others[name])
            begin(served.keeper, others, name, explorer, share)  # by what trials there are now
        if is_new:
            served.trials.append(name)
    await service.on_disk(served)
    spec = parse(agent._trials[name].explorer).short_spec
    return {"trial": name, "explorer": spec, "share": trial.share}


async def _join_shared(service: "Service", served: Served, name: str, explorer: str) -> None:
    """Have the agent of a trial join a journal that others share; it does not act yet.

    Most of the journal is read beside all else, and what came meanwhile in nobody's turn.
    """
    from melee.serve.joining import opening
    from melee.trials.beginning import begin_trial
    from melee.trials.shadow import Shadow

    assert service.turns is not None
    journal = served.keeper.journal
    if served.agent.actions is None:
        parse(explorer).check_candidates()
    shadow = Shadow(journal, explorer, name=name)
    while not await asyncio.to_thread(shadow.read, NEAR):
        pass

    def join() -> None:
        with opening(service):
            made = begin_trial(journal, name, explorer, shadow)
            assert made._keeper is not None
            made._keeper.snapshot()  # others need not look for its first event
            service.take(agent_name(served.name, name), made)

    await service.turns.between(join)


async def stop(service: "Service", served: Served, name: str) -> None:
    """End a trial."""
    from melee.trials.trials import end

    async with service.one_change:
        await service.turn(served)
        if name not in served.agent._trials:
            known = ", ".join(served.agent._trials) or "none"
            raise Refusal(404, f"there is no trial {shown(name)}; there are: {known}")
        end(served.keeper, name)
    await service.on_disk(served)


def look_back(served: Served) -> None:
    """Know the trials that an agent of the journal has, or had."""
    served.trials = acted(served.keeper.journal, served.agent)


async def compare(service: "Service", served: Served) -> dict[str, Any]:
    """What is known of the trials by now, and how many events are still to be read."""
    if not is_read(served):
        return {"trials": [], "behind": 0}
    async with service.one_reading:
        for _ in range(NEAR // SOME):
            if await asyncio.to_thread(read_some, served):
                break
        await asyncio.to_thread(judge, served)
    return {"trials": served.compared, "behind": behind(served)}


def is_read(served: Served) -> bool:
    """Whether there is anything that the journal is read for."""
    return bool(served.agent._trials) or served.follows


def read_some(served: Served) -> bool:
    """Read some more of the journal; whether that was all."""
    served.reading.begin(served.agent, apprentice=served.follows)
    return served.reading.read_some(SOME)


def judge(served: Served) -> None:
    """Note what is known by now."""
    served.compared = [comparison.to_json() for comparison in served.reading.compared(served.agent)]


def behind(served: Served) -> int:
    """Events that are still to be read."""
    return max(0, served.keeper.journal.head.seq - served.reading.position)


async def keep_reading(service: "Service", every: float) -> None:
    """Read the journal for trials, a little at a time, as long as the service runs."""
    while True:
        await asyncio.sleep(every)
        for served in list(service.agents.values()):
            if is_read(served):
                async with service.one_reading:
                    with contextlib.suppress(MeleeError):
                        if await asyncio.to_thread(read_some, served):
                            await asyncio.to_thread(judge, served)
