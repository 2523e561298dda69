"""Writing an agent to a file and reading it again, to the last bit.

An agent is noted under its lock, which takes milliseconds whatever waits there; all that takes
long, encoding, hashing and writing, is done afterwards, while the agent goes on.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from melee.agent import pending
from melee.agent.file import Arrays, pack
from melee.atomic import write_atomically
from melee.errors import DataError, InputError, MeleeError, MeleeWarning
from melee.limits import AGENT_BYTES


class Noted(NamedTuple):
    """Everything that an agent is at one moment; nothing in it changes any more."""

    parameters: dict[str, Any]
    logged: bool
    identity: str
    ids: dict[str, Any]
    knowledge: tuple[dict[str, Any], Arrays]
    pending: pending.Noted


def to_bytes(noted: Noted) -> bytes:
    """The content of a file."""
    knowledge, arrays = noted.knowledge
    waits, more, waiting, done = noted.pending.to_parts()
    about = {
        "parameters": noted.parameters,
        "logged": noted.logged,
        "identity": noted.identity,
        "ids": noted.ids,
        "knowledge": knowledge,
        "pending": waits,
    }
    arrays = arrays | {f"pending.{name}": array for name, array in more.items()}
    return pack(about, arrays, waiting=waiting, done=done)


def plain(value: Any) -> Any:
    """A number of any type as JSON has it."""
    if value is None or type(value) in (int, float, str, list):
        return value
    return int(value) if hasattr(value, "__index__") else float(value)


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file, whole or not at all."""
    write_atomically(Path(path), content)


def read(path: str | os.PathLike[str]) -> bytes:
    """The content of a file."""
    try:
        size = Path(path).stat().st_size
        if size > AGENT_BYTES.most:
            raise DataError(AGENT_BYTES.sentence(f"{path}: the file has {size:,} bytes"))
        if not Path(path).is_file():
            raise DataError(f"{path}: not a file; check the path")
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path!s:.200}: cannot be read ({reason}); check the path") from None


@contextmanager
def refusing(where: str) -> Iterator[None]:
    """Whatever goes wrong while an agent is made of a file's content is the file's fault."""
    try:
        yield
    except InputError as error:
        raise DataError(f"{where}: {error}") from None
    except (MeleeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise _unfit(where, error) from None
    except (ArithmeticError, MemoryError, RecursionError) as error:
        raise _unfit(where, error) from None


def tell(where: str, about: dict[str, Any], identity: str, log: Any) -> None:
    """Warn of what is not as it was when an agent was saved."""
    if identity != about["identity"]:
        warnings.warn(
            f"{where}: its explorer was of another version when it was saved. What it has learned "
            "goes on as it was; models that start later are of this version",
            MeleeWarning,
            stacklevel=4,
        )
    if about["logged"] and log is None:
        warnings.warn(
            f"{where}: the agent kept a log when it was saved. A file does not say where to write: "
            "pass log=... to go on with it",
            MeleeWarning,
            stacklevel=4,
        )


def _unfit(where: str, error: BaseException) -> DataError:
    return DataError(
        f"{where}: its content does not fit together ({error or type(error).__name__}); it was "
        "not written by an agent: copy the file again"
    )
