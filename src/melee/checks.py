"""Checks of what a caller says about a round; one sentence for all who take rounds."""

from typing import Any

import numpy as np

from melee.errors import InputError, shown


def unit_number(value: Any) -> float | None:
    """The value as a float if it is a number in [0, 1], else None."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    if isinstance(value, str | bytes | np.ndarray):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0.0 <= number <= 1.0 else None


def check_reward(reward: Any) -> float:
    """The reward as a float in [0, 1]."""
    number = unit_number(reward)
    if number is None:
        raise InputError(
            f"the reward is {shown(reward)}; expected a number in [0, 1]: scale it first"
        )
    return number


def check_probability(probability: Any) -> float:
    """The probability as a float in (0, 1]."""
    number = unit_number(probability)
    if not number:
        raise InputError(
            f"the probability is {shown(probability)}; expected a number in (0, 1], the one that "
            "was logged when the action was chosen"
        )
    return number
