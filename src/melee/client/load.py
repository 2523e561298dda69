"""How much a service takes: pairs of a decision and its reward, from many callers at once."""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from melee.client.asynchronous import AsyncClient
from melee.client.calls import ServiceError
from melee.errors import InputError
from melee.history.jsonl import read_object

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


def catalogue(n_items: int = 1000, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Items of a shop that does not exist, each with its features, to be candidates.

    >>> catalogue(1)
    {'item 0': {'price': 84.6, 'age': 215, 'kind': 'book'}}
    """
    chance = random.Random(seed)
    return {
        f"item {i}": {
            "price": round(chance.uniform(1.0, 100.0), 2),
            "age": chance.randrange(365),
            "kind": chance.choice(("book", "film", "game", "song")),
        }
        for i in range(n_items)
    }


def read_catalogue(path: Path) -> dict[str, Any]:
    """Candidates from a file: a JSON object of labels and features, as a request has them."""
    expected = "an object of labels and features, as a request for a decision has them"
    found = read_object(path, expected)
    if not found:
        raise InputError(f"{path}: it holds {{}}; expected {expected}")
    return found


async def load(
    client: AsyncClient,
    *,
    n_callers: int,
    n_pairs: int,
    seed: int = 0,
    n_candidates: int = 0,
    items: Mapping[str, Any] | None = None,
) -> Load:
    """Decide and reward; each caller waits for its answers, as a page does.

    Parameters
    ----------
    client
        Of the service; with as many connections as there are callers.
    n_callers, n_pairs
        Callers at once, and pairs of all of them together.
    seed
        Of the contexts, the candidates and the rewards.
    n_candidates
        How many come with each question; 0 where the agent has actions of its own.
    items
        Labels and features, of which candidates are drawn; by default a `catalogue`.
    """
    if n_candidates:
        items = catalogue(max(1000, n_candidates), seed) if items is None else items
        if not 0 < n_candidates <= len(items):
            raise InputError(
                f"{n_candidates:,} candidates are to come with each question, and there are "
                f"{len(items):,} to draw from; give fewer, or more of these"
            )
    listed = list((items or {}).items())
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
            offer = dict(chance.sample(listed, n_candidates)) if n_candidates else None
            try:
                start = time.perf_counter()
                decision = await client.act(context, actions=offer)
                middle = time.perf_counter()
                await client.learn(decision, float(chance.random() < 0.3))
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
