"""How much a service takes: pairs of a decision and its reward, from many callers at once."""

import asyncio
import random
import time
from dataclasses import dataclass, field

from melee.client.asynchronous import AsyncClient
from melee.client.calls import ServiceError

SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
"""Of which the times are told."""


@dataclass
class Load:
    """What came of it.

    Attributes
    ----------
    n_pairs, seconds
        How many decisions were made and rewarded, and in what time.
    n_failed
        Pairs of which a request was refused or not answered, after all attempts.
    decisions, rewards
        How long each answer took, in seconds.
    error
        What the last of those that failed said.
    """

    n_pairs: int = 0
    seconds: float = 0.0
    n_failed: int = 0
    decisions: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    error: str = ""

    def lines(self) -> list[str]:
        """For people."""
        rate = self.n_pairs / self.seconds if self.seconds else 0.0
        found = [
            f"{self.n_pairs:,} decisions and rewards in {self.seconds:.1f} s: {rate:,.0f} pairs a "
            f"second; {self.n_failed:,} failed"
        ]
        for name, times in (("decision", self.decisions), ("reward", self.rewards)):
            parts = [f"{_name(share)} {percentile(times, share) * 1000:.1f}" for share in SHARES]
            found.append(f"{name:8}  {'  '.join(parts)} ms")
        return [*found, f"the last that failed: {self.error}"] if self.error else found


def percentile(times: list[float], share: float) -> float:
    """The time that so many of all were not longer than.

    >>> percentile([0.3, 0.1, 0.2], 0.5)
    0.2
    """
    if not times:
        return 0.0
    ordered = sorted(times)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _name(share: float) -> str:
    return "max" if share == 1.0 else f"p{share * 100:g}"


async def load(client: AsyncClient, *, n_callers: int, n_pairs: int, seed: int = 0) -> Load:
    """Decide and reward; each caller waits for its answers, as a page does.

    Parameters
    ----------
    client
        Of the service; with as many connections as there are callers.
    n_callers, n_pairs
        Callers at once, and pairs of all of them together.
    seed
        Of the contexts and the rewards.
    """
    found = Load()
    left = iter(range(n_pairs))
    began = time.perf_counter()

    async def call(number: int) -> None:
        chance = random.Random(1000 * seed + number)
        for _ in left:
            context = {
                "age": chance.randrange(18, 90),
                "hour": chance.randrange(24),
                "device": chance.choice(("phone", "desk", "tablet")),
            }
            try:
                start = time.perf_counter()
                decision = await client.decide(context)
                middle = time.perf_counter()
                await client.reward(decision, float(chance.random() < 0.3))
                end = time.perf_counter()
            except ServiceError as error:
                found.n_failed += 1
                found.error = str(error)
                continue
            found.n_pairs += 1
            found.decisions.append(middle - start)
            found.rewards.append(end - middle)

    async with asyncio.TaskGroup() as group:
        for number in range(n_callers):
            group.create_task(call(number))
    found.seconds = time.perf_counter() - began
    return found
