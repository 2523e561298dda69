"""Contexts as people have them, read into one of two forms.

- *Named*: a dictionary of numbers, texts, groups of texts and missing values, from a dict or a
  row of a table (pandas, polars).
- *Numbers*: a row of float64, from a NumPy array or a sequence of numbers.

Reading checks and copies: what comes out is the caller's no more, and holds nothing that could
poison a model. A number that is not finite is refused. Missing is a value: `None`, or an absent
name; in tables of pandas, whose missing values are NaN, NaN as well.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from melee.arrays import Floats
from melee.errors import InputError, shown
from melee.task import LARGEST

Value: TypeAlias = float | str | tuple[str, ...] | None
Named: TypeAlias = dict[str, Value]
Context: TypeAlias = Named | Floats

MAX_ENTRIES = 10_000
"""Names or numbers in one context."""
MAX_TEXT = 10_000
"""Characters in a name or a text."""

_FLOAT64 = np.dtype(np.float64)
_FLOATS, _TEXTS = {float}, {str}
_SAFE = LARGEST**2
"""Where the sum of squares is no larger, no number is too large."""


def read_context(given: Any) -> Context:
    """One context in one of the two forms.

    >>> read_context({"age": 31, "device": "phone", "subscribed": True, "referrer": None})
    {'age': 31.0, 'device': 'phone', 'subscribed': 1.0, 'referrer': None}
    >>> read_context([1, 2.5])
    array([1. , 2.5])
    """
    if type(given) is dict:
        return _named(given)
    if type(given) is np.ndarray and given.dtype is _FLOAT64 and given.ndim == 1:
        copied: Floats = given.copy()
        try:
            if copied.dot(copied) <= _SAFE and 0 < copied.size <= MAX_ENTRIES:
                return copied
        except RuntimeWarning:  # an overflow, where warnings are errors
            pass
    if isinstance(given, np.ndarray | list | tuple):
        return _numbers(given)
    kind = _library(given)
    if kind is not None and hasattr(given, "columns"):
        rows = read_contexts(given)
        if len(rows) != 1:
            raise InputError(
                f"the context is a table of {len(rows)} rows; expected one row: use act_many or "
                "learn_many for several"
            )
        row: Context = rows[0]
        return row
    if kind == "pandas":  # a Series
        if given.index.has_duplicates:
            raise InputError("the row has two values of one name; rename one")
        return _named(_without_nan(given.to_dict()))
    if isinstance(given, Mapping):
        return _named(given)
    raise InputError(
        f"the context is {shown(given)}; expected a dict of names and values, a row of a table, "
        "or numbers in one dimension"
    )


def read_contexts(given: Any) -> Sequence[Context]:
    """Many contexts: a two-dimensional array of numbers, or a list of dictionaries or rows.

    >>> import pandas as pd
    >>> read_contexts(pd.DataFrame({"age": [31, None], "device": ["phone", "tablet"]}))
    [{'age': 31.0, 'device': 'phone'}, {'age': None, 'device': 'tablet'}]
    """
    kind = _library(given)
    if kind == "pandas" and hasattr(given, "columns"):
        if given.columns.has_duplicates:
            raise InputError("the table has two columns of one name; rename one")
        return [_named(_without_nan(row)) for row in given.to_dict("records")]
    if kind == "polars" and hasattr(given, "iter_rows"):
        return [_named(row) for row in given.iter_rows(named=True)]
    if isinstance(given, np.ndarray) and given.ndim == 2:
        rows = _floats(given)
        if rows is None:
            raise InputError(f"the contexts are an array of {given.dtype}; expected numbers")
        if not 1 <= rows.shape[1] <= MAX_ENTRIES:
            raise InputError(
                f"the contexts are of shape {rows.shape}; expected 1 to {MAX_ENTRIES} numbers each"
            )
        if not np.abs(rows).max(initial=0.0) <= LARGEST:
            for i, row in enumerate(rows):
                _check_numbers(row, f"number {i} of the contexts")
        return rows  # type: ignore[return-value]
    is_single = isinstance(given, np.ndarray) and given.ndim == 0
    if is_single or isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError(
            f"the contexts are {shown(given)}; expected several: a table, an array of two "
            "dimensions or a list of contexts"
        )
    read: list[Context] = []
    for i, context in enumerate(given):
        try:
            read.append(read_context(context))
        except InputError as error:
            raise InputError(f"number {i} of the contexts: {error}") from None
    return read


def read_features(given: Any, whose: str) -> Context:
    """The features of an action, in the same forms; None is an action without any."""
    try:
        return read_context({} if given is None else given)
    except InputError as error:
        said = str(error).replace("the context holds", "they hold", 1)
        said = said.replace("the context's", "their", 1).replace("the context", "they", 1)
        said = said.replace("they is", "they are", 1).replace("they has", "they have", 1)
        raise InputError(f"the features of {whose}: {said}") from None


def _library(given: Any) -> str | None:
    """`pandas` or `polars`, if the object is theirs; neither is imported for the question."""
    name = type(given).__module__.partition(".")[0]
    return name if name in ("pandas", "polars") else None


def _named(given: Mapping[Any, Any]) -> Named:
    if len(given) > MAX_ENTRIES:
        raise InputError(f"the context has {len(given)} names; expected at most {MAX_ENTRIES}")
    numbers = [*given.values()]
    if (
        {*map(type, numbers)} == _FLOATS
        and {*map(type, given)} == _TEXTS
        and sum(map(abs, numbers)) <= LARGEST  # not if one is too large, or none at all
        and len("".join(given)) <= MAX_TEXT  # then so is each
    ):
        return dict(given)
    read: Named = {}
    for name, value in given.items():
        if type(name) is not str:
            raise InputError(f"the context has a name {shown(name)}; expected a text")
        if len(name) > MAX_TEXT:
            raise InputError(f"the context has a name of {len(name)} characters; shorten it")
        kind = type(value)
        if kind is float or kind is int:
            if not -LARGEST <= value <= LARGEST:
                raise _not_usable(f"'{name}'", value)
            read[name] = float(value)
        elif kind is str:
            read[name] = _text(name, value)
        elif value is None:
            read[name] = None
        else:
            read[name] = _value(name, value)
    return read


def _value(name: str, value: Any) -> Value:
    """A value of one of the rarer types."""
    if isinstance(value, str):
        return _text(name, str(value))
    if isinstance(value, list | tuple | set | frozenset):
        if not all(isinstance(item, str) for item in value):
            raise InputError(
                f"the context's '{name}' is {shown(value)}; expected texts in a list: give "
                "numbers names of their own"
            )
        items = sorted(value) if isinstance(value, set | frozenset) else value
        if len(items) > MAX_ENTRIES:
            raise InputError(f"the context's '{name}' holds {len(items)} texts; that is too many")
        return tuple(_text(name, str(item)) for item in items)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bool | np.bool_ | int | float | np.integer | np.floating | Real):
        try:
            number = float(value)
        except Exception:  # whatever an object of the caller's raises
            number = math.inf
        if not -LARGEST <= number <= LARGEST:
            raise _not_usable(f"'{name}'", value)
        return number
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "UO":
        return _value(name, value.tolist())
    raise InputError(
        f"the context's '{name}' is {shown(value)}; expected a number, a text, true or false, a "
        "list of texts, or None where it is missing"
    )


def _text(name: str, value: str) -> str:
    if len(value) > MAX_TEXT:
        raise InputError(
            f"the context's '{name}' is a text of {len(value)} characters; expected at most "
            f"{MAX_TEXT}: long texts are no category, give features of them"
        )
    return value


def _without_nan(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """A row of a pandas table, in which NaN stands for a missing value."""
    return {k: None if isinstance(v, float) and v != v else v for k, v in row.items()}


def _floats(given: Any) -> Floats | None:
    """The numbers as a fresh float64 array, or None if they are not numbers."""
    if isinstance(given, np.ma.MaskedArray):
        return None
    try:
        kind = given.dtype.kind if isinstance(given, np.ndarray) else np.asarray(given).dtype.kind
        if kind not in "biuf":
            return None
        with np.errstate(all="ignore"):  # an overflow is infinite, and refused
            return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        return None


def _numbers(given: Any) -> Floats:
    row = _floats(given)
    if row is None:
        raise InputError(
            f"the context is {shown(given)}; expected numbers in one dimension, or a dict "
            "of names and values"
        )
    if row.ndim != 1 or len(row) == 0:
        raise InputError(f"the context is of shape {row.shape}; expected numbers in one dimension")
    if len(row) > MAX_ENTRIES:
        raise InputError(f"the context has {len(row)} numbers; expected at most {MAX_ENTRIES}")
    _check_numbers(row, "the context")
    return row


def _check_numbers(row: Floats, where: str) -> None:
    wrong = np.flatnonzero(~(np.abs(row) <= LARGEST))
    if len(wrong):
        raise _not_usable(f"position {wrong[0]}", row[wrong[0]], where)


def _not_usable(what: str, value: Any, where: str = "the context") -> InputError:
    return InputError(
        f"{where} holds {shown(value)} at {what}; expected a finite number within ±1e100, or None "
        "under a name where it is missing"
    )


def context_to_json(features: Context) -> Any:
    """A context, or features, as they are written."""
    return features if isinstance(features, dict) else features.tolist()


def context_from_json(given: Any) -> Context:
    """A context as it was written: names and values, or numbers."""
    if isinstance(given, dict):
        return {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
    return read_context(np.array(given, np.float64))
