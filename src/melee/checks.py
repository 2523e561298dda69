"""Checks of what a caller says about a round, and of what a file says.

One sentence for all who take rounds. The `read_` functions read JSON that anyone may have written.
"""

import math
from typing import Any

import numpy as np

from melee.errors import DataError, InputError, shown


def unit_number(value: Any) -> float | None:
    """The value as a float if it is a number in [0, 1], else None."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    if isinstance(value, str | bytes | np.ndarray | np.complexfloating):
        return None
    try:
        number = float(value)
    except Exception:  # whatever an object of the caller's raises
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
