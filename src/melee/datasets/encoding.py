"""Columns of any table as numbers: one-hot levels, filled gaps, and notes on what was done."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats
from melee.errors import DataError
from melee.extras import needed
from melee.rows import Rows, Texts

if TYPE_CHECKING:
    import pandas as pd

MAX_LEVELS = 20
"""A categorical column keeps at most this many levels of its own."""

MIN_SHARE = 0.01
"""A level in fewer than this share of the rows, or in one row only, is folded into `other`."""

ID_SHARE = 0.9
"""A text column in which more than this share of the values differ names rows, not levels."""

_ID_NAME = re.compile(r"(.*[\W_])?id|idx|index|row|rowid|rownum|instance|unnamed: 0", re.I)


@dataclass
class Encoding:
    """The features of a table so far, and what happened to its columns."""

    features: list[Floats] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    row_names: list[str] = field(default_factory=list)
    one_hot: list[str] = field(default_factory=list)
    folded: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """One sentence for each kind of change."""
        said = [
            ("left out columns whose value never changes", self.constant),
            ("left out columns that name the row", self.row_names),
            ("encoded one column per level", self.one_hot),
            ("folded rare levels into 'other'", self.folded),
            ("filled missing values and marked them in a column of their own", self.filled),
        ]
        return [f"{what}: {listed(columns)}" for what, columns in said if columns]


def encode(frame: "pd.DataFrame", *, source: str) -> Encoding:
    """Every column of the frame as finite numbers without gaps.

    Numbers and truth values stay one column; everything else becomes one 0/1 column per level,
    named `column=level`. Gaps take the median or the most frequent level and are marked in a
    column `column is missing`. Left out are columns that never change, text in which nearly every
    value differs, and row counters that are called id or index.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20, None, 40, 60], "sex": ["f", "m", "f", "m"]})
    >>> encoding = encode(frame, source="people.csv")
    >>> encoding.names
    ['age', 'age is missing', 'sex=f', 'sex=m']
    >>> encoding.features[0].tolist()
    [20.0, 40.0, 40.0, 60.0]
    """
    encoding = Encoding()
    for label, column in frame.items():
        name = str(label)
        numbers = as_numbers(column, name, source=source)
        if numbers is not None:
            _add_numbers(encoding, name, numbers)
        else:
            _add_levels(encoding, name, column, source=source)
    return encoding


def as_numbers(column: "pd.Series[Any]", name: str, *, source: str) -> Floats | None:
    """The column as floats with NaN where values are missing, or None if it holds no numbers."""
    with needed("reading tables", "tables"):
        import pandas as pd

    kind = column.dtype
    if pd.api.types.is_object_dtype(kind):
        inside = pd.api.types.infer_dtype(column, skipna=True)
        if inside in ("mixed", "bytes"):
            odd = next((v for v in column if not isinstance(v, str | int | float | None)), None)
            if isinstance(odd, list | tuple | dict | set | bytes | np.ndarray):
                raise DataError(
                    f"{source}: column '{name}' holds a {type(odd).__name__} in a cell; "
                    "give every number a column of its own"
                )
        if inside not in ("boolean", "integer", "floating", "mixed-integer-float", "decimal"):
            return None
    elif not pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_complex_dtype(kind):
        return None
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except OverflowError:  # a whole number of hundreds of digits
        numbers = np.array([_float(value) for value in column])
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError(
            f"{source}: column '{name}' holds {numbers[row]} in data row {row + 1}, or a number of "
            "that size; replace it, or leave the field empty to mark it as missing"
        )
    return numbers


def as_rows(frame: "pd.DataFrame", *, source: str) -> Rows:
    """The frame's rows as an agent meets them: numbers and texts, nothing filled or left out.

    >>> import pandas as pd
    >>> as_rows(pd.DataFrame({"age": [20, None], "sex": ["f", "m"]}), source="people.csv")[1]
    {'age': None, 'sex': 'm'}
    """
    columns: dict[str, Floats | Texts] = {}
    for label, column in frame.items():
        numbers = as_numbers(column, str(label), source=source)
        if numbers is None:
            codes, levels = distinct(column, str(label), source=source)
            columns[str(label)] = Texts(
                codes.astype(np.int32), tuple(str(level) for level in levels)
            )
        else:
            columns[str(label)] = numbers
    return Rows(columns)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
    except TypeError:  # None, for missing
        return np.nan


def _add_numbers(encoding: Encoding, name: str, numbers: Floats) -> None:
    missing = np.isnan(numbers)
    known = numbers[~missing] if missing.any() else numbers
    if known.size == 0 or (known.size == numbers.size and (known == known[0]).all()):
        encoding.constant.append(name)
    elif _counts_rows(name, numbers):
        encoding.row_names.append(name)
    else:
        if (known != known[0]).any():
            encoding.names.append(name)
            encoding.features.append(np.where(missing, np.median(known), numbers))
        _mark_missing(encoding, name, missing, "median")


def _counts_rows(name: str, numbers: Floats) -> bool:
    """Whether an id-like name heads the sequence 0, 1, 2, ... or 1, 2, 3, ..."""
    if numbers[0] not in (0.0, 1.0) or not _ID_NAME.fullmatch(name):
        return False
    return bool((numbers == np.arange(numbers.size) + numbers[0]).all())


def distinct(column: "pd.Series[Any]", name: str, *, source: str) -> tuple[Any, Any]:
    """Every row's index into the column's distinct values, -1 where there is none, and those."""
    with needed("reading tables", "tables"):
        import pandas as pd

    try:
        codes, found = pd.factorize(column, sort=False)
    except TypeError:
        raise DataError(
            f"{source}: column '{name}' holds a list or a structure in a cell; give every value of "
            "it a column of its own"
        ) from None
    return codes, found


def _add_levels(encoding: Encoding, name: str, column: "pd.Series[Any]", *, source: str) -> None:
    codes, found = distinct(column, name, source=source)
    levels = np.array([str(level) for level in found], dtype=object)
    missing = codes < 0
    n_known = int(codes.size - missing.sum())
    if n_known == 0 or (levels.size == 1 and n_known == codes.size):
        encoding.constant.append(name)
        return
    if levels.size > max(1.0, ID_SHARE * n_known):
        encoding.row_names.append(name)
        return
    counts = np.bincount(codes[~missing], minlength=levels.size)
    codes = np.where(missing, int(np.argmax(counts)), codes)

    # Most frequent first, then by name, so that row order does not choose what is folded.
    order = sorted(range(levels.size), key=lambda i: (-counts[i], levels[i]))
    enough = max(2.0, MIN_SHARE * codes.size)
    kept = [i for i in order[:MAX_LEVELS] if counts[i] >= enough]
    n_folded = levels.size - len(kept)
    if n_folded == 1 and levels.size <= MAX_LEVELS:  # alone in `other`, it may keep its name
        kept, n_folded = order, 0
    if levels.size > 1:
        _add_one_hot(encoding, name, codes, levels, kept)
        encoding.one_hot.append(f"{name} ({len(kept) + (n_folded > 0)})")
    if n_folded:
        encoding.folded.append(f"{name} ({n_folded} of {levels.size})")
    _mark_missing(encoding, name, missing, "most frequent level")


def _add_one_hot(
    encoding: Encoding, name: str, codes: npt.NDArray[Any], levels: Any, kept: list[int]
) -> None:
    members: dict[str, list[int]] = {
        str(levels[i]): [i] for i in sorted(kept, key=lambda i: levels[i])
    }
    rest = sorted(set(range(levels.size)) - set(kept))
    if rest:  # a level that is itself called `other` is joined by the folded ones
        members.setdefault("other", []).extend(rest)
    for level, indices in members.items():
        belongs = np.zeros(levels.size)
        belongs[indices] = 1.0
        encoding.names.append(f"{name}={level}")
        encoding.features.append(belongs[codes])


def _mark_missing(encoding: Encoding, name: str, missing: npt.NDArray[Any], how: str) -> None:
    if missing.any():
        encoding.names.append(f"{name} is missing")
        encoding.features.append(missing.astype(np.float64))
        encoding.filled.append(f"{name} ({int(missing.sum())} rows, {how})")


def listed(names: list[str], most: int = 8) -> str:
    """The names in a row, cut short after the first few.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
