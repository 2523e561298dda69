"""Labels of actions: any hashable value, and how one is written as JSON.

Texts, numbers, true, false and None are written as they are, a tuple as {"tuple": [...]}.
"""

import math
from typing import Any, TypeAlias

import numpy as np

from melee.errors import InputError, shown

Label: TypeAlias = Any
"""A hashable value; texts and numbers are what most people use."""

_DEPTH = 8
_BITS = 1024


def check_label(label: Label) -> Label:
    """The label, if a decision could be looked up by it; a scalar of NumPy as Python's."""
    if isinstance(label, np.generic):
        label = label.item()
    try:
        hash(label)
        findable = bool(label == label)  # a NaN is not
    except Exception:
        findable = False
    if not findable:
        raise InputError(
            f"action {shown(label)} is no label; expected a hashable value, such as a text or a "
            "number"
        )
    return label


def label_to_json(label: Label, depth: int = 0) -> Any:
    """What `json.dumps` can write, from which `label_from_json` gives the label again.

    >>> label_to_json(("banner", 3))
    {'tuple': ['banner', 3]}
    """
    if label is None or type(label) in (str, bool):
        return label
    if type(label) is int and label.bit_length() <= _BITS:
        return label
    if type(label) is float and math.isfinite(label):
        return label
    if type(label) is tuple and depth < _DEPTH:
        return {"tuple": [label_to_json(part, depth + 1) for part in label]}
    raise InputError(
        f"action {shown(label)} cannot be written to a file; use texts, numbers or tuples of them "
        "as labels"
    )


def label_from_json(given: Any, depth: int = 0) -> Label:
    """The label that was written.

    >>> label_from_json({"tuple": ["banner", 3]})
    ('banner', 3)
    """
    if given is None or type(given) in (str, bool, int, float):
        return given
    if isinstance(given, dict) and list(given) == ["tuple"] and depth < _DEPTH:
        parts = given["tuple"]
        if isinstance(parts, list):
            return tuple(label_from_json(part, depth + 1) for part in parts)
    raise InputError(
        f"{shown(given)} is not the label of an action; expected a text, a number, true, false, "
        'null, or {"tuple": [...]} of these'
    )
