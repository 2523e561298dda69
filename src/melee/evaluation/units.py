"""Rewards of a log between 0 and 1, and estimates back in the unit that the rewards came in.

Estimates and their intervals need to know how low and how high a reward can be. That is what was
declared; else [0, 1] if no reward is outside of it; else the lowest and the highest reward of the
log, which is the best that can be said without knowing more, and said so.
"""

from typing import NamedTuple

from melee.arrays import Floats
from melee.checks import RewardRange
from melee.errors import InputError
from melee.evaluation.differences import Difference
from melee.evaluation.estimates import Estimate


class Unit(NamedTuple):
    """How low and how high rewards can be, and whether that was only observed."""

    low: float
    high: float
    observed: bool

    def of(self, rewards: Floats) -> Floats:
        """Rewards between 0 and 1."""
        return (rewards - self.low) / (self.high - self.low)

    def back(self, estimate: Estimate) -> Estimate:
        """An estimate of such rewards, in the unit they came in."""
        size = self.high - self.low
        numbers = (
            self.low + size * number for number in (estimate.value, estimate.low, estimate.high)
        )
        return Estimate(estimate.name, *numbers)

    def back_difference(self, difference: Difference) -> Difference:
        """A difference of such rewards, in the unit they came in."""
        size = self.high - self.low
        value, low, high, anytime_low, anytime_high = (size * number for number in difference[1:6])
        return Difference(
            difference.baseline, value, low, high, anytime_low, anytime_high, difference.p_value
        )

    def caution(self) -> str:
        """What to be careful about where nobody said how low and high rewards can be."""
        return (
            f"rewards are taken to lie between {self.low:g} and {self.high:g}, as they do in this "
            "log; if they can be lower or higher, give their reward_range, or intervals are too "
            "narrow"
        )


def unit_of(rewards: Floats, declared: RewardRange) -> Unit:
    """The unit of a log's rewards.

    >>> import numpy as np
    >>> unit_of(np.array([0.0, 0.5]), None)
    Unit(low=0.0, high=1.0, observed=False)
    >>> import numpy as np
    >>> unit_of(np.array([0.0, 5.0]), None)
    Unit(low=0.0, high=5.0, observed=True)
    """
    if declared is not None:
        return Unit(*declared, observed=False)
    low, high = float(rewards.min()), float(rewards.max())
    if low >= 0.0 and high <= 1.0:
        return Unit(0.0, 1.0, observed=False)
    if low == high:
        raise InputError(
            f"every reward of the log is {low:g}, which does not tell how low and how high they "
            "can be; give their reward_range, or check how rewards are joined to rounds"
        )
    return Unit(low, high, observed=True)
