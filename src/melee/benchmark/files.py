"""Small files of a store: written whole or not at all, with a checksum of what they say."""

import contextlib
import errno
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from melee.atomic import write_atomically
from melee.errors import DataError


def write_checked(file: Path, content: dict[str, Any]) -> None:
    """Write a dictionary as JSON with its checksum."""
    text = json.dumps({"sha256": _checksum(content), "content": content}, indent=1)
    with sentences(file.parent):
        write_atomically(file, (text + "\n").encode())


def read_checked(file: Path) -> dict[str, Any]:
    """What was written, or a DataError if the file is damaged."""
    try:
        given = json.loads(file.read_bytes())
        content, expected = given["content"], given["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: damaged ({error})") from None
    if not isinstance(content, dict) or _checksum(content) != expected:
        raise DataError(f"{file}: damaged (its checksum is another one)")
    return content


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def sentences(directory: Path) -> Iterator[None]:
    """Errors of the file system in here become sentences about the directory."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DataError(
                f"{directory}: no space left on the disk; what was finished is kept: make room "
                "and run the same command again"
            ) from None
        raise DataError(
            f"{directory}: cannot be written to ({error.strerror or error}); give a directory that "
            "can be"
        ) from None
