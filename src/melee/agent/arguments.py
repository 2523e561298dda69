"""What callers pass to an agent, read and checked."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from melee.contexts import Context
from melee.errors import InputError, shown
from melee.labels import Label, check_label


def read_labels(actions: Any, least: int) -> list[Label]:
    """Labels of actions, each once, at least so many."""
    if isinstance(actions, str | bytes | dict) or not isinstance(actions, Iterable):
        raise InputError(f"actions are {shown(actions)}; expected a list of labels")
    labels = [check_label(label) for label in actions]
    if len(labels) < least:
        raise InputError("there are no actions; expected at least one")
    if len(set(labels)) != len(labels):
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise InputError(f"action {shown(twice)} is given twice; give each once")
    return labels


def read_list(given: Any, name: str) -> list[Any]:
    """One entry for each round."""
    if isinstance(given, str | bytes | dict) or not isinstance(given, Iterable):
        raise InputError(f"{name} are {shown(given)}; expected a list, one for each round")
    return list(given)


def check_lengths(first: Sequence[Any], **others: Sequence[Any]) -> None:
    """Refuse lists of which one is shorter than another."""
    for name, other in others.items():
        if len(other) != len(first):
            raise InputError(f"{len(other)} {name} for {len(first)} rounds; expected one for each")


def check_alike(contexts: Sequence[Context]) -> None:
    """Refuse contexts of several kinds."""
    if not isinstance(contexts, np.ndarray):
        widths = {0 if isinstance(one, dict) else len(one) for one in contexts}
        if len(widths) > 1:
            raise InputError(
                "the contexts are of several kinds; expected all dicts, or rows of as many "
                "numbers each"
            )


def check_seconds(name: str, value: Any) -> None:
    """Refuse what is not a number of seconds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 < value < 1e18:
        raise InputError(f"{name} is {shown(value)}; expected a number of seconds, above 0")
