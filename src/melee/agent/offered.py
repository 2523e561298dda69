"""`Offered`: the candidates of one decision, and the forms in which callers give them."""

import zlib
from typing import Any, NamedTuple

import numpy as np

from melee.agent.knowledge import Labels
from melee.arrays import Ints
from melee.contexts import Context
from melee.errors import InputError, shown
from melee.labels import Label

MOST_CANDIDATES = 2**17
"""Candidates of one decision."""


class Offered(NamedTuple):
    """The candidates of one decision, read and checked."""

    labels: Labels
    features: tuple[Context, ...]
    content: Ints  # a checksum of the labels


def offer(labels: Labels, features: tuple[Context, ...]) -> Offered:
    """Candidates that were read."""
    content = zlib.crc32(repr(labels).encode("utf-8", "surrogatepass"))
    return Offered(labels, features, np.array([content], np.int64))


def listed(actions: Any) -> list[tuple[Label, Any]]:
    """Candidates as pairs of a label and features, as they were given."""
    pairs = _pairs(actions)
    if not 1 <= len(pairs) <= MOST_CANDIDATES:
        raise InputError(f"there are {len(pairs)} candidates; expected 1 to {MOST_CANDIDATES:,}")
    return pairs


def _pairs(actions: Any) -> list[tuple[Label, Any]]:
    if isinstance(actions, dict):
        return list(actions.items())
    library = type(actions).__module__.partition(".")[0]
    if library in ("pandas", "polars") and hasattr(actions, "columns"):
        return _rows_of(actions, library)
    is_list = isinstance(actions, list | tuple | set | frozenset)
    if is_list and not any(isinstance(label, dict) for label in actions):
        return [(label, None) for label in actions]
    raise InputError(
        f"actions are {shown(actions)}; expected candidates as a dict of labels and features, or "
        "a table whose index, or column `id`, has their labels"
    )


def _rows_of(table: Any, library: str) -> list[tuple[Label, Any]]:
    """The rows of a table; NaN in those of pandas stands for missing values."""
    names = list(table.columns)
    if len(set(names)) < len(names):
        raise InputError("the table of candidates has two columns of one name; rename one")
    if library == "polars":
        if "id" not in names:
            raise InputError("the table of candidates has no column `id`; expected their labels")
        rows = list(table.iter_rows(named=True))
        return [(row.pop("id"), row) for row in rows]
    rows = table.to_dict("records")
    labels = [row.pop("id") for row in rows] if "id" in names else table.index.tolist()
    return [
        (label, {k: None if isinstance(v, float) and v != v else v for k, v in row.items()})
        for label, row in zip(labels, rows, strict=True)
    ]
