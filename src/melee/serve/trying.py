"""Trials of a service's agents: who is drawn into which, whose decision is whose, how they do."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from melee.agent import Agent
from melee.agent.ids import unique_prefix
from melee.agent.trials import Trial, acted, agent_name, check_trial, draw
from melee.errors import InputError, MeleeError, shown
from melee.explorers import parse
from melee.journal.commits import Ticket
from melee.serve.ids import is_taken
from melee.serve.refusals import Refusal
from melee.serve.served import Served
from melee.serve.sharing import Change

if TYPE_CHECKING:
    from melee.serve.service import Service
    from melee.trials.beginning import Beginning

SOME = 1000
"""Events that are read for trials at a time, beside all else."""
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


def owners(service: "Service", served: Served, ids: Sequence[str]) -> dict[str, Served]:
    """Whose decisions they are, of ids that are taken."""
    found = ((id, owner(service, served, id)) for id in ids)
    return {id: mine for id, mine in found if is_taken(mine, id)}


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
    if served.trials and id is not None and is_taken(mine := owner(service, served, id), id):
        return mine, id, {}  # asked again, or by mistake
    if not _are_drawn(served):
        return served, id, {} if unit is None else {"unit": unit}
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


class _Change(Change):
    """A trial that begins, or gets another share.

    Parameters
    ----------
    service, served
        Where, and beside whom.
    name, explorer, share
        As they were given; the explorer may be left out where the trial is there.
    """

    def __init__(
        self, service: "Service", served: Served, name: Any, explorer: Any, share: Any
    ) -> None:
        self.service, self.served = service, served
        self.name, self.explorer, self.share = name, explorer, share
        self._beginning: Beginning | None = None
        self._has_joined = False

    def check(self) -> Trial:
        """The trial, by what there is now; refuses what cannot be."""
        from melee.trials.trials import checked

        agents, agent = self.service.agents, self.served.agent
        known = agent._trials.get(self.name)
        if known is not None and self.explorer is None:
            self.explorer = known.explorer
        trial = check_trial(self.name, self.explorer, self.share, agent._trials.values())
        own = agent_name(self.served.name, self.name)
        if own in agents and self.name not in self.served.trials:
            raise Refusal(409, f"there is an agent {own} already; give the trial another name")
        checked(agent, self._other, self.name, self.explorer, self.share)
        if trial.share > 0.0 and self._other is None and len(agents) >= self.service.max_agents:
            raise Refusal(409, f"there are {len(agents)} agents, and no more are allowed")
        return trial

    @property
    def _other(self) -> Agent | None:
        there = self.service.agents.get(agent_name(self.served.name, self.name))
        return None if there is None else there.agent

    def read(self) -> None:
        """Make the agent of a trial that acts, if there is none; it is read beside all else."""
        from melee.trials.beginning import Beginning

        trial = self.check()
        if trial.share > 0.0 and self._other is None:
            self._beginning = Beginning(self.served.keeper, trial, self._join)
            self._beginning.read()

    def _join(self, agent: Agent) -> None:
        self._has_joined = True
        self.service.take(agent_name(self.served.name, self.name), agent)
        self.served.trials.append(self.name)

    def note(self) -> Ticket:
        """Note it, by what trials there are now; what there is to wait for."""
        from melee.trials.trials import change

        self.check()
        keeper, given = self.served.keeper, (self.name, self.explorer, self.share)
        change(keeper, self._other, *given, self._beginning)
        return keeper.latest

    def undo(self) -> None:
        """Let an agent go again that could not be kept."""
        if self._has_joined:
            self.service.leave(agent_name(self.served.name, self.name))
            self.served.trials = [name for name in self.served.trials if name != self.name]


def begin_at_once(
    service: "Service", served: Served, name: str, explorer: str, share: float
) -> None:
    """Begin a trial, go on with it, or give it another share, before anybody is answered."""
    made = _Try(service, served, name, explorer, share)
    made.read()
    service.alone_at_once(made)


class _Try(_Change):
    """The same by how a service is started.

    Where others serve, too, that says nothing about the share of a trial that they have.
    """

    def check(self) -> Trial:
        """The trial, by what there is now; refuses what cannot be."""
        known = self.served.agent._trials.get(self.name)
        trial = super().check()
        if self.service.sharing is not None and known is not None and known.share != trial.share:
            raise InputError(
                f"--try gives {self.name} a share of {trial.share:g}, and the services that share "
                f"this journal give it {known.share:g}; give that, or leave it out, and change the "
                f"share for all of them: PUT /v1/trials/{self.name}"
            )
        return trial


async def change(
    service: "Service", served: Served, name: str, explorer: Any, share: Any
) -> dict[str, Any]:
    """Begin a trial, or give one another share."""
    async with service.one_change:
        await service.turn(served)
        made = _Change(service, served, name, explorer, share)
        trial = made.check()
        await asyncio.to_thread(made.read)
        await service.alone(made)
    return {"trial": name, "explorer": parse(trial.explorer).short_spec, "share": trial.share}


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
