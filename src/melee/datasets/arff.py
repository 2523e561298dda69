"""A reader of ARFF, the text format of Weka and OpenML, into a pandas frame."""

import io
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.errors import DataError
from melee.extras import needed
from melee.limits import check_columns

if TYPE_CHECKING:
    import pandas as pd

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(\S.*)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*(?:({_QUOTED})\s*|([^,]*))(,|$)")
_SPARSE = re.compile(rf"\s*(\d{{1,9}})\s+(?:({_QUOTED})\s*|([^,]*))(,|$)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

Line = tuple[int, str]
"""A line of the file: its number, from 1, and its text."""


@dataclass(frozen=True)
class Attribute:
    """A column's declaration: its levels when nominal, else whether it holds numbers."""

    name: str
    levels: tuple[str, ...] | None
    numeric: bool


def read_arff(text: str, *, source: str) -> "pd.DataFrame":
    """The rows of an ARFF text: numbers as floats, nominal columns as categories, `?` as missing.

    Dates stay text. Sparse rows are filled in with 0, or with a nominal column's first level, as
    the format defines. Relational attributes, tables within a cell, are refused.

    >>> frame = read_arff('''@relation pets
    ... @attribute weight numeric
    ... @attribute 'its kind' {cat, 'guinea pig'}
    ... @data
    ... 4.5, cat
    ... ?, 'guinea pig' ''', source="pets.arff")
    >>> frame["weight"].tolist(), frame["its kind"].tolist()
    ([4.5, nan], ['cat', 'guinea pig'])
    """
    lines = [(i, line.strip()) for i, line in enumerate(text.splitlines(), start=1)]
    lines = [(i, line) for i, line in lines if line and not line.startswith("%")]
    start = next((k for k, (_, line) in enumerate(lines) if line.lower() == "@data"), None)
    if start is None:
        raise DataError(f"{source}: there is no @data line; an ARFF file has one above its rows")
    header = [line for line in lines[:start] if not line[1].lower().startswith("@relation")]
    check_columns(source, len(header))
    attributes = [_attribute(line, number, source) for number, line in header]
    names = [a.name for a in attributes]
    twice = sorted(name for name, n in Counter(names).items() if n > 1)
    if twice or not names:
        found = f"declares '{twice[0]}' twice" if twice else "declares no @attribute"
        raise DataError(f"{source}: the header {found}; give every column a name of its own")
    rows = lines[start + 1 :]
    if any(line[0] == "{" for _, line in rows):
        return _frame(_sparse_columns(rows, attributes, source), attributes)
    if any(mark in line for _, line in rows for mark in "'\"\\"):
        return _frame(_dense_columns(rows, attributes, source), attributes)
    return _frame(_plain_columns(rows, attributes, source), attributes)


def _attribute(line: str, number: int, source: str) -> Attribute:
    declared = _ATTRIBUTE.match(line)
    if declared is None:
        raise DataError(
            f"{source}: line {number} is {line[:40]!r}; expected @attribute NAME TYPE or @data"
        )
    name, kind = _unquote(declared[1]), declared[2].strip()
    if kind.startswith("{") and kind.endswith("}"):
        return Attribute(name, tuple(_unquote(v) for v in _values(kind[1:-1])), numeric=False)
    word = kind.split()[0].lower()
    if word in ("numeric", "real", "integer"):
        return Attribute(name, None, numeric=True)
    if word in ("string", "date"):
        return Attribute(name, None, numeric=False)
    raise DataError(
        f"{source}: line {number} declares '{name}' as {word}, which cannot be read; "
        "known types are numeric, real, integer, {nominal, levels}, string and date"
    )


def _values(line: str) -> list[str]:
    """The comma-separated values of a line, quotes still on."""
    values: list[str] = []
    at = 0
    while True:
        match = _VALUE.match(line, at)
        if match is None:  # something follows a closing quote: take the rest as it is
            return [*values, line[at:]]
        values.append(match[1] or match[2].rstrip())
        at = match.end()
        if match[3] == "":
            return values


def _unquote(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    if "\\" not in value:
        return value
    return re.sub(r"\\(.)", lambda escaped: _ESCAPES.get(escaped[1], escaped[1]), value)


def _plain_columns(rows: list[Line], attributes: list[Attribute], source: str) -> list[Any]:
    """Dense rows without quotes, which is most files: pandas parses them at C speed."""
    with needed("reading ARFF", "tables"):
        import pandas as pd

    for number, line in rows:
        if line.count(",") + 1 != len(attributes):
            raise _ragged(source, number, line.count(",") + 1, len(attributes))
    if not rows:
        return [[] for _ in attributes]
    names = list(range(len(attributes)))
    frame = pd.read_csv(
        io.StringIO("\n".join(line for _, line in rows)),
        header=None,
        names=names,
        dtype={i: str for i in names if not attributes[i].numeric},
        na_values=["?"],
        keep_default_na=False,
        skipinitialspace=True,
        low_memory=False,
    )
    for i, attribute in enumerate(attributes):
        if not attribute.numeric:
            frame[i] = frame[i].str.rstrip()
        elif not pd.api.types.is_numeric_dtype(frame[i]):
            frame[i] = [_number(v, rows[k], attribute, source) for k, v in enumerate(frame[i])]
        _check_levels(frame[i], rows, attribute, source)
    return [frame[i] for i in names]


def _dense_columns(rows: list[Line], attributes: list[Attribute], source: str) -> list[Any]:
    columns: list[list[Any]] = [[] for _ in attributes]
    for row in rows:
        values = _values(row[1])
        if len(values) != len(attributes):
            raise _ragged(source, row[0], len(values), len(attributes))
        for column, attribute, value in zip(columns, attributes, values, strict=True):
            column.append(_cell(value, row, attribute, source))
    return columns


def _sparse_columns(rows: list[Line], attributes: list[Attribute], source: str) -> list[Any]:
    columns: list[Any] = [
        np.zeros(len(rows)) if a.numeric else [a.levels[0] if a.levels else None] * len(rows)
        for a in attributes
    ]
    for k, row in enumerate(rows):
        number, line = row
        if not (line.startswith("{") and line.endswith("}")):
            raise DataError(f"{source}: line {number} is not sparse like the others: {line[:40]!r}")
        inside, at = line[1:-1].strip(), 0
        while at < len(inside):
            match = _SPARSE.match(inside, at)
            if match is None or int(match[1]) >= len(attributes):
                raise DataError(
                    f"{source}: line {number} has {inside[at:][:40]!r}; expected 'INDEX VALUE' "
                    f"with an index from 0 to {len(attributes) - 1}"
                )
            i, at = int(match[1]), match.end()
            columns[i][k] = _cell(match[2] or match[3].rstrip(), row, attributes[i], source)
    return columns


def _cell(value: str, row: Line, attribute: Attribute, source: str) -> Any:
    if value == "?":
        return np.nan if attribute.numeric else None
    value = _unquote(value)
    if attribute.numeric:
        return _number(value, row, attribute, source)
    _check_levels([value], [row], attribute, source)
    return value


def _number(value: Any, row: Line, attribute: Attribute, source: str) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf if value > 0 else -math.inf
    except ValueError:
        raise DataError(
            f"{source}: line {row[0]} has {value!r} in '{attribute.name}', declared as "
            "numeric; mend the value, or declare it as string"
        ) from None


def _check_levels(values: Any, rows: list[Line], attribute: Attribute, source: str) -> None:
    if attribute.levels is None:
        return
    stray = set(values) - set(attribute.levels)
    for (number, _), value in zip(rows, values, strict=True) if stray else ():
        if value in stray and isinstance(value, str):
            raise DataError(
                f"{source}: line {number} has {value!r} in '{attribute.name}', which declares "
                f"only {', '.join(attribute.levels[:10])}; add it there, or mend the line"
            )


def _ragged(source: str, number: int, found: int, expected: int) -> DataError:
    return DataError(
        f"{source}: line {number} has {found} values and the header declares {expected}; "
        "repair that line"
    )


def _frame(columns: list[Any], attributes: list[Attribute]) -> "pd.DataFrame":
    with needed("reading ARFF", "tables"):
        import pandas as pd

    def typed(values: Any, attribute: Attribute) -> Any:
        if attribute.numeric:
            return np.asarray(values, dtype=np.float64)
        if attribute.levels is not None:
            return pd.Categorical(values, categories=list(dict.fromkeys(attribute.levels)))
        return pd.array(list(values), dtype="str")

    return pd.DataFrame({a.name: typed(c, a) for c, a in zip(columns, attributes, strict=True)})
