"""From contexts to rows of numbers, by a map that learns as it goes.

Contexts that are rows of numbers are taken as they are; the first one says how many there are.
In a named context every name is a column:

- a number has a feature of its own;
- a text, or each of a group of texts, is a *level* with a feature that is 1 where it occurs. Until
  a level has been learned from `rare` times it shares one feature with the column's rare ones;
- missing is a value. A column that was always there gets a feature that says "missing" when it
  first is; one that appears later gets a feature that says "present". A missing number counts as
  the mean of those seen.

New columns and levels get new features, at the end. Whatever a context of the past would have had
there is what `filled` says: 0, or for a number its mean. So a model that takes new features in with
that value for its whole past is exactly the model that had always had them.

A number that first appears late, when the scale of the others has settled, is standardized here, by
its first 32 values; until then it counts as 0.

There are never more than `max_features`. The last eighth of them are buckets: when all others are
taken, new columns and levels are hashed into these, and a warning says so, once.
"""

import math
import zlib
from typing import Any, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints
from melee.checks import read_number, read_text, read_whole
from melee.contexts import MAX_ENTRIES, Context, Named, Value
from melee.errors import DataError, InputError
from melee.standardizing import LIMIT, is_constant, scaled

SETTLED = 256
"""Contexts after which a new column is late, and values after which a mean no longer moves."""
WATCHED = 32
"""Values by which a late number is standardized."""
_FLOATS = {float}
_CANDIDATES = 8
"""Rare levels that are counted, per feature of the cap."""


class Column:
    """What is known of one name."""

    __slots__ = (
        "count",
        "late",
        "levels",
        "mean",
        "missing",
        "number",
        "present",
        "rare",
        "size",
        "square",
    )

    def __init__(self, *, late: bool) -> None:
        self.late = late
        self.count = 0  # numbers seen, up to SETTLED, which a late one has after WATCHED
        self.mean = 0.0
        self.size = 1.0  # the deviation of a late number
        self.square = 0.0  # sum of squared deviations from the mean
        self.number = self.missing = self.present = self.rare = -1  # features, -1 for none
        self.levels: dict[str, int] = {}

    def standardized(self, value: float) -> float:
        """A late number in units of its first values; 0 until they are known."""
        if self.count < SETTLED:
            return 0.0
        return scaled(value, self.mean, 1.0 / self.size, LIMIT)

    def to_json(self) -> dict[str, Any]:
        """Everything in it, copied."""
        fields = {field: getattr(self, field) for field in Column.__slots__}
        return {**fields, "levels": self.levels.copy()}

    @classmethod
    def from_json(cls, given: Any, n_features: int) -> "Column":
        """The column that was written, of a map of so many features."""
        column = cls(late=given["late"] is True)
        column.count = read_whole(given["count"], 0)
        column.mean = read_number(given["mean"])
        column.square = read_number(given["square"], 0.0, 1e300)
        column.size = read_number(given["size"], 1e-300)
        for field in ("number", "missing", "present", "rare"):
            setattr(column, field, read_whole(given[field], -1, n_features))
        levels = given["levels"].items()
        if len(levels) > n_features:
            raise DataError("a column of more levels than there are features")
        column.levels = {
            read_text(level): read_whole(number, 0, n_features) for level, number in levels
        }
        return column


class _Plain(NamedTuple):
    """Contexts of numbers alone: their names, where each number goes, and the rest of the row."""

    revision: int
    names: list[str]
    places: Ints
    values: Floats | None  # None where the numbers are the row


class FeatureMap:
    """Turns contexts into rows of numbers; grows as it learns names and levels.

    Parameters
    ----------
    max_features
        The cap on features of named contexts.
    rare
        How often a level must be learned from before it has a feature of its own.

    Examples
    --------
    >>> import numpy as np
    >>> features = FeatureMap(rare=1)
    >>> features.learn({"age": 31.0, "device": "phone"})
    >>> features.names
    ['age', 'device=phone']
    >>> row = np.empty(features.n_features)
    >>> features.encode({"age": 40.0, "device": "tablet"}, row)
    False
    >>> row
    array([40.,  0.])
    """

    def __init__(self, max_features: int = 200, rare: int = 3) -> None:
        self.max_features, self.rare = max_features, rare
        self.width: int | None = None  # of contexts that are numbers; 0: they are named
        self.names: list[str] = []
        self.columns: dict[str, Column] = {}
        self.n_learned = 0
        self.first_bucket = -1
        self.candidates: dict[str, int] = {}  # how often rare levels were seen
        self._absent: list[float] = []  # the row of a context without any name
        self.filled: list[float] = []
        self._plain: _Plain | None = None
        self.revision = 0  # changes whenever a context may be encoded differently
        self.layout = 0  # changes whenever one may that has all numbers (see `has_numbers`)
        self.limit = max_features  # what memory allows, where that is less
        self.notice: str | None = None  # what a user should be told, once
        self.n_features = 1  # the length of a row; 1 where no feature is known yet

    def expect(self, context: Context) -> None:
        """Fix whether contexts are named or numbers, by the first one; refuse another kind."""
        width = 0 if type(context) is dict else len(context)
        if width == self.width:
            return
        if self.width is None:
            self.width = width
            self.names = [f"x{i}" for i in range(width)]
            self.filled = [0.0] * width
            self.n_features = max(width, 1)
            return
        kinds = [f"{n} numbers" if n else "a dict of names and values" for n in (width, self.width)]
        raise InputError(
            f"the context is {kinds[0]}; expected {kinds[1]}, as the first one was: make a new "
            "agent for other contexts"
        )

    def encode(self, context: Context, row: Floats) -> bool:
        """Overwrite a row with a context's features. What is not known yet is left out.

        Returns whether `learn` would find nothing new in it.
        """
        if not isinstance(context, dict):
            row[:] = context
            return True
        plain = self._plain
        if plain is not None and plain.revision == self.revision and [*context] == plain.names:
            numbers = [*context.values()]
            if {*map(type, numbers)} == _FLOATS:
                if plain.values is None:
                    row[:] = numbers
                else:
                    row[:] = plain.values
                    row[plain.places] = numbers
                return True
        known = len(context) == len(self.columns)
        values = self._absent.copy() or [0.0]
        for name, value in context.items():
            column = self.columns.get(name)
            if column is None:
                known = False
                if self.first_bucket >= 0:
                    self._hash_all(name, value, values)
                continue
            if value is None:
                known = known and column.missing + column.present > -2
                continue
            if column.missing >= 0:
                values[column.missing] = 0.0
            if column.present >= 0:
                values[column.present] = 1.0
            if isinstance(value, float):
                if column.count < SETTLED:
                    known = False
                if column.number >= 0:
                    values[column.number] = column.standardized(value) if column.late else value
                elif self.first_bucket >= 0:
                    self._hash_all(name, value, values)
            else:
                for level in (value,) if isinstance(value, str) else value:
                    feature = column.levels.get(level, -1)
                    if feature >= 0:
                        values[feature] = 1.0
                    elif self.first_bucket >= 0:
                        self._hash(name, level, 1.0, values)
                    else:
                        known = False
                        if column.rare >= 0:
                            values[column.rare] = 1.0
        row[:] = values
        if known and self.first_bucket < 0:
            self._note_plain(context, values)
        return known

    def _note_plain(self, context: Named, values: list[float]) -> None:
        """Remember what a context of nothing but numbers becomes: most come again like that."""
        columns = [self.columns[name] for name in context]
        if all(type(value) is float for value in context.values()) and not any(
            column.late or column.number < 0 for column in columns
        ):
            places = [column.number for column in columns]
            rest = None if places == [*range(len(values))] else np.array(values)
            self._plain = _Plain(self.revision, [*context], np.array(places, np.int64), rest)

    def has_numbers(self, context: Context) -> bool:
        """Whether no number is missing, in whose place there would be the mean of those so far."""
        if not isinstance(context, dict):
            return True
        return all(
            column.number < 0 or column.late or type(context.get(name)) is float
            for name, column in self.columns.items()
        )

    def leave_out(self, name: str, value: Value, usual: Floats, row: Floats) -> None:
        """Overwrite what a context's row has of one name with what is usual there.

        What its value put into buckets is taken out of them.
        """
        column = self.columns.get(name)
        if column is not None:
            own = (column.number, column.missing, column.present, column.rare)
            for feature in (*own, *column.levels.values()):
                if feature >= 0:
                    row[feature] = usual[feature]
        if self.first_bucket >= 0:
            hashed = [0.0] * self.n_features
            if column is None or (isinstance(value, float) and column.number < 0):
                self._hash_all(name, value, hashed)
            elif isinstance(value, str | tuple):
                for level in (value,) if isinstance(value, str) else value:
                    if level not in column.levels:
                        self._hash(name, level, 1.0, hashed)
            row -= hashed

    def learn(self, context: Context) -> None:
        """Note the names and levels of a context; `n_features` may grow by it."""
        self.expect(context)
        self.n_learned += 1
        if not isinstance(context, dict):
            return
        known = 0
        for name, value in context.items():
            column = self.columns.get(name)
            if column is None:
                column = self._new_column(name, value)
                if column is None:
                    continue
            known += 1
            if isinstance(value, float):
                if column.count < SETTLED:
                    self._see_number(name, column, value)
            elif value is None:
                self._see_missing(name, column)
            else:
                for level in (value,) if isinstance(value, str) else value:
                    if level not in column.levels:
                        self._see_rare(name, column, level)
        if known < len(self.columns):
            for name, column in self.columns.items():
                if name not in context:
                    self._see_missing(name, column)

    def _new_column(self, name: str, value: Value) -> Column | None:
        if value is None or (isinstance(value, tuple) and not value and self.n_learned > 1):
            return None  # missing so far: nothing to tell it from the past
        column = Column(late=self.n_learned > SETTLED)
        if self.n_learned > 1:
            column.present = self._new_feature(f"{name} is present")
            if column.present < 0:
                return None
        self.columns[name] = column
        return column

    def _see_number(self, name: str, column: Column, value: float) -> None:
        if column.number < 0 and column.count == 0:
            column.number = self._new_feature(name, 0.0 if column.late else value)
            if column.number < 0:
                return
        self.revision += 1
        column.count += 1
        step = value - column.mean
        column.mean += step / column.count
        column.square += step * (value - column.mean)
        if not column.late:
            self._absent[column.number] = column.mean
        elif column.count == WATCHED:
            size = math.sqrt(column.square / WATCHED)
            if is_constant(size, abs(column.mean)):
                column.count -= 1  # the same so far: watch on until it varies
            else:
                column.size, column.count = size, SETTLED
                self.layout += 1

    def _see_missing(self, name: str, column: Column) -> None:
        if column.missing < 0 and column.present < 0:
            column.missing = self._new_feature(f"{name} is missing")
            if column.missing >= 0:
                self._absent[column.missing] = 1.0

    def _see_rare(self, name: str, column: Column, level: str) -> None:
        if self.first_bucket >= 0:
            return
        key = f"{name}={level}"
        count = self.candidates.pop(key, 0) + 1
        if count >= self.rare:
            feature = self._new_feature(key)
            if feature >= 0:
                column.levels[level] = feature
            return
        if column.rare < 0:
            column.rare = self._new_feature(f"{name}=(rare)")
        self.candidates[key] = count  # the one seen last is the last
        if len(self.candidates) > _CANDIDATES * self.max_features:
            latest = list(self.candidates.items())[len(self.candidates) // 2 :]
            self.candidates = dict(latest)

    def _new_feature(self, name: str, fill: float = 0.0) -> int:
        """The number of a new feature, or -1 where there is no room for one."""
        most = min(self.max_features, self.limit)
        buckets = max(most // 8, 1)
        if self.first_bucket >= 0:
            return -1
        if len(self._absent) + buckets >= most:
            self.first_bucket = len(self._absent)
            for i in range(buckets):
                self._append(f"(bucket {i})", 0.0)
            self.candidates = {}
            self.notice = (
                f"contexts have more than {self.first_bucket} features: from now on new names and "
                f"levels share {buckets} features by hashing. Leave out names that identify single "
                "rounds, or raise max_features"
            )
            return -1
        return self._append(name, fill)

    def _append(self, name: str, fill: float) -> int:
        self.names.append(name)
        self._absent.append(fill)
        self.filled.append(fill)
        self.n_features = len(self._absent)
        self.revision += 1
        self.layout += 1
        return len(self._absent) - 1

    def _hash_all(self, name: str, value: Value, values: list[float]) -> None:
        if isinstance(value, float):  # its scale is not known: signed logarithms are of one order
            self._hash(name, "", math.copysign(math.log1p(abs(value)), value), values)
        elif value is not None:
            for level in (value,) if isinstance(value, str) else value:
                self._hash(name, level, 1.0, values)

    def _hash(self, name: str, level: str, size: float, values: list[float]) -> None:
        code = zlib.crc32(f"{name}={level}".encode("utf-8", "surrogatepass"))
        bucket = self.first_bucket + (code >> 1) % (len(self._absent) - self.first_bucket)
        values[bucket] += size if code & 1 else -size

    def to_json(self) -> dict[str, Any]:
        """Everything that it has learned, copied."""
        return {
            "max_features": self.max_features,
            "rare": self.rare,
            "width": self.width,
            "names": self.names.copy(),
            "n_learned": self.n_learned,
            "first_bucket": self.first_bucket,
            "revision": self.revision,
            "candidates": self.candidates.copy(),
            "absent": self._absent.copy(),
            "columns": {name: column.to_json() for name, column in self.columns.items()},
        }

    @classmethod
    def from_json(cls, given: Any) -> "FeatureMap":
        """The map that was written; a DataError for what could not have been one."""
        features = cls(read_whole(given["max_features"], 1), read_whole(given["rare"], 1))
        features.width = None if given["width"] is None else read_whole(given["width"], 0)
        features.names = [read_text(name) for name in given["names"]]
        features.n_learned = read_whole(given["n_learned"], 0)
        features.revision = read_whole(given["revision"], 0)
        features.first_bucket = read_whole(given["first_bucket"], -1)
        features.candidates = {
            read_text(k): read_whole(n, 1) for k, n in given["candidates"].items()
        }
        features._absent = [read_number(value) for value in given["absent"]]
        features.filled = features._absent.copy()
        n = len(features._absent)
        features.n_features = features.width or max(n, 1)
        fits = features.first_bucket < n <= features.max_features
        fits = fits and (features.width == 0 or n == 0)
        fits = fits and len(features.candidates) <= _CANDIDATES * features.max_features
        fits = fits and len(given["columns"]) <= MAX_ENTRIES + n
        if not fits or len(features.names) != (features.width or n):
            raise DataError("its features do not fit together")
        for name, fields in given["columns"].items():
            features.columns[read_text(name)] = Column.from_json(fields, n)
        return features
