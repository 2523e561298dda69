"""What windows are told: what is done here, what others do, and what was before."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from melee.agent.keeping import GIVEN
from melee.agent.recalling import decision_of
from melee.decision import Decision
from melee.journal import Event, events
from melee.labels import Label
from melee.serve.served import Served

if TYPE_CHECKING:
    from melee.serve.service import Service

RECENT = 10_000
"""Events that are read at the start, for the windows to show what was before."""
FEW, CHUNK = 1_000, 50
"""So many are read before the first request; of more, so many at a time, between requests."""


def decided(served: Served, decisions: Sequence[Decision]) -> None:
    """Decisions were made here."""
    now = time.time()
    for decision in decisions:
        likeliest = max(decision.probabilities)
        explored = decision.policy != GIVEN and decision.probability < likeliest
        served.watch.decided(decision.action, explored=explored, now=now, id=decision.id)


def rewarded(served: Served, labels: dict[str, Label], rewards: dict[str, float]) -> None:
    """Rewards came here, of decisions for these actions; both by the decisions' ids."""
    now = time.time()
    for id, label in labels.items():
        served.watch.rewarded(label, rewards[id], now=now, id=id)


def seen(service: "Service", event: Event) -> None:
    """Something happened that was not asked for here."""
    served = service.agents.get(event.agent)
    if served is None or event.id is None:
        return
    if event.kind == events.DECISION:
        decision, decided = decision_of(event, service.journal)
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


def look_back(service: "Service") -> Iterator[Event]:
    """Tell what happened before this process, if it is little; what is still to be told."""
    end = service.journal.head.seq
    first = max(service.journal.start.seq, end - RECENT)
    past = service.journal.store.rows(first, end)
    if end - first <= FEW:
        for event in past:
            seen(service, event)
    return past


async def read_on(service: "Service", past: Iterator[Event]) -> None:
    """Tell the rest while requests are answered."""
    while some := await asyncio.to_thread(lambda: list(islice(past, CHUNK))):
        for event in some:
            seen(service, event)
        await asyncio.sleep(0.0)
