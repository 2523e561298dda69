"""Checks of what a caller says about a round, and of what a file says.

One sentence for all who take rounds. The `read_` functions read JSON that anyone may have written.
"""

import math
from typing import Any, TypeAlias

import numpy as np

from melee.errors import DataError, InputError, shown

LARGEST_REWARD = 1e100
"""Rewards beyond this are refused: their squares would overflow."""

RewardRange: TypeAlias = tuple[float, float] | None
"""The least and the greatest reward there can be, or None where nobody knows."""


def check_reward(reward: Any, reward_range: RewardRange = None) -> float:
    """The reward as a float: any number, or one within its declared range."""
    number = _number_within(reward, -LARGEST_REWARD, LARGEST_REWARD)
    if number is None:
        raise InputError(
            f"the reward is {shown(reward)}; expected a finite number, within ±1e100, in any unit"
        )
    if reward_range is not None and not reward_range[0] <= number <= reward_range[1]:
        low, high = reward_range
        raise InputError(
            f"the reward is {number:g} and rewards were declared to be from {low:g} to {high:g}; "
            "give a reward_range that holds all of them, or leave it out and it is found on the way"
        )
    return number


def unit_number(value: Any) -> float | None:
    """The value as a float if it is a number in [0, 1], else None."""
    return _number_within(value, 0.0, 1.0)


def _number_within(value: Any, low: float, high: float) -> float | None:
    """The value as a float if it is a number from `low` to `high`, else None."""
    if type(value) is float and low <= value <= high:
        return value
    if isinstance(value, str | bytes | np.ndarray | np.complexfloating):
        return None
    try:
        number = float(value)
    except Exception:  # whatever an object of the caller's raises
        return None
    return number if low <= number <= high else None


def check_reward_range(given: Any) -> RewardRange:
    """A declared range as two floats, or None where none is."""
    if given is None:
        return None
    try:
        low, high = (_number_within(end, -LARGEST_REWARD, LARGEST_REWARD) for end in given)
    except (TypeError, ValueError):
        low = high = None
    if low is None or high is None or not low < high:
        raise InputError(
            f"reward_range is {shown(given)}; expected the least and the greatest reward there can "
            "be, such as (0, 1), or None where nobody knows"
        )
    return low, high


def check_probability(probability: Any) -> float:
    """The probability as a float in (0, 1]."""
    number = unit_number(probability)
    if not number:
        raise InputError(
            f"the probability is {shown(probability)}; expected a number in (0, 1], the one that "
            "was logged when the action was chosen"
        )
    return number


def read_whole(value: Any, least: int, below: float = math.inf) -> int:
    """A whole number from a file."""
    if type(value) is not int or not least <= value < below:
        raise DataError(f"{shown(value)} where a whole number belongs")
    return value


def read_number(value: Any, least: float = -1e100, most: float = 1e100) -> float:
    """A number from a file."""
    if type(value) not in (int, float) or not least <= value <= most:
        raise DataError(f"{shown(value)} where a number belongs")
    return float(value)


def read_text(value: Any) -> str:
    """A text from a file."""
    if type(value) is not str:
        raise DataError(f"{shown(value)} where a text belongs")
    return value


def read_id(value: Any) -> str:
    """The id of a decision, or a part of one, from a file."""
    if not is_unicode(read_text(value)):
        raise DataError(f"{shown(value)} where the id of a decision belongs")
    return str(value)


def is_unicode(text: str) -> bool:
    """Whether a text can be written anywhere: half a character, a lone surrogate, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
