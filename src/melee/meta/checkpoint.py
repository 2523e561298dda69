"""The checkpoint of a training: one JSON file, whole or absent, that knows what it belongs to."""

import hashlib
import json
from pathlib import Path
from typing import Any

from melee.atomic import make_directory, target_of, write_atomically
from melee.errors import DataError, file_error
from melee.version import __version__

CHECKPOINT = "checkpoint.json"


def write(path: Path, training: dict[str, Any], progress: dict[str, Any]) -> None:
    """Keep the progress of a training with this setting."""
    body = {"melee_version": __version__, "training": training, **progress}
    make_directory(path)
    content = json.dumps({"sha256": _digest(body), **body}, indent=1)
    write_atomically(path / CHECKPOINT, content.encode())


def read(path: Path, training: dict[str, Any]) -> dict[str, Any] | None:
    """The progress of an earlier call with this setting, None if there was none.

    The directory is made, so that no training begins whose progress cannot be kept.
    """
    file = path / CHECKPOINT
    try:
        if path.exists() and not path.is_dir():
            raise DataError(f"{path}: a file; give a directory for the policy")
        begun = file.exists()
        # A kill during the very first write leaves a temporary file.
        others = path.exists() and any(
            target_of(file.name) != CHECKPOINT for file in path.iterdir()
        )
    except OSError as error:
        raise file_error(path, "read", error) from None
    if others and not begun:
        raise DataError(
            f"{path}: it holds other files and no checkpoint of a training; "
            "give a new or an empty directory"
        )
    make_directory(path)
    if not begun:
        return None
    try:
        body: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        damaged = body.pop("sha256") != _digest(body)
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        damaged = True
    if damaged:
        raise DataError(f"{file}: damaged; remove it to start this training again")
    if body["training"] != training or body["melee_version"] != __version__:
        raise DataError(
            f"{file}: the checkpoint of a training with another setting or version; "
            "give another directory, or remove it to start again"
        )
    return body


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
