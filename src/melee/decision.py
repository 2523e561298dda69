"""Decisions: what an agent answers, and what a client is told.

A module of its own that imports hardly anything, so that a client is light.
"""

import math
from typing import NamedTuple

from melee.labels import Label


class Decision(NamedTuple):
    """A decision that can be trusted later: what was chosen, how probably, and by what.

    Attributes
    ----------
    id
        By which its reward is reported.
    action, probability
        The action chosen, and the probability with which it was.
    policy
        The explorer that decided, and the first letters of its checksum.
    version
        The agent's: how many times it had learned or changed.
    actions, probabilities
        The actions that were open, and the probability of each.
    """

    id: str
    action: Label
    probability: float
    policy: str
    version: int
    actions: tuple[Label, ...]
    probabilities: tuple[float, ...]

    @property
    def pmf(self) -> dict[Label, float]:
        """The probability of every action that was open, by its label."""
        return dict(zip(self.actions, self.probabilities, strict=True))


class Ranking(NamedTuple):
    """Several decisions of one question, best first: `act(..., top=k)`.

    Each place was decided among what the places before it had left, so its probability is that of
    its action given those. A place is a decision like any other, with an id and a reward of its
    own.

    Attributes
    ----------
    id
        That of the ranking; its places are `id/1`, `id/2` and so on.
    places
        The decisions.
    """

    id: str
    places: tuple[Decision, ...]

    @property
    def actions(self) -> tuple[Label, ...]:
        """The chosen actions, best first."""
        return tuple(place.action for place in self.places)

    @property
    def probability(self) -> float:
        """Of the whole ranking."""
        return math.prod(place.probability for place in self.places)
