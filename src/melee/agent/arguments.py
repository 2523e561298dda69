"""What callers pass to an agent, read and checked."""

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from melee.contexts import Context
from melee.errors import InputError, shown
from melee.labels import Label, check_label


def read_labels(actions: Any, least: int) -> list[Label]:
    """Labels of actions, each once, at least so many."""
    labels = [check_label(label) for label in _listed(actions, "actions", "labels")]
    if len(labels) < least:
        raise InputError("there are no actions; expected at least one")
    seen: set[Label] = set()
    for label in labels:
        if is_in(label, seen):
            raise InputError(f"action {shown(label)} is given twice; give each once")
        seen.add(label)
    return labels


def read_open(actions: Any) -> list[Label]:
    """Labels of those that are open, of actions that an agent has."""
    is_table = hasattr(actions, "columns")
    if is_table or isinstance(actions, dict):
        raise InputError(
            f"actions are {'a table' if is_table else shown(actions)}; expected a list of labels, "
            "for this agent has actions of its own. Candidates with features are for one that was "
            "made without: Agent()"
        )
    return read_labels(actions, 1)


def is_for_each(actions: Any) -> bool:
    """Whether these are lists of actions, one for each of many contexts, and not labels.

    None beside lists stands for all actions. A tuple is a label.
    """
    is_single = isinstance(actions, np.ndarray) and actions.ndim == 0
    if is_single or isinstance(actions, str | bytes | dict | set | frozenset):
        return False
    if not isinstance(actions, Iterable) or isinstance(actions, Iterator):
        return False
    return any(isinstance(entry, list | set | np.ndarray) for entry in actions)


def is_in(label: Label, known: Container[Label]) -> bool:
    """Whether a label is among others; one that cannot be compared is refused."""
    try:
        return label in known
    except Exception:
        raise InputError(
            f"action {shown(label)} cannot be compared with others; expected a text, a number or "
            "another plain value"
        ) from None


def read_list(given: Any, name: str) -> list[Any]:
    """One entry for each round."""
    return _listed(given, name, "one entry per round")


def _listed(given: Any, name: str, expected: str) -> list[Any]:
    is_single = isinstance(given, np.ndarray) and given.ndim == 0
    if is_single or isinstance(given, str | bytes | dict) or not isinstance(given, Iterable):
        raise InputError(f"{name} are {shown(given)}; expected a list of {expected}")
    return list(given)


def check_lengths(first: Sequence[Any], **others: Sequence[Any]) -> None:
    """Refuse lists of which one is shorter than another."""
    for name, other in others.items():
        if len(other) != len(first):
            raise InputError(f"{len(other)} {name} for {len(first)} rounds; expected one for each")


def check_alike(contexts: Sequence[Context]) -> None:
    """Refuse contexts of several kinds."""
    if not isinstance(contexts, np.ndarray):
        widths = {0 if isinstance(context, dict) else len(context) for context in contexts}
        if len(widths) > 1:
            raise InputError(
                "the contexts are of several kinds; expected all dicts, or rows of as many "
                "numbers each"
            )


def check_seconds(name: str, value: Any) -> None:
    """Refuse what is not a number of seconds."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) < 1e18:
        raise InputError(f"{name} is {shown(value)}; expected a number of seconds, above 0")


def read_path(name: str, value: Any) -> Path:
    """Where a file is."""
    is_path = isinstance(value, str | os.PathLike) and isinstance(os.fspath(value), str)
    if not is_path or "\0" in os.fspath(value) or not os.fspath(value):
        raise InputError(f"{name} is {shown(value)}; expected the path of a file")
    return Path(value)
