"""An agent as a fold over events: what it is, is what its events make of a new one.

What an agent does to itself goes through the functions here, whether it happens (`Agent.act`,
`Agent.learn`) or is read from a journal. Nothing here looks at a clock, draws a random number or
decides anything: all of that is in the event.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.agent import trials
from melee.agent.catalogue import Catalogue
from melee.agent.knowledge import Knowledge, Labels, Lesson
from melee.agent.offered import Offered
from melee.agent.offered import offer as offer_read
from melee.agent.pending import Waiting
from melee.arrays import Floats
from melee.checks import check_probability, check_reward
from melee.contexts import context_from_json
from melee.errors import DataError, shown
from melee.journal import Event, Journal, events
from melee.journal.offers import Offer
from melee.labels import Label, check_label, label_from_json

if TYPE_CHECKING:
    from melee.agent.agent import Agent

CHANGEABLE = ("timeout", "default_reward", "max_pending")
"""Parameters that may change in the life of an agent; models do not depend on them."""
BATCH = 1000
"""Rewards that are learned in one go: the same as one by one, faster."""


def finish(agent: "Agent", rewards: dict[str, float]) -> int:
    """Learn the rewards of decisions that wait; how many of their actions exist."""
    waiting = agent._pending.waiting
    lessons = []
    for id, reward in rewards.items():
        made = waiting[id]
        lessons.append(Lesson(made.context, made.action, reward, made.probability, made.features))
    learned = agent._knowledge.learn(lessons)
    for id, reward in rewards.items():
        agent._pending.finish(id, reward)
    return learned


def give_up(agent: "Agent", ids: Sequence[str]) -> None:
    """Have decisions wait no longer; they teach the default reward, if there is one."""
    if agent.default_reward is not None:
        finish(agent, dict.fromkeys(ids, float(agent.default_reward)))
    else:
        for id in ids:
            agent._pending.finish(id, None)
    agent._pending.n_given_up += len(ids)


def learn(
    agent: "Agent", lessons: Sequence[Lesson], ids: Sequence[str | None], times: Sequence[int]
) -> None:
    """Learn full records, each so many times."""
    if lessons:
        agent._knowledge.ready(lessons[0].context)
    pairs = zip(lessons, times, strict=True)
    agent._knowledge.learn([lesson for lesson, n in pairs for _ in range(n)])
    for id, lesson in zip(ids, lessons, strict=True):
        if id is not None:
            agent._ids.are_others = True
            agent._pending.finish(id, lesson.reward)


def fold(
    agent: "Agent",
    found: Iterable[Event],
    journal: Journal,
    known: Mapping[int, Knowledge] | None = None,
) -> Event | None:
    """Have an agent go through events, in order; the last of them.

    Parameters
    ----------
    agent
        As it was after the event before the first of these.
    found
        Events of this agent.
    journal
        Whose they are: it knows what decisions could choose from, and what was before a rollback.
    known
        What is known after rollbacks, by their numbers, where that was derived beforehand.
    """
    rewards: dict[str, float] = {}
    records: list[tuple[str | None, Lesson, int]] = []
    event = None
    for event in found:
        kind = event.kind
        if rewards and (kind != events.REWARD or len(rewards) >= BATCH):
            finish(agent, rewards)
            rewards = {}
        if records and (kind != events.RECORD or len(records) >= BATCH):
            _learn_records(agent, records)
            records = []
        if kind == events.REWARD:
            id = str(event.id)
            if id not in agent._pending.waiting or id in rewards:
                raise _misfit(event, f"no decision {shown(id)} waits for it")
            rewards[id] = _reward(event)
        elif kind == events.RECORD:
            records.append(_record(event))
        elif kind == events.ROLLBACK:
            _go_back(agent, event, journal, known or {})
        else:
            _fold_one(agent, event, journal)
    if rewards:
        finish(agent, rewards)
    if records:
        _learn_records(agent, records)
    return event


def _fold_one(agent: "Agent", event: Event, journal: Journal) -> None:
    if event.kind == events.DECISION:
        offer = events.chosen_from(event, journal.offer(event.content["offer"]))
        decided = events.read_decision(event, len(offer.labels))
        fold_decision(agent, event, decided, offer)
        return
    if event.kind == events.TRIAL:
        trials.note(agent, event)
        return
    body = event.content
    try:
        if event.kind == events.TIME_OUT:
            for id in body["ids"]:
                if id not in agent._pending.waiting:
                    raise _misfit(event, f"no decision {shown(id)} waits")
            give_up(agent, body["ids"])
            if body.get("full"):
                agent._pending.warned_full = True
        elif event.kind == events.ACTIONS:
            if "added" in body:
                agent._knowledge.add(_labels(body["added"]))
            if "removed" in body:
                agent._knowledge.remove(_labels(body["removed"]))
        elif event.kind == events.SETTINGS:
            change_settings(agent, body.get("parameters", {}))
        elif event.kind != events.CREATED:
            raise _misfit(event, "no such kind is known")
    except (KeyError, TypeError) as error:
        raise events.unreadable(event, error) from None


def _go_back(
    agent: "Agent", event: Event, journal: Journal, known: Mapping[int, Knowledge]
) -> None:
    from melee.agent.rolling_back import known_after, take_over

    there = known.get(event.seq)
    take_over(agent, known_after(event, journal) if there is None else there)


def fold_decision(agent: "Agent", event: Event, decided: events.Decided, offer: Offer) -> None:
    """Have a decision wait for its reward, as if it had been made here just now."""
    knowledge, id = agent._knowledge, event.id
    labels, features = offer.labels, offer.features
    if id is None or agent._pending.knows(id):
        raise _misfit(event, f"the id {shown(id)} is taken")
    get_ready(agent, decided, offer)
    for array, value in zip(knowledge.model.latest, decided.noted, strict=False):
        array[...] = value
    agent._ids.count += 1
    kept: tuple[Labels | None, Floats | None] = (None, None)
    if agent._log is not None:
        kept = (labels, np.array(decided.pmf))
    agent._pending.waiting[id] = Waiting(
        decided.context,
        labels[decided.action],
        check_probability(decided.pmf[decided.action]),
        event.time,
        decided.version,
        *kept,
        None,
        None if features is None else features[decided.action],
        None if agent._log is None else features,
    )


def get_ready(agent: "Agent", decided: events.Decided, offer: Offer) -> Offered | None:
    """Have the models be ready for a decision's context and for closed actions, or candidates.

    Returns the candidates, if that is what there was to choose from.
    """
    known = agent._knowledge
    if isinstance(known, Catalogue):
        if offer.features is None:
            raise DataError(f"what was offered as {shown(offer.name)} has no features")
        offered = offer_read(offer.labels, offer.features)
        known.ready_for(decided.context, offered)
        return offered
    known.ready(decided.context, some=decided.some)
    return None


def change_settings(agent: "Agent", changed: dict[str, Any]) -> None:
    """Give an agent other parameters."""
    for name, value in changed.items():
        if name not in CHANGEABLE:
            raise DataError(f"the setting {shown(name)} changed, which this melee cannot")
        setattr(agent, name, value)
    agent._pending.limit = agent.max_pending


def _learn_records(agent: "Agent", records: list[tuple[str | None, Lesson, int]]) -> None:
    ids, lessons, times = zip(*records, strict=True)
    learn(agent, lessons, ids, times)


def _reward(event: Event) -> float:
    try:
        return check_reward(event.content["reward"])
    except (KeyError, ValueError) as error:
        raise events.unreadable(event, error) from None


def _record(event: Event) -> tuple[str | None, Lesson, int]:
    body = event.content
    try:
        lesson = Lesson(
            context_from_json(body["context"]),
            check_label(label_from_json(body["action"])),
            check_reward(body["reward"]),
            check_probability(body["probability"]),
            context_from_json(body["features"]) if "features" in body else None,
        )
        return event.id, lesson, int(body.get("times", 1))
    except (KeyError, TypeError, ValueError) as error:
        raise events.unreadable(event, error) from None


def _labels(given: Any) -> list[Label]:
    return [check_label(label_from_json(label)) for label in given]


def _misfit(event: Event, reason: str) -> DataError:
    return DataError(
        f"event {event.seq}, a {event.kind}, does not fit the agent before it: {reason}; "
        "melee journal verify tells whether the journal was changed"
    )
