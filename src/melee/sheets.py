"""Rows as CSV that a spreadsheet opens without running anything.

A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return for a
formula, and names of datasets and columns come from files of others. Such a text gets a single
quote in front, which spreadsheets do not show; numbers stay numbers.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(header: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    r"""The rows under a header, one line each.

    >>> csv_text(["dataset", "gap"], [["=1+2", -0.5], ["wine", None]])
    "dataset,gap\n'=1+2,-0.5\nwine,\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_harmless(name) for name in header])
    writer.writerows([_harmless(value) for value in row] for row in rows)
    return text.getvalue()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
