"""The rounds of a journal: what `log=` would have written, from the events alone."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from melee.agent.recalling import decision_of, offered_in
from melee.agent.recovering import earliest
from melee.contexts import context_from_json
from melee.history import Round
from melee.journal import Journal, events
from melee.labels import label_from_json


def rounds(journal: Journal) -> Iterator[Round]:
    """Every round whose reward is known, in the order in which it became known.

    A decision that was given up has the default reward, where there was one. Of decisions from
    before what retention has left, only what a snapshot has is known.
    """
    agent, place = earliest(journal)
    default: Any = agent.default_reward
    waiting = {
        id: Round(
            *(made.context, made.action, 0.0, made.probability, id, made.time),
            features=None if made.features is None else {made.action: made.features},
        )
        for id, made in agent._pending.waiting.items()
    }
    for event in journal.events(after=place):
        if event.kind == events.DECISION:
            waiting[str(event.id)] = _waiting(event, journal)
        elif event.kind == events.REWARD:
            yield _rewarded(waiting.pop(str(event.id)), event.content["reward"])
        elif event.kind == events.RECORD:
            waiting.pop(str(event.id), None)
            yield _record(event)
        elif event.kind == events.TIME_OUT:
            for id in event.content["ids"]:
                round_ = waiting.pop(id)
                if default is not None:
                    yield _rewarded(round_, float(default))
        elif event.kind in (events.CREATED, events.SETTINGS):
            default = event.content["parameters"].get("default_reward", default)


def _waiting(event: events.Event, journal: Journal) -> Round:
    offer = offered_in(event, journal)
    decision, decided = decision_of(event, journal, offer)
    features = offer.features
    return Round(
        decided.context,
        decision.action,
        0.0,
        decision.probability,
        event.id,
        event.time,
        None if "given" in decided.about else decision.pmf,
        decided.policy,
        str(decided.version),
        features=None if features is None else dict(zip(offer.labels, features, strict=True)),
    )


def _rewarded(round_: Round, reward: float) -> Round:
    return replace(round_, reward=reward)


def _record(event: events.Event) -> Round:
    body = event.content
    action = label_from_json(body["action"])
    own = body.get("features")
    return Round(
        context_from_json(body["context"]),
        action,
        body["reward"],
        body["probability"],
        event.id,
        stands_for=float(body.get("times", 1)),
        features=None if own is None else {action: context_from_json(own)},
    )
