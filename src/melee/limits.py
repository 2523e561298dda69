"""How large input may be, in one place; each limit has a variable of the environment that sets it.

Input from others may be made to exhaust whoever reads it: a small gzip file that unpacks to
gigabytes, a table of a million columns, a number of thousands of digits. Readers ask here before
they do the work, and the sentence of a refusal says which variable raises the limit.
"""

import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from melee.errors import DataError, InputError, file_error, shown

_RATIO = 1032
"""No gzip data unpacks to more than so many times its size."""


@dataclass(frozen=True)
class Limit:
    """The most that there may be of something.

    >>> COLUMNS.sentence(f"the table has {2_000_000:,} columns")
    'the table has 2,000,000 columns; the limit is 100,000: set MELEE_MAX_COLUMNS to raise it'
    """

    variable: str
    default: int

    @property
    def most(self) -> int:
        """What the environment says, else the default."""
        text = os.environ.get(self.variable)
        if text is None:
            return self.default
        if not text.isdecimal() or not text.isascii() or len(text) > 18 or int(text) == 0:
            raise InputError(
                f"{self.variable} is {shown(text)} in the environment; expected a whole number, "
                f"1 or larger, such as {self.default}"
            )
        return int(text)

    def sentence(self, found: str) -> str:
        """What was found, what is allowed, and how to allow more."""
        return f"{found}; the limit is {self.most:,}: set {self.variable} to raise it"


BYTES = Limit("MELEE_MAX_BYTES", 2**30)
"""Bytes that a packed file unpacks to; files that are not packed may have more."""

COLUMNS = Limit("MELEE_MAX_COLUMNS", 100_000)
"""Columns of a table."""

LINE = Limit("MELEE_MAX_LINE", 16 * 2**20)
"""Bytes of a line in a log, characters of a line in a table."""

DIGITS = Limit("MELEE_MAX_DIGITS", 1_000)
"""Digits of a whole number in JSON."""

DEPTH = Limit("MELEE_MAX_DEPTH", 100)
"""Lists and objects within each other in JSON."""

AGENT_BYTES = Limit("MELEE_MAX_AGENT_BYTES", 2**33)
"""Bytes of an agent's file."""


def check_unpacked(path: Path) -> None:
    """Refuse a gzip file that unpacks to too much, before anything of it is kept.

    Other files pass, and so does a damaged one: whoever reads it says what is wrong with it.
    """
    if not path.name.lower().endswith(".gz"):
        return
    most = BYTES.most
    try:
        if path.stat().st_size * _RATIO > most and _unpacks_to_more(path, most):
            raise DataError(BYTES.sentence(f"{path}: it unpacks to more than {most:,} bytes"))
    except zlib.error:
        return
    except OSError as error:
        raise file_error(path, "read", error) from None


def _unpacks_to_more(path: Path, most: int) -> bool:
    """Whether a gzip file unpacks to more than so many bytes; three times as fast as reading it."""
    n_bytes, raw, member = 0, b"", zlib.decompressobj(wbits=31)
    with path.open("rb") as file:
        while raw := raw or file.read(2**14):
            n_bytes += len(member.decompress(raw, 2**20))
            if n_bytes > most:
                return True
            raw = member.unconsumed_tail
            if member.eof:  # another one may follow, or zeros that fill up a block
                raw, member = member.unused_data.lstrip(b"\0"), zlib.decompressobj(wbits=31)
    return False


def check_table(path: Path, *, n_rows: int, n_columns: int, n_bytes: int = 0) -> None:
    """Refuse a packed table by what it says of itself: a number of eight bytes in every cell."""
    check_columns(path, n_columns)
    n_bytes = max(n_bytes, 8 * n_rows * n_columns)
    if n_bytes > BYTES.most:
        found = f"{path}: it unpacks to {n_rows:,} rows of {n_columns:,} columns, {n_bytes:,} bytes"
        raise DataError(BYTES.sentence(found))


def check_columns(source: Path | str, n_columns: int) -> None:
    """Refuse a table with too many columns."""
    if n_columns > COLUMNS.most:
        raise DataError(COLUMNS.sentence(f"{source}: the table has {n_columns:,} columns"))


def bounded_line(file: IO[str], source: Path | str, number: int) -> str:
    """The next line of a text, empty at its end; a DataError if it is too long."""
    most = LINE.most
    line = file.readline(most + 1)
    if len(line) > most:
        found = f"{source}: line {number} has more than {most:,} characters"
        raise DataError(LINE.sentence(found))
    return line


_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ROUND = bytes.maketrans(b"[{]}", b"(())")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


def check_depth(text: str) -> None:
    """Refuse JSON that nests too deeply for those who walk through it, before it is parsed."""
    most = DEPTH.most
    if text.count("[") + text.count("{") <= most or not _is_deep(text, most):
        return
    if _is_deep(_TEXT.sub("", text), most):  # brackets in texts do not count
        raise InputError(DEPTH.sentence("it is nested too deeply"))


def _is_deep(text: str, most: int) -> bool:
    """Whether brackets are left when `most` times the innermost pairs have been taken away."""
    left = text.encode("utf-8", "surrogatepass").translate(_ROUND, _NO_BRACKETS)
    for _ in range(most):
        if not left:
            return False
        before, left = left, left.replace(b"()", b"")
        if left == before:  # none of what is left has an end
            return True
    return bool(left)
