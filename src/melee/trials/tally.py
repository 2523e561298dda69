"""What rounds say of two that are compared, at any time."""

import math
from array import array
from typing import Any, NamedTuple

import numpy as np

from melee.checks import RewardRange
from melee.errors import InputError
from melee.evaluation.differences import Difference, Terms, difference
from melee.evaluation.digits import in_digits
from melee.evaluation.units import unit_of

ENOUGH = 20
"""Rounds from which on a difference is estimated."""
SURE = 0.05
"""The p-value below which a difference is called one."""


class Compared(NamedTuple):
    """How a trial does beside its agent.

    Attributes
    ----------
    trial, explorer, share
        What is tried, and its share of the decisions: 0 for a shadow.
    kind
        "share" for one that decides, "shadow" for one that does not, "apprentice" for the agent
        itself where the caller chooses.
    rounds, own
        Rounds whose rewards are known and count, and those of them that the trial decided.
    average, baseline
        The average reward of the trial, estimated where it did not decide, and that of the agent,
        or of the caller's choices.
    low, high, p_value
        The difference of the two is between these, and the p-value of no difference: both hold
        however often one looks, and if one stops because of them.
    agreement
        The chance that a shadow, or an apprentice, would have chosen what was chosen.
    sentence
        All of it in words.
    """

    trial: str
    explorer: str
    share: float
    kind: str
    rounds: int
    own: int
    average: float | None
    baseline: float | None
    low: float | None
    high: float | None
    p_value: float | None
    agreement: float | None
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """As it is answered over HTTP, and printed."""
        return self._asdict()

    def __str__(self) -> str:
        return f"{self.trial} ({self.explorer}, {self.kind}): {self.sentence}"


class Tally:
    """Rewards, and how much each round weighs for either of two.

    Weights of a round average 1 for both, over what might have been drawn. So the mean of (one
    weight - the other) · reward is the difference of what they earn.
    """

    def __init__(self) -> None:
        self.rewards, self.ours, self.theirs = array("d"), array("d"), array("d")
        self.widest = 0.0

    def add(self, reward: float, ours: float, theirs: float, widest: float) -> None:
        """Take a round in; the weights could have been so far apart at most."""
        self.rewards.append(reward)
        self.ours.append(ours)
        self.theirs.append(theirs)
        self.widest = max(self.widest, widest)

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def means(self) -> tuple[float | None, float | None]:
        """The weighted average rewards of the two."""
        rewards, ours, theirs = self._arrays()
        return _mean(rewards, ours), _mean(rewards, theirs)

    @property
    def lacks_support(self) -> bool:
        """Whether what we would have chosen was left out by what was: then weights are too small.

        They average 1, but for luck, where everything has a chance.
        """
        if len(self) < ENOUGH:
            return False
        _, ours, _ = self._arrays()
        reach = 3.0 * float(ours.std()) / math.sqrt(len(ours))
        return 1.0 - float(ours.mean()) > reach + 0.02

    def difference(self, reward_range: RewardRange) -> Difference | None:
        """Ours minus theirs; None where there is too little to say anything."""
        if len(self.rewards) < ENOUGH:
            return None
        rewards, ours, theirs = self._arrays()
        try:
            unit = unit_of(rewards, reward_range)
        except InputError:  # all rewards are the same
            return None
        scaled = unit.of(rewards)
        apart = scaled - scaled.mean()
        unknown = np.full((len(scaled), 1), math.nan)
        found = difference(
            Terms(ours * apart, ours, unknown),
            Terms(theirs * apart, theirs, unknown),
            "agent",
            scaled,
            self.widest,
        )
        return unit.back_difference(found)

    def _arrays(self) -> tuple[Any, Any, Any]:
        parts = (self.rewards, self.ours, self.theirs)
        made = [np.frombuffer(one, np.float64).copy() if one else np.zeros(0) for one in parts]
        return made[0], made[1], made[2]


def _mean(rewards: Any, weights: Any) -> float | None:
    total = float(weights.sum())
    return float(weights @ rewards) / total if total > 0.0 else None


def in_words(found: Difference | None, ours: str, theirs: str, n: int, *, estimated: bool) -> str:
    """What a comparison says, in words."""
    if found is None:
        return f"nothing can be said yet: {n:,} rounds count, whose rewards are known"
    low, high = in_digits(found.anytime_low, found.anytime_high)
    would = "would earn" if estimated else "earns"
    if found.p_value >= SURE:
        return (
            f"no difference between {ours} and {theirs} is certain yet: between {low} and {high} "
            f"a decision, after {n:,} rounds"
        )
    more = "more" if found.value > 0.0 else "less"
    return (
        f"{ours} {would} {more} than {theirs}: between {low} and {high} a decision, after {n:,} "
        f"rounds (p = {found.p_value:.2g}, however often one looks)"
    )
