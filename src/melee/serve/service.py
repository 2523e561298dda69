"""`Service`: the agents of a journal, and what can be asked of them."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from melee.agent import Agent, offering
from melee.agent.arguments import is_for_each
from melee.agent.explanation import Explanation
from melee.agent.keeping import GIVEN, Keeper, decision_of, explain_past, offered_in, reopen
from melee.checks import check_reward, is_unicode
from melee.contexts import Context, read_context
from melee.decision import Decision
from melee.errors import InputError, MeleeError, shown
from melee.journal import Event, Journal, events
from melee.journal.journal import is_shareable
from melee.journal.postgres import Postgres
from melee.journal.snapshots import check_agent, seq_of
from melee.labels import Label, label_to_json
from melee.serve import trying
from melee.serve.metrics import Requests, family
from melee.serve.refusals import Refusal
from melee.serve.syncing import Syncing
from melee.serve.turns import NodeKeeper, Turns
from melee.serve.watching import SLOW, Watch
from melee.trials.trials import Reading

MAX_AGENTS = 100
"""Agents in one service."""
RECENT = 10_000
"""Events that are read at the start, for the windows to show what was before."""
FEW, CHUNK = 1_000, 50
"""So many are read before the first request; of more, so many at a time, between requests."""
EVERY = 1.0
"""Seconds from one look for decisions whose time is over to the next."""
OLD = 10.0
"""Seconds since a look at the journal after which something is wrong."""
_log = logging.getLogger("melee.serve")


@dataclass
class Served:
    """One agent, what keeps its journal, and what happened of late."""

    name: str
    agent: Agent
    keeper: Keeper
    watch: Watch = field(default_factory=Watch)
    chosen: OrderedDict[str, Label] = field(default_factory=OrderedDict)  # of late, elsewhere
    trials: list[str] = field(default_factory=list)  # those that have agents of their own
    follows: bool = False  # whether callers' choices were followed
    compared: list[dict[str, Any]] = field(default_factory=list)  # what is known of trials

    def __post_init__(self) -> None:
        """Be ready to read what became of trials."""
        self.reading = Reading(self.keeper.journal)


class Service:
    """The agents of a journal; all of it in the thread of one event loop.

    A journal that other services share is written in turns (see `melee.serve.turns`).

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
        self._syncing: Syncing | None = None
        self._turns: Turns | None = None
        self._one_change = asyncio.Lock()
        self._one_replay = asyncio.Lock()
        self._one_reading = asyncio.Lock()
        self._judging: asyncio.Task[None] | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._past: Iterator[Event] = iter(())

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
        names = [*dict.fromkeys((*self.journal.store.agents(), *parameters))]
        if len(names) > self.max_agents:
            raise InputError(f"there are {len(names)} agents; expected at most {self.max_agents}")
        with self._opening():
            for name in names:
                own = self.journal.another(name)
                given = parameters.get(name)
                self._take(name, reopen(own) if given is None else Agent(**given, journal=own))
        self._look_back()
        for served in self.agents.values():
            trying.look_back(served)
        for name, (explorer, share) in (trials or {}).items():
            trying.begin_at_once(self, self.find("agent"), name, explorer, share)

    def _opening(self) -> Any:
        """A block in which no other service makes agents."""
        store = self.journal.store
        return store.opening() if isinstance(store, Postgres) else nullcontext()

    def _take(self, name: str, agent: Agent) -> Served:
        keeper = agent._keeper
        assert keeper is not None
        keeper.waits = False
        served = Served(name, agent, keeper)
        if self._turns is not None:
            self._share(served)
        self.agents = {**self.agents, name: served}
        return served

    def _share(self, served: Served) -> None:
        """Have an agent change in turns only."""
        assert self._turns is not None
        before = served.keeper
        keeper = NodeKeeper(served.agent, before.journal, before.began, self._turns)
        keeper._since = before._since
        served.agent._hold(keeper)
        served.keeper = keeper

    def _adopt(self, name: str) -> None:
        """Take in an agent that another service has made."""
        self._take(name, reopen(self.journal.another(name), note=False))
        for served in self.agents.values():
            trying.look_back(served)

    def _look_back(self) -> None:
        """Have windows show what happened before this process."""
        end = self.journal.head.seq
        first = max(self.journal.start.seq, end - RECENT)
        self._past = self.journal.store.rows(first, end)
        if end - first <= FEW:
            for event in self._past:
                self._see(event)

    async def _read_past(self) -> None:
        """The same while requests are answered, where there is much of it."""
        while some := await asyncio.to_thread(lambda: list(islice(self._past, CHUNK))):
            for event in some:
                self._see(event)
            await asyncio.sleep(0.0)

    def _see(self, event: Event) -> None:
        """Have windows show what was not asked for here."""
        served = self.agents.get(event.agent)
        if served is None or event.id is None:
            return
        if event.kind == events.DECISION:
            decision, decided = decision_of(event, self.journal)
            served.chosen[event.id] = decision.action
            if len(served.chosen) > RECENT:
                served.chosen.popitem(last=False)
            given = "given" in decided.about
            explored = not given and decided.pmf[decided.action] < max(decided.pmf)
            watch = served.watch
            watch.decided(decision.action, explored=explored, now=event.time, id=event.id)
            served.follows = served.follows or given
        elif event.kind == events.REWARD and event.id in served.chosen:
            label = served.chosen.pop(event.id)
            reward = event.content["reward"]
            served.watch.rewarded(label, reward, now=event.time, id=event.id)

    async def start(self) -> None:
        """Begin to answer."""
        if self.journal.is_shared:
            self._turns = Turns(self.journal, self._keepers, self._see, self._adopt)
            for served in self.agents.values():
                self._share(served)
        else:
            self._syncing = Syncing(self.journal)
        self._ticking = asyncio.create_task(self._tick())
        self._reading = asyncio.create_task(self._read_past())
        self._judging = asyncio.create_task(trying.keep_reading(self, EVERY))
        self.is_ready = True

    async def _tick(self) -> None:
        """Give up decisions whose time is over, also where nobody calls."""
        while True:
            await asyncio.sleep(EVERY)
            for served in self.agents.values():
                if served.agent.timeout is not None and (self._turns is None or self._turns.leads):
                    try:
                        await self._turn(served)
                        served.agent.give_up()
                        await self._on_disk(served)
                    except MeleeError as error:
                        _log.warning("%s: %s", served.name, error)

    async def stop(self) -> None:
        """Write what is queued, and a snapshot of every agent; let go of the journal."""
        self.is_ready = False
        for task in (self._ticking, self._reading, self._judging):
            if task is not None:
                task.cancel()
        async with self._one_reading:  # a thread that reads needs the journal
            pass
        if self._syncing is not None:
            await asyncio.to_thread(self._syncing.stop)
        if self._turns is not None:
            await self._turns.stop()
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

    def _keepers(self) -> dict[str, Keeper]:
        return {name: served.keeper for name, served in self.agents.items()}

    async def _turn(self, served: Served, ids: Sequence[Any] = ()) -> None:
        """Return where the agent is what the journal says, and may change; until the next `await`.

        Parameters
        ----------
        served
            The agent.
        ids
            Those that decisions are about to have.
        """
        if self._turns is None:
            with served.keeper:  # if something could not be kept, it is what the disk says again
                pass
        else:
            await self._turns.take([(served.name, id) for id in ids if _can_be_kept(id)])

    async def _on_disk(self, served: Served) -> None:
        """Return when all that an agent has done is on disk."""
        waiting = self._syncing or self._turns
        assert waiting is not None
        await waiting.wait(served.keeper.latest)

    def find(self, name: str) -> Served:
        """The agent of that name."""
        served = self.agents.get(name)
        if served is None:
            known = ", ".join(list(self.agents)[:20]) or "none yet"
            raise Refusal(404, f"there is no agent {shown(name)}; there are: {known}")
        return served

    # -- deciding ---------------------------------------------------------------------------------

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
        served, id, about = trying.drawn(self, served, id, unit)
        agent = served.agent
        await self._turn(served, [] if id is None else [id])
        try:
            with served.keeper.noting(**about):
                decision = agent.act(context, actions=actions, id=id)
        except InputError:
            if id is None or not self._is_taken(served, id):
                raise
            return await self._again(served, id, read_context(context), actions, explain=explain)
        offered = actions if agent.actions is None else None
        why = agent.explain(decision, actions=offered) if explain else None
        self._note(served, [decision])
        await self._on_disk(served)
        answer = to_json(decision)
        if why is not None:
            answer["explanation"] = explanation_to_json(why)
        return answer

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
        agent = served.agent
        await self._turn(served, [] if id is None else [id])
        try:
            decision = agent.follow(
                context, chosen, probability=probability, actions=actions, id=id
            )
        except InputError:
            if id is None or not self._is_taken(served, id):
                raise
            again = await self._again(served, id, read_context(context), actions)
            if again["policy"] != GIVEN or again["action"] != label_to_json(chosen):
                raise Refusal(409, f"id {shown(id)} is taken by another choice") from None
            return again
        served.follows = True
        self._note(served, [decision])
        await self._on_disk(served)
        return to_json(decision)

    async def rank(
        self, served: Served, context: Any, actions: Any, id: str | None, top: Any
    ) -> dict[str, Any]:
        """Several actions, best first; the same ones again for the same request and id."""
        await self._turn(served, [] if id is None else [f"{id}/1"])
        try:
            ranking = served.agent.act(context, actions=actions, id=id, top=top)
        except InputError:
            if id is None or not self._is_taken(served, f"{id}/1"):
                raise
            return await self._rank_again(served, id, read_context(context), actions, top)
        self._note(served, ranking.places)
        await self._on_disk(served)
        return {"id": ranking.id, "places": [to_json(place) for place in ranking.places]}

    async def _rank_again(
        self, served: Served, id: str, context: Context, actions: Any, top: Any
    ) -> dict[str, Any]:
        """The ranking that was made under an id, if this is the same request."""
        if actions is None and served.agent.actions is not None:
            actions = served.agent.actions_  # what a ranking is made of, if nothing is said
        first = await self._again(served, f"{id}/1", context, actions)
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

    async def decide_many(
        self,
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
        first = None if not ids or not isinstance(ids[0], str) else ids[0]
        served, _, about = trying.drawn(self, served, first, unit, many=True)
        return await self._decide_many(served, contexts, actions, ids, about)

    async def _decide_many(
        self,
        served: Served,
        contexts: list[Any],
        actions: Sequence[Label] | None,
        ids: list[Any] | None,
        about: dict[str, Any],
    ) -> list[dict[str, Any]]:
        agent = served.agent
        await self._turn(served, ids or ())
        taken = set() if ids is None else {id for id in ids if self._is_taken(served, id)}
        if ids is None or not taken or len(ids) != len(contexts) or len(set(ids)) != len(ids):
            with served.keeper.noting(**about):
                decisions = agent.act_many(contexts, actions=actions, ids=ids)
            self._note(served, decisions)
            await self._on_disk(served)
            return [to_json(decision) for decision in decisions]
        await self._on_disk(served)
        each = None
        own_ones = agent.actions is None or is_for_each(actions)
        if own_ones and isinstance(actions, list) and len(actions) == len(ids):
            each = dict(zip(ids, actions, strict=True))  # candidates of each, or open actions
        answers = {}
        for id, context in zip(ids, contexts, strict=True):
            if id in taken:
                own = each[id] if each is not None else actions
                answers[id] = await self._again(served, id, read_context(context), own)
        new = [i for i, id in enumerate(ids) if id not in taken]
        if new:
            fresh = [ids[i] for i in new]
            rest = [contexts[i] for i in new]
            own = actions
            if each is not None:
                left = [each[id] for id in fresh]
                own = None if all(some is None for some in left) else left  # None: all actions
            made = await self._decide_many(served, rest, own, fresh, about)
            answers |= dict(zip(fresh, made, strict=True))
        return [answers[id] for id in ids]

    def _note(self, served: Served, decisions: Sequence[Decision]) -> None:
        now = time.time()
        for decision in decisions:
            explored = decision.policy != GIVEN and decision.probability < max(
                decision.probabilities
            )
            served.watch.decided(decision.action, explored=explored, now=now, id=decision.id)
            _log.debug(
                "decision",
                extra={"agent": served.name, "id": decision.id, "action": decision.action},
            )

    def _is_taken(self, served: Served, id: Any) -> bool:
        if not isinstance(id, str) or not 0 < len(id) <= 200:
            return False
        if served.agent._pending.knows(id):
            return True
        if not _can_be_kept(id) or id in getattr(served.keeper, "free", ()):
            return False
        try:
            return served.keeper.journal.find(id) is not None
        except (UnicodeError, ValueError):  # no text that could be kept
            return False

    async def _again(
        self,
        served: Served,
        id: str,
        context: Context,
        actions: Any,
        *,
        explain: bool = False,
    ) -> dict[str, Any]:
        """The decision that was made under an id, if this is the same request."""
        await self._on_disk(served)
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
        answer = to_json(decision)
        if explain:
            answer["explanation"] = await self._replay(served, id)
        return answer

    async def look(self, served: Served, id: str, *, explain: bool = False) -> dict[str, Any]:
        """A decision of any time: what it was about, its reward, and why it was made."""
        served = trying.owner(self, served, id)
        if self._turns is None:
            await self._turn(served)
            await self._on_disk(served)
        journal = served.keeper.journal
        event = _found(journal, id)
        if event is None:
            raise Refusal(404, _unknown(served, id))
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
            answer["explanation"] = await self._replay(served, id)
        return answer

    async def _replay(self, served: Served, id: str) -> dict[str, Any] | None:
        """Why a decision was made, by the agent as it was; one at a time, beside all else."""
        async with self._one_replay:
            found = await asyncio.to_thread(explain_past, served.keeper.journal, id)
        return None if found is None else explanation_to_json(found)

    # -- rewards ----------------------------------------------------------------------------------

    async def reward(self, served: Served, rewards: list[tuple[str, float]]) -> dict[str, Any]:
        """Rewards of decisions, all or none; those that came before are not learned again."""
        if served.trials:
            return await self._reward_all(served, rewards)
        return await self._reward_own(served, rewards)

    async def _reward_all(self, served: Served, rewards: list[tuple[str, float]]) -> dict[str, Any]:
        """Rewards of decisions that the agent or its trials made."""
        groups = trying.by_owner(self, served, rewards)
        for member, group in groups:  # all are fine, or none is learned
            await self._turn(member)
            for id, given in group:
                self._waits(member, id, check_reward(given, member.agent._range))
        total = {"learned": 0, "repeated": 0}
        for member, group in groups:
            for name, n in (await self._reward_own(member, group)).items():
                total[name] += n
        return total

    async def _reward_own(self, served: Served, rewards: list[tuple[str, float]]) -> dict[str, Any]:
        agent, watch = served.agent, served.watch
        await self._turn(served)
        if agent.timeout is not None:
            agent.give_up()
        new: dict[str, float] = {}
        for id, given in rewards:
            number = check_reward(given, agent._range)
            if id in new and new[id] != number:
                raise Refusal(409, f"decision {shown(id)} has two rewards here; send the final one")
            if self._waits(served, id, number):
                new[id] = number
        waiting = agent._pending.waiting
        labels = {id: waiting[id].action for id in new}
        learned = 0
        if len(new) == 1:
            ((id, number),) = new.items()
            learned = int(agent.learn(id, number))
        elif new:
            learned = agent.learn_many(list(new), list(new.values()))
        now = time.time()
        for id, label in labels.items():
            watch.rewarded(label, new[id], now=now, id=id)
            _log.debug("reward", extra={"agent": served.name, "id": id, "reward": new[id]})
        await self._on_disk(served)
        return {"learned": learned, "repeated": len(rewards) - len(new)}

    def _waits(self, served: Served, id: str, reward: float) -> bool:
        """Whether a decision waits for its reward; False if it had this one before."""
        pending = served.agent._pending
        if id in pending.waiting:
            return True
        if id in pending.done:
            try:
                return not pending.repeats(id, reward)
            except InputError as error:
                raise Refusal(410 if pending.done[id] is None else 409, str(error)) from None
        journal = served.keeper.journal
        if _found(journal, id) is None:
            raise Refusal(404, _unknown(served, id))
        known = journal.find(id, events.REWARD)
        if known is None:
            raise Refusal(410, f"decision {shown(id)} was given up before its reward came")
        if known.content["reward"] != reward:
            raise Refusal(
                409,
                f"decision {shown(id)} has the reward {known.content['reward']:g} already, and now "
                f"gets {reward:g}; a decision is rewarded once: send the final reward only",
            )
        return False

    # -- agents -----------------------------------------------------------------------------------

    async def create(self, name: str, parameters: dict[str, Any]) -> tuple[bool, Served]:
        """A new agent, or the one that is there with the same parameters; whether it is new."""
        async with self._one_change:
            there = self.agents.get(name)
            if there is not None:
                made = await asyncio.to_thread(lambda: Agent(**parameters)._parameters())
                if made != there.agent._parameters():
                    raise Refusal(
                        409, f"there is an agent {shown(name)} with other parameters; name another"
                    )
                return False, there
            check_agent(name)
            if len(self.agents) >= self.max_agents:
                raise Refusal(
                    409, f"there are {len(self.agents)} agents already, and no more are allowed"
                )
            if self._turns is not None:
                created: tuple[bool, Served] = await self._turns.between(
                    lambda: self._create(name, parameters)
                )
                return created
            own = self.journal.another(name)
            agent = await asyncio.to_thread(lambda: Agent(**parameters, journal=own))
            return True, self._take(name, agent)

    def _create(self, name: str, parameters: dict[str, Any]) -> tuple[bool, Served]:
        """The same in a journal that others share, who may have made it meanwhile."""
        with self._opening():
            is_new = not self.journal.store.has(name)
            return is_new, self._take(name, Agent(**parameters, journal=self.journal.another(name)))

    async def change_actions(
        self, served: Served, added: list[Label], removed: list[Label]
    ) -> list[Label]:
        """Have actions come and go; those that are there, or are not, already are no error."""
        agent = served.agent
        both = [label for label in added if label in removed]
        if both:
            raise InputError(f"action {shown(both[0])} is to be added and removed; choose one")
        for member in trying.family(self, served):
            await self._turn(member)
            now = member.agent.actions_
            new = [label for label in added if label not in now]
            gone = [label for label in removed if label in now]
            if new:
                member.agent.add_actions(new)
            if gone:
                member.agent.remove_actions(gone)
            await self._on_disk(member)
        return agent.actions_

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

    async def roll_back(self, served: Served, to: Any, again: Any) -> dict[str, Any]:
        """Go back to what was known after an event, beside all else as far as that goes."""
        trying.check_alone(self, "stop them, and go back by: melee journal rollback")
        async with self._one_change:
            number = seq_of(to) if isinstance(to, str) else to
            await asyncio.to_thread(served.keeper.roll_back, number, again)
        await self._on_disk(served)
        return {"event": served.keeper.latest.seq, "learned": served.agent.n_learned_}

    async def snapshot(self, served: Served) -> int:
        """Write a snapshot now; the number of the last event in it."""
        return await asyncio.to_thread(served.keeper.snapshot)

    # -- watching ---------------------------------------------------------------------------------

    def about(self, served: Served) -> dict[str, Any]:
        """An agent in a few words."""
        agent = served.agent
        return {
            "agent": served.name,
            "policy": agent.policy_,
            "actions": [label_to_json(label) for label in agent.actions_],
            "learned": agent.n_learned_,
            "waiting": agent.n_pending_,
            "version": agent._knowledge.version,
        }

    def status(self, served: Served) -> dict[str, Any]:
        """All that one may want to watch of an agent."""
        agent, watch, now = served.agent, served.watch, time.time()
        labels = agent.actions_
        diagnostics = {
            name: float(value)
            for name, value in agent.diagnostics().items()
            if isinstance(value, int | float | np.number) and np.isfinite(value)
        }
        return {
            **self.about(served),
            "parameters": agent._parameters(),
            "compiled": agent.ready,
            "last_reward": watch.last_reward,
            "time": now,
            "event": self.last_event,
            "model": self.freshness(),
            "diagnostics": diagnostics,
            "alarms": self.alarms(served, now),
            "trials": served.compared if trying.is_read(served) else [],
            **watch.to_json(labels, now),
        }

    @property
    def last_event(self) -> int:
        """The number of the last event; of a shared journal, as of the last look."""
        return self.journal.head.seq if self._turns is None else self._turns.last

    @property
    def can_decide(self) -> bool:
        """Whether it can decide, and keep what it decides."""
        is_there = self.freshness()["seconds"] <= OLD
        return self.is_ready and is_there and not self.journal.has_failed

    def freshness(self) -> dict[str, Any]:
        """How old models are: what the last look at the journal has brought, and when that was.

        No decision is by an old one: it waits for all events before it. What is shown, and who
        reads without deciding, is as of that look.
        """
        if self._turns is None:
            return {"behind": 0, "seconds": 0.0, "lease": True}
        turns = self._turns
        return {"behind": turns.n_behind, "seconds": turns.age, "lease": turns.leads}

    def alarms(self, served: Served, now: float) -> list[str]:
        """What is wrong, in words."""
        agent = served.agent
        said = []
        if self.journal.has_failed:
            said.append("The journal could not be written: make room on its disk, or mend it.")
        age = self.freshness()["seconds"]
        if age > OLD:
            said.append(
                f"The journal could not be reached for {age:.0f} seconds: nothing is decided until "
                "its database answers."
            )
        said += served.watch.alarms(agent.actions_, now)
        if agent.n_pending_ > 0.9 * agent.max_pending:
            said.append(
                f"{agent.n_pending_:,} decisions wait for rewards, and {agent.max_pending:,} may: "
                "the oldest are given up. Set a timeout, or report rewards earlier."
            )
        slow = self.requests.quantile("/v1/decisions", 0.99)
        if slow is not None and slow > SLOW:
            said.append(
                f"One decision of 100 takes more than {SLOW * 1000:g} ms: see "
                "melee_http_request_duration_seconds, and the load of the machine."
            )
        return said

    def metrics(self) -> str:
        """Everything that Prometheus may want."""
        lines, fresh = list(self.requests.lines()), self.freshness()

        def each(name: str, kind: str, about: str, value: Any) -> None:
            rows = [({"agent": served.name}, value(served)) for served in self.agents.values()]
            lines.extend(family(name, kind, about, rows))

        each("melee_decisions_total", "counter", "Decisions.", lambda s: s.watch.n_decided)
        each("melee_rewards_total", "counter", "Rewards.", lambda s: s.watch.rewards.n)
        each("melee_rewards_sum", "gauge", "Their sum.", lambda s: s.watch.rewards.total)
        each(
            "melee_given_up_total",
            "counter",
            "Decisions that were given up.",
            lambda s: s.agent._pending.n_given_up,
        )
        each("melee_pending_decisions", "gauge", "They wait.", lambda s: s.agent.n_pending_)
        each("melee_learned_rounds_total", "counter", "Learned.", lambda s: s.agent.n_learned_)
        each("melee_alarms", "gauge", "Alarms.", lambda s: len(self.alarms(s, time.time())))
        for name, kind, about, value in (
            ("melee_journal_events", "gauge", "The last event's number.", self.last_event),
            ("melee_journal_syncs_total", "counter", "Syncs.", self.journal.n_syncs),
            ("melee_journal_failures_total", "counter", "Failures.", self.journal.n_failures),
            ("melee_model_behind_events", "gauge", "Events of others at a look.", fresh["behind"]),
            ("melee_model_age_seconds", "gauge", "Since the last look.", fresh["seconds"]),
            ("melee_lease_held", "gauge", "Whether it writes snapshots.", int(fresh["lease"])),
            ("melee_workers", "gauge", "Processes that take requests.", self.n_workers),
            ("melee_start_time_seconds", "gauge", "When it was started.", self.started),
        ):
            lines.extend(family(name, kind, about, [({}, value)]))
        return "\n".join(lines) + "\n"


def open_journal(address: str, keep_days: float | None = None) -> Journal:
    """The journal of a service: a directory for itself, or a database with others."""
    return Journal(address, keep_days=keep_days, shared=is_shareable(address))


def to_json(decision: Decision) -> dict[str, Any]:
    """A decision as it is answered."""
    return {
        "id": decision.id,
        "action": label_to_json(decision.action),
        "probability": decision.probability,
        "policy": decision.policy,
        "version": decision.version,
        "actions": [label_to_json(label) for label in decision.actions],
        "probabilities": decision.probabilities,
    }


def explanation_to_json(why: Explanation) -> dict[str, Any]:
    """An explanation as it is answered."""
    return {
        "policy": why.policy,
        "actions": [
            {
                "action": label_to_json(explained.action),
                "probability": explained.probability,
                "prediction": explained.prediction,
                "uncertainty": explained.uncertainty,
                "bonus": explained.bonus,
                "features": [part._asdict() for part in explained.features],
            }
            for explained in why.actions
        ],
    }


def _is_same(context: Context, other: Context) -> bool:
    if isinstance(context, dict) or isinstance(other, dict):
        return isinstance(context, dict) and isinstance(other, dict) and context == other
    return np.array_equal(context, other)


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


def _can_be_kept(id: Any) -> bool:
    """Whether an id is a text that any journal holds."""
    return isinstance(id, str) and 0 < len(id) <= 200 and "\0" not in id and is_unicode(id)


def _found(journal: Journal, id: str) -> Event | None:
    if not _can_be_kept(id):
        return None
    try:
        return journal.find(id)
    except (UnicodeError, ValueError):  # no text that could be kept
        return None


def _unknown(served: Served, id: str) -> str:
    return (
        f"decision {shown(id)} is not known: agent {served.name} did not make it, or it was "
        "dropped from the journal since"
    )
