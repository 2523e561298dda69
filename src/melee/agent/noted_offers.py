"""What decisions chose from, as their events say it: by name, or by what differs from that."""

from typing import NamedTuple

from melee.agent.knowledge import Labels
from melee.agent.offered import Offered
from melee.contexts import Context
from melee.journal import offers
from melee.labels import Label


class _Base(NamedTuple):
    """Candidates that are in the table of offers."""

    offered: Offered
    features: dict[Label, Context]
    offer: offers.Offer


class NotedOffers:
    """Finds a short way to say what was offered; what it knows may be lost at any time.

    Candidates join the table of offers when they come a second time, much the same: from then on
    an event has only what differs. Those that come once are in its event in full.
    """

    def __init__(self) -> None:
        self._own: tuple[Labels, offers.Offer] | None = None
        self._base: _Base | None = None
        self._once: tuple[Offered, dict[Label, Context]] | None = None  # candidates that came once

    def of(self, labels: Labels, *, some: bool) -> offers.Offer:
        """An agent's own actions: all, or `some` of them."""
        if some:
            return offers.offer_of(labels)
        if self._own is None or self._own[0] is not labels:
            self._own = labels, offers.offer_of(labels)
        return self._own[1]

    def among(self, offered: Offered) -> tuple[offers.Offer, offers.OfferChange | None]:
        """Candidates as what is there in full, and what they differ by from that."""
        labels, features = offered.labels, offered.features
        if self._base is not None:
            if self._base.offered is offered:
                return self._base.offer, None
            change = offers.changed_from(self._base.features, labels, features)
            if change is not None:
                return self._base.offer, None if change.is_none else change
        named = dict(zip(labels, features, strict=True))
        if self._once is not None:
            once, before = self._once
            if once is offered or offers.changed_from(before, labels, features) is not None:
                self._base = _Base(offered, named, offers.offer_among(labels, features))
                return self._base.offer, None
        self._once = offered, named
        return offers.nothing(), offers.in_full(labels, features)
