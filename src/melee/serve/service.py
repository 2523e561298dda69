"""`Service`: the agents of a journal, and what can be asked of them."""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from melee.agent import Agent
from melee.agent.keeping import Keeper
from melee.errors import MeleeError, shown
from melee.journal import Event, Journal
from melee.journal.journal import is_shareable
from melee.labels import Label
from melee.serve import changing, deciding, joining, noting, past, rewarding, status, trying
from melee.serve.ids import can_be_kept
from melee.serve.metrics import Requests
from melee.serve.refusals import Refusal
from melee.serve.served import Served
from melee.serve.sharing import Change, Sharing
from melee.serve.syncing import Syncing
from melee.serve.turns import Turns

MAX_AGENTS = 100
"""Agents in one service."""
EVERY = 1.0
"""Seconds from one look for decisions whose time is over to the next."""
_log = logging.getLogger("melee.serve")


class Service:
    """The agents of a journal; all of it in the thread of one event loop.

    A journal that other services share is written in turns (see `melee.serve.sharing`).

    Parameters
    ----------
    journal
        Where everything is kept. It belongs to the service from now on.
    max_agents
        How many agents there may be.
    """

    def __init__(self, journal: Journal, *, max_agents: int = MAX_AGENTS) -> None:
        self.journal = journal
        self.max_agents = max_agents
        self.agents: dict[str, Served] = {}
        self.requests = Requests()
        self.n_workers = 1
        self.started = time.time()
        self.is_ready = False
        self.one_change = asyncio.Lock()
        self.one_replay = asyncio.Lock()
        self.one_reading = asyncio.Lock()
        self.sharing: Sharing | None = None  # where others write, too
        self.turns: Turns | None = None
        self._syncing: Syncing | None = None  # where nobody else does
        self._past: Iterator[Event] = iter(())
        self._tasks: list[asyncio.Task[None]] = []

    # -- life -------------------------------------------------------------------------------------

    def open(
        self,
        parameters: dict[str, dict[str, Any]],
        trials: dict[str, tuple[str, float]] | None = None,
    ) -> None:
        """Go on with all agents that are there, and make those that are not.

        Parameters
        ----------
        parameters
            Those of some agents, by name; one that is there must have the same.
        trials
            Of the agent called `agent`: explorers and shares, by name.
        """
        with joining.opening(self, patient=True):
            joining.open_all(self, parameters)
            if self.journal.is_shared:
                self.sharing = Sharing(self.journal, self._keepers, partial(joining.adopt, self))
                for served in self.agents.values():
                    joining.share(served, self.sharing)
        self._past = noting.look_back(self)
        for served in self.agents.values():
            trying.look_back(served)
        for name, (explorer, share) in (trials or {}).items():
            trying.begin_at_once(self, self.find("agent"), name, explorer, share)

    async def start(self) -> None:
        """Begin to answer."""
        if self.sharing is not None:
            self.turns = Turns(self.sharing, partial(noting.seen, self))
        else:
            self._syncing = Syncing(self.journal)
        self._tasks = [
            asyncio.create_task(self._tick()),
            asyncio.create_task(noting.read_on(self, self._past)),
            asyncio.create_task(trying.keep_reading(self, EVERY)),
        ]
        self.is_ready = True

    def _keepers(self) -> dict[str, Keeper]:
        return {name: served.keeper for name, served in self.agents.items()}

    async def _tick(self) -> None:
        """Give up decisions whose time is over, also where nobody calls."""
        while True:
            await asyncio.sleep(EVERY)
            for served in self.agents.values():
                if served.agent.timeout is not None and self.leads:
                    try:
                        await self.turn(served)
                        served.agent.give_up()
                        await self.on_disk(served)
                    except MeleeError as error:
                        _log.warning("%s: %s", served.name, error)

    @property
    def leads(self) -> bool:
        """Whether it does what has to be done once, whichever services share the journal."""
        return self.sharing is None or self.sharing.leads

    async def stop(self) -> None:
        """Write what is queued, and a snapshot of every agent; let go of the journal."""
        self.is_ready = False
        for task in self._tasks:
            task.cancel()
        async with self.one_reading:  # a thread that reads needs the journal
            pass
        if self._syncing is not None:
            await asyncio.to_thread(self._syncing.stop)
        if self.turns is not None:
            await self.turns.stop()
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Write a snapshot of every agent, and let go of the journal."""
        try:
            for served in self.agents.values():
                try:
                    served.keeper.finish()
                except MeleeError as error:  # nothing is lost: the next start takes longer
                    _log.warning("%s: no snapshot was written (%s)", served.name, error)
        finally:
            self.journal.close()

    # -- the journal ------------------------------------------------------------------------------

    async def turn(self, served: Served, ids: Sequence[Any] = ()) -> None:
        """Return where the agent is what the journal says, and may change; until the next `await`.

        So are, and may, those of its trials.

        Parameters
        ----------
        served
            The agent.
        ids
            Those that decisions are about to have.
        """
        family = trying.family(self, served)
        if self.turns is None:
            for member in family:
                with member.keeper:  # if something could not be kept, it is what the disk says
                    pass
        else:
            kept = [id for id in ids if can_be_kept(id)]
            await self.turns.take([(member.name, id) for member in family for id in kept])

    async def on_disk(self, served: Served) -> None:
        """Return when all that an agent has done is on disk."""
        waiting = self._syncing or self.turns
        assert waiting is not None
        await waiting.wait(served.keeper.latest)

    async def alone(self, change: Change) -> None:
        """Have an agent changed in a thread, where it is what the journal says, and be on disk."""
        if self.turns is None:
            await asyncio.to_thread(self.alone_at_once, change)
        else:
            await self.turns.alone(change)

    def alone_at_once(self, change: Change) -> None:
        """The same in this thread, which is that of a job or of the start."""
        if self.sharing is None:
            change.wait(self.journal, change.note())
        else:
            self.sharing.alone(change)

    @property
    def last_event(self) -> int:
        """The number of the last event; of a shared journal, as of the last look."""
        return self.journal.head.seq if self.sharing is None else self.sharing.last

    def freshness(self) -> dict[str, Any]:
        """How old models are: what the last look at the journal has brought, and when that was.

        No decision is by an old one: it waits for all events before it. What is shown, and who
        reads without deciding, is as of that look.
        """
        if self.sharing is None:
            return {"behind": 0, "seconds": 0.0, "lease": True}
        sharing = self.sharing
        return {"behind": sharing.n_behind, "seconds": sharing.age, "lease": sharing.leads}

    # -- agents -----------------------------------------------------------------------------------

    def find(self, name: str) -> Served:
        """The agent of that name."""
        served = self.agents.get(name)
        if served is None:
            known = ", ".join(list(self.agents)[:20]) or "none yet"
            raise Refusal(404, f"there is no agent {shown(name)}; there are: {known}")
        return served

    def take(self, name: str, agent: Agent) -> Served:
        """Have an agent be one of these."""
        return joining.take(self, name, agent)

    def leave(self, name: str) -> None:
        """Let an agent go that could not be kept."""
        joining.leave(self, name)

    async def create(self, name: str, parameters: dict[str, Any]) -> tuple[bool, Served]:
        """A new agent, or the one that is there with the same parameters; whether it is new."""
        return await joining.create(self, name, parameters)

    async def change_actions(
        self, served: Served, added: list[Label], removed: list[Label]
    ) -> list[Label]:
        """Have actions come and go; those that are there, or are not, already are no error."""
        return await changing.change_actions(self, served, added, removed)

    async def roll_back(self, served: Served, to: Any, relearn_after: Any) -> dict[str, Any]:
        """Go back to what was known after an event, beside all else as far as that goes."""
        return await changing.roll_back(self, served, to, relearn_after)

    async def snapshot(self, served: Served) -> int:
        """Write a snapshot now; the number of the last event in it."""
        return await asyncio.to_thread(served.keeper.snapshot)

    # -- decisions and rewards --------------------------------------------------------------------

    async def decide(
        self,
        served: Served,
        context: Any,
        actions: Any = None,
        id: str | None = None,
        *,
        explain: bool = False,
        unit: str | None = None,
    ) -> dict[str, Any]:
        """One decision; the same one again for the same request under the same id."""
        return await deciding.decide(self, served, context, actions, id, explain=explain, unit=unit)

    async def follow(
        self,
        served: Served,
        context: Any,
        chosen: Label,
        probability: Any = None,
        actions: Sequence[Label] | None = None,
        id: str | None = None,
    ) -> dict[str, Any]:
        """A choice of the caller's, repeated; it is learned from when its reward comes."""
        return await deciding.follow(self, served, context, chosen, probability, actions, id)

    async def rank(
        self, served: Served, context: Any, actions: Any, id: str | None, top: Any
    ) -> dict[str, Any]:
        """Several actions, best first; the same ones again for the same request and id."""
        return await deciding.rank(self, served, context, actions, id, top)

    async def decide_many(
        self,
        served: Served,
        contexts: list[Any],
        actions: Any = None,
        ids: list[Any] | None = None,
        *,
        unit: str | None = None,
    ) -> list[dict[str, Any]]:
        """Many decisions, all or none; those that were made before are answered again."""
        return await deciding.decide_many(self, served, contexts, actions, ids, unit=unit)

    async def reward(self, served: Served, rewards: list[tuple[str, float]]) -> dict[str, Any]:
        """Rewards of decisions, all or none; those that came before are not learned again."""
        return await rewarding.reward(self, served, rewards)

    async def look(self, served: Served, id: str, *, explain: bool = False) -> dict[str, Any]:
        """A decision of any time: what it was about, its reward, and why it was made."""
        return await past.look(self, served, id, explain=explain)

    # -- trials -----------------------------------------------------------------------------------

    async def compare(self, served: Served) -> dict[str, Any]:
        """What is known of an agent's trials."""
        return await trying.compare(self, served)

    async def change_trial(
        self, served: Served, name: str, explorer: Any, share: float
    ) -> dict[str, Any]:
        """Begin a trial, or give one another share."""
        return await trying.change(self, served, name, explorer, share)

    async def end_trial(self, served: Served, name: str) -> None:
        """End a trial."""
        await trying.stop(self, served, name)

    # -- watching ---------------------------------------------------------------------------------

    def about(self, served: Served) -> dict[str, Any]:
        """An agent in a few words."""
        return status.about(served)

    def status(self, served: Served) -> dict[str, Any]:
        """All that one may want to watch of an agent."""
        return status.status(self, served)

    @property
    def can_decide(self) -> bool:
        """Whether it can decide, and keep what it decides."""
        return status.can_decide(self)

    def metrics(self) -> str:
        """Everything that Prometheus may want."""
        return status.metrics(self)


def open_journal(address: str, **keep: Any) -> Journal:
    """The journal of a service: a directory for itself, or a database with others.

    `keep_days` and `keep_bytes` are as of `Journal`.
    """
    return Journal(address, **keep, shared=is_shareable(address))
