"""What the checks of a log share: findings, and how unlikely chance makes a count."""

import math
from typing import Literal, NamedTuple, TypeAlias

from melee.evaluation.tails import normal_tail, poisson_at_least, poisson_at_most

Level: TypeAlias = Literal["ok", "warning", "error"]

LEVEL = 0.001
"""Chance at which a check that compares numbers with chance raises a false alarm."""


class Finding(NamedTuple):
    """What a check found in a log, and what to do about it."""

    level: Level
    check: str
    found: str
    advice: str = ""


class Symptom(NamedTuple):
    """A finding before it is known which check made it."""

    level: Level
    found: str
    advice: str


def count_p_value(count: float, expected: float, variance: float) -> float:
    """Two-sided p-value of a count of independent events, by its mean and variance.

    Normal, or Poisson where so few are expected that counts are skewed.
    """
    if variance >= 10.0:
        return 2.0 * normal_tail(abs(count - expected) / math.sqrt(variance))
    if expected <= 0.0:
        return 0.0 if count > 0 else 1.0
    at_most, at_least = poisson_at_most(count, expected), poisson_at_least(count, expected)
    return min(1.0, 2.0 * min(at_most, at_least))


def listed(names: list[str], most: int = 3) -> str:
    """The first names of a list, and how many more there are.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
