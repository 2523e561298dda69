"""The rows of a table as they were read, before anything is encoded.

An agent meets a row as names and values. A table keeps them by column, which takes less memory than
the table itself; a row becomes a dict when it is asked for.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats


class Texts(NamedTuple):
    """A column of texts: for each row the number of its level, or -1 where it is missing."""

    codes: npt.NDArray[np.int32]
    levels: tuple[str, ...]


class Rows(Sequence[dict[str, float | str | None]]):
    """Rows of names and values: numbers, texts, or None where a value is missing.

    Parameters
    ----------
    columns
        By name, all of one length: numbers with NaN where they are missing, or texts.
    n_rows
        How many rows there are where there is no column to tell.

    Examples
    --------
    >>> colours = Texts(np.array([0, -1], np.int32), ("red",))
    >>> rows = Rows({"age": np.array([31.0, np.nan]), "colour": colours})
    >>> rows[0], rows[1]
    ({'age': 31.0, 'colour': 'red'}, {'age': None, 'colour': None})
    """

    def __init__(self, columns: Mapping[str, Floats | Texts], *, n_rows: int = 0) -> None:
        self.columns = dict(columns)
        self.n_rows = n_rows

    @classmethod
    def of_numbers(cls, names: Sequence[str], matrix: Floats) -> "Rows":
        """The rows of a matrix, whose columns have these names; nothing is copied."""
        return cls({name: matrix[:, i] for i, name in enumerate(names)})

    def __len__(self) -> int:
        for column in self.columns.values():
            return len(column.codes if isinstance(column, Texts) else column)
        return self.n_rows

    def __getitem__(self, row: int) -> dict[str, float | str | None]:  # type: ignore[override]
        if not self.columns and not -self.n_rows <= row < self.n_rows:
            raise IndexError(f"there is no row {row}: there are {self.n_rows}")
        values: dict[str, float | str | None] = {}
        for name, column in self.columns.items():
            if isinstance(column, Texts):
                code = column.codes.item(row)
                values[name] = None if code < 0 else column.levels[code]
            else:
                number = column.item(row)
                values[name] = None if number != number else number
        return values

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Rows":
        """Only some of the rows, in their order."""
        return Rows(
            {
                name: Texts(column.codes[chosen], column.levels)
                if isinstance(column, Texts)
                else column[chosen]
                for name, column in self.columns.items()
            },
            n_rows=int(chosen.sum()),
        )

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of names and values: an agent's decisions depend on both."""
        digest = hashlib.sha256()
        for name, column in self.columns.items():
            digest.update(repr(name).encode("utf-8", "surrogatepass"))
            if isinstance(column, Texts):
                digest.update(repr(column.levels).encode("utf-8", "surrogatepass"))
                digest.update(np.ascontiguousarray(column.codes, "<i4").data)
            else:
                numbers = np.ascontiguousarray(column, "<f8")
                digest.update(np.where(np.isnan(numbers), np.nan, numbers).data)  # one kind of NaN
        return digest.hexdigest()
