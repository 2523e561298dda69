"""Offers: what decisions could choose from, as the journal keeps it.

What was offered is named by the hash of its content, and kept in a table of its own: it hardly
changes from one decision to the next. `{"actions": [label, ...]}` is one; where actions are
candidates, `"features": [{...}, ...]` has those of each. Of candidates that are mostly those of an
earlier decision an event says what differs: `without` has the numbers of those that are gone, and
`with` the place, label and features of those that are new, or have other features. Candidates that
have not come before are all new, beside an offer of none: they are gone when their event is, and in
the table only if they come again.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from melee.contexts import Context, context_from_json, context_to_json
from melee.errors import DataError, shown
from melee.labels import Label, check_label, label_from_json, label_to_json

_SIZE = 16
_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class Offer(NamedTuple):
    """What could be chosen from: the labels, and the JSON that they are kept as, under its hash.

    Candidates have their features, each in its place.
    """

    name: str
    labels: tuple[Label, ...]
    body: str
    features: tuple[Context, ...] | None = None


def offer_of(labels: tuple[Label, ...]) -> Offer:
    """Actions without features, as what can be chosen from.

    >>> offer_of(("sports", ("banner", 3))).body
    '{"actions":["sports",{"tuple":["banner",3]}]}'
    """
    body = _JSON.encode({"actions": [label_to_json(label) for label in labels]})
    return Offer(name_of(body), labels, body)


def offer_among(labels: tuple[Label, ...], features: tuple[Context, ...]) -> Offer:
    """Candidates with their features, as what can be chosen from.

    >>> offer_among(("a17", "a18"), ({"topic": "sport"}, {})).body
    '{"actions":["a17","a18"],"features":[{"topic":"sport"},{}]}'
    """
    body = _JSON.encode(
        {
            "actions": [label_to_json(label) for label in labels],
            "features": [context_to_json(each) for each in features],
        }
    )
    return Offer(name_of(body), labels, body, features)


def nothing() -> Offer:
    """No candidates: what those that come once are told by."""
    return offer_among((), ())


def name_of(body: str) -> str:
    """What an offer is called."""
    return hashlib.blake2b(body.encode(), digest_size=_SIZE).hexdigest()


def read_offer(name: str, body: str) -> Offer:
    """The offer that was written under this name."""
    if name_of(body) != name:
        raise DataError(f"what was offered as {shown(name)} has been changed; restore a copy")
    content = json.loads(body)
    labels = tuple(check_label(label_from_json(label)) for label in content["actions"])
    features = None
    if "features" in content:
        features = tuple(context_from_json(each) for each in content["features"])
        if len(features) != len(labels):
            raise DataError(f"what was offered as {shown(name)} lacks features; restore a copy")
    return Offer(name, labels, body, features)


class OfferChange(NamedTuple):
    """What candidates differ by from those of an offer."""

    without: tuple[int, ...]  # numbers in the offer
    added: tuple[tuple[int, Label, Context], ...]  # the place of each, its label and features

    @property
    def is_none(self) -> bool:
        """Whether nothing differs."""
        return not self.without and not self.added


def changed_from(
    before: Mapping[Label, Context], labels: tuple[Label, ...], features: tuple[Context, ...]
) -> OfferChange | None:
    """What candidates differ by; None if by much, or if those that stay are in another order.

    >>> before = {"a": {"x": 1.0}, "b": {"x": 2.0}, "c": {"x": 3.0}}
    >>> changed_from(before, ("a", "d", "c"), ({"x": 1.0}, {"x": 4.0}, {"x": 3.0}))
    OfferChange(without=(1,), added=((1, 'd', {'x': 4.0}),))
    >>> changed_from(before, ("c", "a"), ({"x": 3.0}, {"x": 1.0}))
    """
    added = []
    stay = []
    for place, (label, own) in enumerate(zip(labels, features, strict=True)):
        known = before.get(label)
        if known is not None and _is_same(known, own):
            stay.append(label)
        else:
            added.append((place, label, own))
    if 2 * len(added) > len(labels) or len(stay) * 2 < len(before):
        return None
    kept = set(stay)
    if [label for label in before if label in kept] != stay:
        return None
    without = tuple(i for i, label in enumerate(before) if label not in kept)
    return OfferChange(without, tuple(added))


def in_full(labels: tuple[Label, ...], features: tuple[Context, ...]) -> OfferChange:
    """Candidates as what differs from nothing at all."""
    return OfferChange((), tuple(zip(range(len(labels)), labels, features, strict=True)))


def _is_same(known: Context, own: Context) -> bool:
    if known is own:
        return True
    if isinstance(known, dict) and isinstance(own, dict):
        # True and 1.0 are equal, and different values; but contexts hold no True.
        return known == own and list(known) == list(own)
    return not isinstance(known, dict) and not isinstance(own, dict) and np.array_equal(known, own)
