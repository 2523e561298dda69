"""Callers of a service with several processes, some of which are killed meanwhile."""

import asyncio
import random
from pathlib import Path

from melee import Agent
from melee.client import AsyncClient, ServiceError
from melee.journal import verify
from tests.journals import reading, straight


def children(pid: int) -> dict[str, list[int]]:
    """Processes that a process has started: their numbers by what they are for."""
    found: dict[str, list[int]] = {"learner": [], "worker": []}
    for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            command = Path(f"/proc/{one}/cmdline").read_bytes().decode().split("\0")
        except OSError:  # it has just ended
            continue
        for kind, numbers in found.items():
            if f"melee.serve.{kind}" in command:
                numbers.append(int(one))
    return found


def everybody(pid: int) -> list[int]:
    """The numbers of all of them."""
    return [one for some in children(pid).values() for one in some]


def kept_in(journal):
    """The actions and the rewards of decisions by their ids; a whole journal has each once."""
    assert list(verify(journal)) == []
    decisions, rewards = {}, {}
    for event in journal.events():
        if event.kind == "decision":
            assert event.id not in decisions
            labels = journal.offer(event.content["offer"]).labels
            decisions[event.id] = labels[event.content["action"]]
        elif event.kind == "reward":
            assert event.id not in rewards
            rewards[event.id] = event.content["reward"]
    return decisions, rewards


class Crowd:
    """Callers who decide and reward, and what they were told."""

    def __init__(self, seed=0):
        self.decisions, self.rewards, self.refused = {}, {}, []
        self._chance = random.Random(seed)

    async def run(self, urls, n_pairs, n_callers=32, *, beside=None, attempts=60):
        """Call until so many pairs are done, or something beside it ends."""
        left = iter(range(n_pairs))
        clients = [
            AsyncClient(url, connections=n_callers, attempts=attempts, timeout=30.0) for url in urls
        ]

        async def call():
            for i in left:
                context = {"x": i % 7, "device": self._chance.choice(("phone", "desk"))}
                try:
                    made = await self._chance.choice(clients).act(context)
                    assert made.id not in self.decisions, "an id was issued twice"
                    self.decisions[made.id] = made.action
                    reward = i % 8 / 8
                    await self._chance.choice(clients).learn(made, reward)
                    self.rewards[made.id] = reward
                except ServiceError as error:
                    self.refused.append(str(error))

        calls = [asyncio.create_task(call()) for _ in range(n_callers)]
        if beside is not None:
            await beside
            for _ in left:  # nobody begins another pair
                pass
        await asyncio.gather(*calls)
        for one in clients:
            await one.close()

    def check(self, place):
        """All that was acknowledged is in the journal, once, and makes the model that is there."""
        journal = reading(place)
        decisions, rewards = kept_in(journal)
        lost = {id for id, action in self.decisions.items() if decisions.get(id) != action}
        lost |= {id for id, reward in self.rewards.items() if rewards.get(id) != reward}
        assert not lost
        snapshot = journal.snapshots()[0]
        assert snapshot.head == journal.head
        recovered = Agent.from_bytes(journal.read_snapshot(snapshot))
        alone = straight(journal)
        assert recovered.fingerprint == alone.fingerprint
        assert alone.n_learned_ == len(rewards)
        journal.close()
