"""A log that grows: rounds appended to a file, a line each."""

import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from melee.errors import DataError
from melee.history.jsonl import line_of
from melee.history.pmf import Lists
from melee.history.rounds import Round


class Log:
    """A file of JSON lines to which rounds are appended; its lines do not repeat lists of actions.

    Several may write to one file. Lists are given again in another file, as after a rotation, and
    after anything that may have gone wrong.

    Parameters
    ----------
    path
        The file; it is made when the first rounds come.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._lists = Lists()
        self._file = (0, 0, 0)  # device, number and size

    def append(self, rounds: Iterable[Round]) -> None:
        """Append rounds, in one write; all are checked first."""
        given = list(rounds)
        try:
            lines = self._lines(given)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                about = os.fstat(descriptor)
                device, number, size = self._file
                if (about.st_dev, about.st_ino) != (device, number) or about.st_size < size:
                    self._lists.clear()
                    lines = self._lines(given)
                if _is_torn(descriptor, about.st_size):
                    lines = b"\n" + lines
                _write(descriptor, lines, str(self.path))
            finally:
                os.close(descriptor)
        except BaseException as error:
            self._lists.clear()  # nobody knows what the file has
            if isinstance(error, OSError):
                raise _refused(str(self.path), error) from None
            raise
        self._file = (about.st_dev, about.st_ino, about.st_size + len(lines))

    def _lines(self, rounds: list[Round]) -> bytes:
        return b"".join(line_of(round_, self._lists) for round_ in rounds)


def append_lines(file: int | str | PathLike[str], rounds: Iterable[Round]) -> None:
    """Append rounds to a log, in one write; several processes may do so at once.

    Parameters
    ----------
    file
        A descriptor opened with `os.O_APPEND`, or the path of a file, made if need be.
    rounds
        The rounds; all are checked first.
    """
    if not isinstance(file, int):
        Log(file).append(rounds)
        return
    lists = Lists()
    try:
        lines = b"".join(line_of(round_, lists) for round_ in rounds)
        _write(file, lines, f"descriptor {file}")
    except OSError as error:
        raise _refused(f"descriptor {file}", error) from None


def _write(descriptor: int, lines: bytes, where: str) -> None:
    written = os.write(descriptor, lines)
    if written < len(lines):
        raise DataError(
            f"{where}: only {written} of {len(lines)} bytes were written, so its last line is "
            "torn; make space on the disk and delete that line"
        )


def _is_torn(descriptor: int, size: int) -> bool:
    """Whether the last line has no end, as after a full disk: the next must not join it."""
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _refused(where: str, error: OSError) -> DataError:
    return DataError(f"{where}: cannot be appended to ({error.strerror or error})")
