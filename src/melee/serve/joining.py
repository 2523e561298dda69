"""How agents join a service: at its start, by a request, or since another service has made them."""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from melee.agent import Agent
from melee.agent.opening import reopen
from melee.errors import InputError, shown
from melee.journal.postgres import Postgres
from melee.journal.snapshots import check_agent
from melee.serve import trying
from melee.serve.refusals import Refusal
from melee.serve.served import Served
from melee.serve.sharing import NodeKeeper, Sharing

if TYPE_CHECKING:
    from melee.serve.service import Service


def open_all(service: "Service", parameters: dict[str, dict[str, Any]]) -> None:
    """Go on with all agents that are there, and make those that are not; in `opening`."""
    names = [*dict.fromkeys((*service.journal.store.agents(), *parameters))]
    if len(names) > service.max_agents:
        raise InputError(f"there are {len(names)} agents; expected at most {service.max_agents}")
    for name in names:
        own = service.journal.another(name)
        given = parameters.get(name)
        try:
            agent = reopen(own) if given is None else Agent(**given, journal=own)
        except InputError as error:
            raise InputError(f"agent {shown(name)}: {error}") from None
        service.take(name, agent)


def opening(service: "Service", *, patient: bool = False) -> AbstractContextManager[Any]:
    """A block in which no other service makes agents; who is patient waits for it at any length."""
    store = service.journal.store
    return store.opening(patient=patient) if isinstance(store, Postgres) else nullcontext()


def take(service: "Service", name: str, agent: Agent) -> Served:
    """Have an agent be one of the service's."""
    keeper = agent._keeper
    assert keeper is not None
    keeper.waits = False
    served = Served(name, agent, keeper)
    if service.sharing is not None:
        share(served, service.sharing)
    service.agents = {**service.agents, name: served}
    return served


def leave(service: "Service", name: str) -> None:
    """Let an agent go that could not be kept."""
    service.agents = {own: served for own, served in service.agents.items() if own != name}


def share(served: Served, sharing: Sharing) -> None:
    """Have an agent change in turns only."""
    before = served.keeper
    keeper = NodeKeeper(served.agent, before.journal, before.began, sharing)
    keeper._since = before._since
    served.agent._hold(keeper)
    served.keeper = keeper


def adopt(service: "Service", name: str) -> None:
    """Take in an agent that another service has made, and know of the trials there are now."""
    if name not in service.agents:
        service.take(name, reopen(service.journal.another(name), note=False))
    for served in service.agents.values():
        trying.look_back(served)


async def create(service: "Service", name: str, parameters: dict[str, Any]) -> tuple[bool, Served]:
    """A new agent, or the one that is there with the same parameters; whether it is new."""
    async with service.one_change:
        there = service.agents.get(name)
        if there is not None:
            made = await asyncio.to_thread(lambda: Agent(**parameters)._parameters())
            if made != there.agent._parameters():
                raise Refusal(
                    409, f"there is an agent {shown(name)} with other parameters; name another"
                )
            return False, there
        check_agent(name)
        if len(service.agents) >= service.max_agents:
            raise Refusal(
                409, f"there are {len(service.agents)} agents already, and no more are allowed"
            )
        if service.turns is not None:
            created: tuple[bool, Served] = await service.turns.between(
                lambda: _create(service, name, parameters)
            )
            return created
        own = service.journal.another(name)
        agent = await asyncio.to_thread(lambda: Agent(**parameters, journal=own))
        return True, service.take(name, agent)


def _create(service: "Service", name: str, parameters: dict[str, Any]) -> tuple[bool, Served]:
    """The same in a journal that others share, who may have made it meanwhile."""
    with opening(service):
        is_new = not service.journal.store.has(name)
        agent = Agent(**parameters, journal=service.journal.another(name))
        return is_new, service.take(name, agent)
