"""Events: what an agent did, as a row of a table, and the chain of checksums over all of them.

A row has a kind, the id of the decision that it is about, a time and a body, a JSON object:

- `created`: the agent's parameters, what its explorer is, and melee's version;
- `settings`: those of them that changed;
- `actions`: labels that were added, or removed;
- `decision`: the context, what was offered (by its name, see `offers.py`), the probability of each,
  which one was chosen, the version of the model, the policy, and what the explorer noted for the
  reward to come; `unit`, who it was about, where a trial was drawn (null: the decision's id),
  `given`, the probability that it had, if known, where the caller had chosen, and `place`, its
  number in a ranking, from 1 on;
- `reward`: of a decision;
- `record`: a whole round that was decided elsewhere;
- `time-out`: the ids of decisions that were given up, late or for want of room, and the default
  `reward` that they taught, if there was one;
- `rollback`: what was learned since the event `to` is forgotten, but for what came after the event
  `again`, if it names one;
- `trial`: another explorer beside the agent's begins, has another share, or ends.

Readers leave fields that they do not know alone, so bodies may get more of them.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from melee.contexts import Context, context_from_json, context_to_json
from melee.errors import DataError, shown
from melee.journal.offers import Offer, OfferChange
from melee.labels import Label, check_label, label_from_json, label_to_json

CREATED, SETTINGS, ACTIONS = "created", "settings", "actions"
DECISION, REWARD, RECORD, TIME_OUT = "decision", "reward", "record", "time-out"
ROLLBACK, TRIAL = "rollback", "trial"
KINDS = (CREATED, SETTINGS, ACTIONS, DECISION, REWARD, RECORD, TIME_OUT, ROLLBACK, TRIAL)

_SIZE = 16
_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class Head(NamedTuple):
    """A place in the chain: the number of an event, and its checksum. 0 is before the first."""

    seq: int = 0
    checksum: bytes = b"\0" * _SIZE


class Draft(NamedTuple):
    """An event that has no place yet.

    `offer` is what it names, if it names anything; `agent` is whose it is, if not of who notes it;
    `file` is the agent's after it, where that is kept as a snapshot together with the event.
    """

    kind: str
    id: str | None
    time: float
    body: str
    offer: "Offer | None" = None
    agent: str | None = None
    file: bytes | None = None


class _Row(NamedTuple):
    seq: int
    agent: str
    kind: str
    id: str | None
    time: float
    body: str
    checksum: bytes


class Event(_Row):
    """An event at its place."""

    @property
    def head(self) -> Head:
        """Its place in the chain."""
        return Head(self.seq, self.checksum)

    @cached_property
    def content(self) -> dict[str, Any]:
        """What its body holds; read once, so nobody may change it."""
        try:
            content = json.loads(self.body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise DataError(f"event {self.seq}: its body is {shown(self.body)}; expected JSON")
        return content


def link(before: Head, agent: str, draft: Draft) -> Event:
    """The draft as the event that follows; its checksum covers the one before, and its number."""
    kind, id, time, body = draft[:4]
    seq = before.seq + 1
    digest = hashlib.blake2b(before.checksum, digest_size=_SIZE)
    about = f"{seq}\0{agent}\0{kind}\0{'' if id is None else '=' + id}\0{float(time).hex()}\0"
    digest.update(about.encode())
    digest.update(body.encode())
    return Event(seq, agent, kind, id, time, body, digest.digest())


def is_next(before: Head, event: Event) -> bool:
    """Whether an event is the one that was written after the one before."""
    try:
        made = link(before, event.agent, Draft(event.kind, event.id, event.time, event.body))
    except (TypeError, ValueError, AttributeError):  # values that nobody writes
        return False
    return made == event


def chosen_from(event: Event, offer: Offer) -> Offer:
    """What a decision could choose from: what its offer says, and what differs from it."""
    body = event.content
    if "without" not in body and "with" not in body:
        return offer
    try:
        gone = set(body.get("without", ()))
        features: Sequence[Context] = offer.features or ()
        pairs = [
            pair for i, pair in enumerate(zip(offer.labels, features, strict=True)) if i not in gone
        ]
        for place, label, given in body.get("with", ()):
            pairs.insert(place, (check_label(label_from_json(label)), context_from_json(given)))
        labels, own = zip(*pairs, strict=True)
        return Offer(offer.name, labels, offer.body, own)
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(event, error) from None


# -- bodies --------------------------------------------------------------------------------------


class Decided(NamedTuple):
    """A decision as its event has it; `action` is its number in what was offered.

    `some` says that the caller had named the actions, `noted` is what the explorer noted for the
    reward, `change` is what candidates differ by from the offer, `about` has the fields `unit` and
    `given`, if they are there.
    """

    context: Context
    offer: str
    pmf: Sequence[float]
    action: int
    version: int
    policy: str
    some: bool = False
    noted: tuple[float, ...] = ()
    change: OfferChange | None = None
    about: dict[str, Any] = {}  # noqa: RUF012


def decision(id: str, time: float, decided: Decided, offer: Offer) -> Draft:
    """The event of a decision."""
    context = decided.context
    body: dict[str, Any] = {
        "context": context if type(context) is dict else context.tolist(),  # type: ignore[union-attr]
        "offer": decided.offer,
        "action": decided.action,
        "pmf": _short(decided.pmf),
        "version": decided.version,
        "policy": decided.policy,
    }
    if decided.some:
        body["some"] = True
    if decided.noted:
        body["noted"] = decided.noted
    if decided.change is not None and decided.change.without:
        body["without"] = decided.change.without
    if decided.change is not None and decided.change.added:
        body["with"] = [
            [place, label_to_json(label), context_to_json(features)]
            for place, label, features in decided.change.added
        ]
    body |= decided.about
    return Draft(DECISION, id, time, _JSON.encode(body), offer)


def read_decision(event: Event, n_offered: int | None = None) -> Decided:
    """What a decision's event holds."""
    body = event.content
    try:
        pmf = _long(body["pmf"], n_offered)
        return Decided(
            context_from_json(body["context"]),
            body["offer"],
            pmf,
            body["action"],
            body["version"],
            body["policy"],
            body.get("some", False),
            tuple(body.get("noted", ())),
            about={name: body[name] for name in ("unit", "given") if name in body},
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise unreadable(event, error) from None


def reward(id: str, time: float, value: float) -> Draft:
    """The event of a decision's reward."""
    return Draft(REWARD, id, time, _JSON.encode({"reward": value}))


def record(
    id: str | None,
    time: float,
    context: Context,
    label: Label,
    value: float,
    p: float,
    times: int,
    features: Context | None = None,
) -> Draft:
    """The event of a round that was decided elsewhere and is learned so many times."""
    body: dict[str, Any] = {
        "context": context if isinstance(context, dict) else context.tolist(),
        "action": label_to_json(label),
        "reward": value,
        "probability": p,
    }
    if features is not None:
        body["features"] = context_to_json(features)
    if times != 1:
        body["times"] = times
    return Draft(RECORD, id, time, _JSON.encode(body))


def time_out(time: float, ids: Sequence[str], reward: float | None, *, full: bool) -> Draft:
    """The event of decisions that are given up; `full` where there was no room for them."""
    body: dict[str, Any] = {"ids": list(ids)}
    if reward is not None:
        body["reward"] = reward
    if full:
        body["full"] = True
    return Draft(TIME_OUT, None, time, _JSON.encode(body))


def rollback(time: float, to: int, again: int | None) -> Draft:
    """The event of a return to what was known after an event."""
    return Draft(ROLLBACK, None, time, _JSON.encode({"to": to, "again": again}))


def read_rollback(event: Event) -> tuple[int, int | None]:
    """Where a rollback goes to, and after which event rewards are learned again."""
    body = event.content
    try:
        to, again = body["to"], body["again"]
        if type(to) is not int or not 0 < to < event.seq:
            raise ValueError(f"to is {shown(to)}")
        if again is not None and (type(again) is not int or not to <= again < event.seq):
            raise ValueError(f"again is {shown(again)}")
    except (KeyError, ValueError) as error:
        raise unreadable(event, error) from None
    return to, again


def change(kind: str, time: float, body: dict[str, Any], agent: str | None = None) -> Draft:
    """The event of a new agent, of other settings or of other actions."""
    return Draft(kind, None, time, _JSON.encode(body), agent=agent)


def unreadable(event: Event, error: Exception) -> DataError:
    """The error for an event whose body is not what its kind has."""
    reason = f"{type(error).__name__}: {error}"
    return DataError(
        f"event {event.seq}, a {event.kind}, cannot be read ({reason}); it was written by a newer "
        "melee, or changed: melee journal verify tells"
    )


def _short(pmf: Sequence[float]) -> Any:
    """Probabilities; where most are alike, that one and the others by number."""
    if len(pmf) <= 10:
        return pmf
    values = list(pmf)
    each = min(values)  # what exploring leaves to all
    but = [[i, p] for i, p in enumerate(values) if p != each]
    return values if 2 * len(but) > len(values) else {"n": len(values), "each": each, "but": but}


def _long(given: Any, n_offered: int | None) -> list[float]:
    if isinstance(given, dict):
        pmf = [given["each"]] * given["n"]
        for i, p in given["but"]:
            pmf[i] = p
    else:
        pmf = list(given)
    if n_offered is not None and len(pmf) != n_offered:
        raise ValueError(f"{len(pmf)} probabilities for {n_offered} actions")
    return pmf
