"""Who may do what: keys for reading, deciding and administration."""

import hashlib
import os
from pathlib import Path

from melee.errors import InputError, file_error, shown
from melee.serve.refusals import Refusal

LEVELS = ("open", "read", "decide", "admin")
"""Each may do what those before it may."""
SHORTEST = 16
"""Characters of a key: fewer could be guessed."""


class Keys:
    """Keys and what they open; without any, everything is open.

    Parameters
    ----------
    levels
        The level of each key.
    """

    def __init__(self, levels: dict[str, str] | None = None) -> None:
        self._levels: dict[bytes, int] = {}
        for key, level in (levels or {}).items():
            if level not in LEVELS[1:]:
                raise InputError(
                    f"the key's level is {shown(level)}; expected {', '.join(LEVELS[1:])}"
                )
            if len(key) < SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
                raise InputError(
                    f"a key has {len(key)} characters; expected at least {SHORTEST} letters and "
                    "digits, as of: openssl rand -hex 16"
                )
            self._levels[_digest(key.encode())] = LEVELS.index(level)

    def __bool__(self) -> bool:
        return bool(self._levels)

    def check(self, authorization: bytes | None, level: str) -> None:
        """Refuse a request whose header does not have a key for this level."""
        wanted = LEVELS.index(level)
        if wanted == 0 or not self._levels:
            return
        scheme, _, key = (authorization or b"").partition(b" ")
        # Looked up by its hash, the time it takes says nothing about a key.
        found = self._levels.get(_digest(key.strip())) if scheme.lower() == b"bearer" else None
        if found is None:
            raise Refusal(
                401, "this needs a key that is known; send it as: Authorization: Bearer KEY"
            )
        if found < wanted:
            raise Refusal(
                403, f"this key is for {LEVELS[found]}, and this needs one for {LEVELS[wanted]}"
            )


def read_keys(path: str | os.PathLike[str]) -> dict[str, str]:
    """Keys from a file: lines of a level and a key; those that begin with # are left out."""
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise file_error(path, "read", error) from None
    levels: dict[str, str] = {}
    for i, line in enumerate(lines, 1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        if len(parts) != 2:
            raise InputError(f"{path}: line {i} has {len(parts)} words; expected a level and a key")
        levels[parts[1]] = parts[0]
    if not levels:
        raise InputError(f"{path}: no keys are there; expected lines such as: decide KEY")
    return levels


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
