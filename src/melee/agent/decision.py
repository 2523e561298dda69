"""What `Agent.act` answers."""

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
