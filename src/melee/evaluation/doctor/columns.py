"""The columns of a log's contexts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from melee.arrays import Floats, Ints
from melee.contexts import Context
from melee.task import LARGEST


class ContextColumn(NamedTuple):
    """The values of one name, or of one position in rows of numbers."""

    name: str
    numbers: Floats
    number_rows: Ints
    levels: list[str]
    level_rows: list[int]
    """A round with a group of texts has several entries, or none for an empty group."""
    present: Ints
    """Rounds in which the column has a value."""


def read_columns(contexts: Sequence[Context]) -> list[ContextColumn]:
    """All columns of the contexts, by name; contexts are all named or all of one width."""
    if not isinstance(contexts[0], dict):
        rows = _usable(np.array(contexts))
        every = np.arange(len(rows))
        return [
            ContextColumn(f"x{i}", rows[:, i], every, [], [], every) for i in range(rows.shape[1])
        ]
    numbers: dict[str, tuple[list[float], list[int]]] = {}
    texts: dict[str, tuple[list[str], list[int]]] = {}
    present: dict[str, list[int]] = {}
    for i, context in enumerate(contexts):
        assert isinstance(context, dict)
        for name, value in context.items():
            if value is None:
                continue
            present.setdefault(name, []).append(i)
            if isinstance(value, float):
                values, where = numbers.setdefault(name, ([], []))
                values.append(value)
                where.append(i)
            else:
                levels, at = texts.setdefault(name, ([], []))
                for level in (value,) if isinstance(value, str) else value:
                    levels.append(level)
                    at.append(i)
    return [
        ContextColumn(
            name,
            _usable(np.array(numbers[name][0] if name in numbers else [], dtype=np.float64)),
            np.array(numbers[name][1] if name in numbers else [], dtype=np.int64),
            *texts.get(name, ([], [])),
            np.array(rows, dtype=np.int64),
        )
        for name, rows in present.items()
    ]


def _usable(numbers: Floats) -> Floats:
    """Numbers as an agent takes them: what is too large for it is none."""
    return np.where(np.abs(numbers) <= LARGEST, numbers, np.nan)
