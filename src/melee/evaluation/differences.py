"""How much more a policy would have earned than another one, by the same rounds of one log.

Two policies are judged by the same contexts and the same luck of rewards. In the difference of
what each round says of them, most of that luck cancels: wherever they agree, all of it. So a log
often knows which of two is better although their own intervals overlap.
"""

import math
from typing import NamedTuple

import numpy as np

from melee.arrays import Floats
from melee.evaluation.anytime import anytime_interval
from melee.evaluation.digits import in_digits
from melee.evaluation.estimates import Estimate, extra_weights, mean_interval

LOGGED = "logged"
"""The name of the policy that wrote the log."""


class Difference(NamedTuple):
    """A policy's mean reward minus that of a baseline, on the same log.

    Attributes
    ----------
    baseline
        Which policy it is compared with; "logged" is the one that wrote the log.
    value, low, high
        The difference with its interval, which is right if it is looked at once, as planned.
    anytime_low, anytime_high
        A wider interval, which holds however often one looks, and if one stops because of it. It
        takes for granted that no round's probabilities go below the least that the log has. Of
        policies that learn, it is about the average of what they earned as they stood in each
        round. NaN, and so is the p-value, where some rounds of the log stand for more than others.
    p_value
        Of no difference, and valid at any time, too: it is below 0.05 if and only if the 0.95
        interval for any time excludes 0.
    """

    baseline: str
    value: float
    low: float
    high: float
    anytime_low: float
    anytime_high: float
    p_value: float

    def __str__(self) -> str:
        if math.isnan(self.p_value):
            return str(self.estimate)
        ends = self.low, self.high, self.anytime_low, self.anytime_high
        value, low, high, any_low, any_high = in_digits(self.value, *ends)
        return (
            f"{value} [{low}, {high}]; at any time [{any_low}, {any_high}], p = {self.p_value:.2g}"
        )

    @property
    def estimate(self) -> Estimate:
        """The difference with its interval for one look."""
        return Estimate("difference", self.value, self.low, self.high)

    @property
    def anytime_estimate(self) -> Estimate:
        """The difference with its interval for any number of looks."""
        return Estimate("difference", self.value, self.anytime_low, self.anytime_high)


class Terms(NamedTuple):
    """What the rounds of a log say of a policy.

    Attributes
    ----------
    values
        Of each round, what it says of the policy's mean reward: those of `dr`, or of `ips`; where
        rounds stand for several, `estimates.ratio_terms`.
    weights
        The policy's probability of the logged action over the logged one, times the round's size.
    chosen
        The policy's probabilities of all actions, (n, K); NaN where they are not known.
    """

    values: Floats
    weights: Floats
    chosen: Floats


def difference(
    policy: Terms,
    baseline: Terms,
    name: str,
    rewards: Floats,
    bound: float,
    confidence: float = 0.95,
    sizes: Floats | float = 1.0,
) -> Difference:
    """The paired difference of two policies, for rewards within [0, 1].

    The interval for one look is that of the mean of differences, each end after one more round in
    which the two want different actions and luck is against it, as in `estimates`.

    The one for any time may use, in a round, only what was known before. Its terms are
    (w - v) · (reward - b) for the weights w and v: those of `ips` with less noise, as weights
    average 1 and b makes no difference on average. Half of the stake takes the mean of earlier
    rewards for b, which is best where rewards are rare, and half ½, which is best for the bound.
    Where some rounds stand for more than others there is none: how many were dropped after each is
    not known, and so neither is the mean over all rounds at that time.

    Parameters
    ----------
    name
        Of the baseline.
    bound
        The most by which the weights of the two can differ in a round; see `widest`.
    """
    apart = policy.weights - baseline.weights
    values = policy.values - baseline.values
    extra = max(extra_weights(np.abs(apart), rewards, sizes))
    any_low = any_high = p_value = math.nan
    if not unequal(sizes):
        terms, bounds = anytime_terms(apart, rewards, bound)
        any_low, any_high, p_value = anytime_interval(terms, bounds, confidence)
    ends = (*mean_interval(values, -extra, extra, confidence), any_low, any_high)
    low, high, any_low, any_high = np.clip(ends, -1.0, 1.0).tolist()
    return Difference(name, float(values.mean()), low, high, any_low, any_high, p_value)


def unequal(sizes: Floats | float) -> bool:
    """Whether some rounds stand for more than others, by more than rounding."""
    return bool(np.ptp(sizes) > 1e-9)


def not_at_any_time(stands_for: Floats) -> str:
    """Why a log with dropped rounds has no evidence for any time, and what to do."""
    return (
        f"rounds of this log stand for {stands_for.min():g} to {stands_for.max():g} rounds, as "
        "others were dropped; an interval and a p-value that hold at any time need all to stand "
        "for equally many: look at the difference once, as planned, or log every round"
    )


def widest(policy: Terms, baseline: Terms, chances: Floats, probabilities: Floats) -> float:
    """The most by which two policies' weights can differ, by the probabilities that a log has.

    Of all actions where their probabilities are logged, whichever was chosen; else the weight that
    a certain choice would have in the round with the least probability.
    """
    if np.isnan(chances).any():
        return float(1.0 / probabilities.min())
    apart = np.abs(policy.chosen - baseline.chosen)
    weights = np.divide(apart, chances, out=np.zeros_like(apart), where=chances > 0.0)
    return float(weights.max())


def anytime_terms(apart: Floats, rewards: Floats, bound: float) -> tuple[Floats, Floats]:
    """What `evidence` takes, (2, n) and (2,), for weights so far apart; see `difference`."""
    before = np.concatenate([[0.0], rewards.cumsum()[:-1] / np.arange(1, len(rewards))])
    terms = np.stack([apart * (rewards - before), apart * (rewards - 0.5)])
    return terms, bound * np.array([1.0, 0.5])
