"""One family of errors; each carries a sentence that says what to do.

The sentence states what was given, what was expected and what to do about it. Python raises
it, the command line prints it and exits with 2: nobody has to read a traceback to learn what
was wrong with the input.
"""

import errno
import os
import sys
import warnings
from typing import Any


class MeleeError(Exception):
    """Anything that MELEE refuses to do, with the reason as its text."""


class InputError(MeleeError, ValueError):
    """A value that a caller passed cannot be used."""


class DataError(MeleeError, ValueError):
    """A file, a dataset or a reply from a server cannot be used."""


class MissingPackageError(MeleeError, ImportError):
    """A package that is not installed; the sentence names the extra that brings it."""


class MeleeWarning(UserWarning):
    """Something that works, and that a user should know of."""


class LeftOutWarning(MeleeWarning):
    """Bad rows of a file were left out; the sentence has their number and the first reasons."""


class UnknownNameError(InputError, KeyError):
    """A name is not in a registry; the sentence lists what exists."""

    __str__ = Exception.__str__  # KeyError would print the repr, quotes included


def warn_caller(sentence: str, kind: type[MeleeWarning] = MeleeWarning) -> None:
    """Warn of something, as of the line outside of this package that led to it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_ours(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, kind, stacklevel=level)


def _is_ours(names: dict[str, Any]) -> bool:
    return str(names.get("__name__")).partition(".")[0] == "melee"


def shown(value: Any) -> str:
    """A value as a sentence shows it: short, whatever it is, even if it cannot be shown."""
    try:
        text = repr(value)
    except Exception:
        text = f"something that cannot be shown ({type(value).__name__})"
    return text if len(text) <= 60 else f"{text[:57]}..."


def told(error: Exception) -> str:
    """What to tell of an exception where one failure must not stop the rest of the work."""
    return str(error) if isinstance(error, MeleeError) else f"{type(error).__name__}: {error}"


_ADVICE = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path, a part of which is a file",
    errno.EISDIR: "give the path of a file",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.EACCES: "check the permissions, or give another path",
    errno.EPERM: "check the permissions, or give another path",
    errno.EROFS: "give a path on a disk that can be written to",
    errno.ENOSPC: "make room on the disk and try again",
    errno.EDQUOT: "make room on the disk and try again",
    errno.EFBIG: "make room on the disk and try again",
    errno.EMFILE: "close other files, or raise the limit of open ones (ulimit -n)",
    errno.ENFILE: "close other files, or raise the limit of open ones (ulimit -n)",
}


def advice(error: BaseException) -> str:
    """What to do about an error of the file system."""
    return _ADVICE.get(getattr(error, "errno", None) or 0, "check the path and its disk")


def file_error(path: str | os.PathLike[str], what: str, error: OSError | ValueError) -> "DataError":
    """The error for a file that cannot be `read` or `written`, with the reason and what to do.

    >>> print(file_error("a.csv", "read", OSError(13, "Permission denied")))
    a.csv: cannot be read (Permission denied); check the permissions, or give another path
    """
    reason = getattr(error, "strerror", None) or error
    return DataError(f"{path!s:.300}: cannot be {what} ({reason}); {advice(error)}")


def whole_number(name: str, value: Any, least: int) -> int:
    """The value as an int, if it is a whole number of at least `least`."""
    bound = f"at least {least}" if least else "0 or larger"
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not is_whole or value < least:
        raise InputError(f"{name} is {shown(value)}; expected a whole number, {bound}")
    return int(value)


def unknown(kind: str, given: str, known: list[str]) -> UnknownNameError:
    """The error for a name that does not exist, with the list of those that do.

    >>> print(unknown("explorer", "linucp", ["linucb", "uniform"]))
    unknown explorer 'linucp'; did you mean 'linucb'? Known: linucb, uniform
    """
    import difflib

    close = difflib.get_close_matches(given, known, n=1)
    hint = f"did you mean '{close[0]}'? Known" if close else "known"
    return UnknownNameError(f"unknown {kind} '{given}'; {hint}: {', '.join(known)}")
