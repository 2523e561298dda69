"""Where machine code is kept: one directory, a file per program, whole or not believed.

The directory is `MELEE_CACHE_DIR`, or `melee/machine-code` in the user's cache. One that cannot be
written is read; where nothing can be kept or found, code is compiled in memory and a line of
`logging` says so. Nothing is ever created in the working directory.

Machine code is code: a file is believed only if its checksum fits and its owner is root, the user
who runs the process, or, where `MELEE_CACHE_DIR` names the directory, that directory's owner.
"""

import contextlib
import hashlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from melee.atomic import write_atomically
from melee.errors import DataError

try:
    import fcntl
except ImportError:  # not on Windows: there two processes may compile the same
    fcntl = None  # type: ignore[assignment]

VARIABLE = "MELEE_CACHE_DIR"
MARK = b"melee machine code 1\n"
MOST_FILES = 400
"""Files that are kept; beyond, those that were written first are removed."""

_log = logging.getLogger("melee")
_said = False


def directory() -> Path | None:
    """The directory of machine code, which may not exist yet; None where there is no place."""
    if given := os.environ.get(VARIABLE):
        return Path(given).absolute()
    cache = user_cache()
    return None if cache is None else cache / "machine-code"


def user_cache() -> Path | None:
    """`melee` in the user's cache; None for a user without a home."""
    if sys.platform == "win32":
        given, default = os.environ.get("LOCALAPPDATA"), "~/AppData/Local"
    elif sys.platform == "darwin":
        given, default = os.environ.get("XDG_CACHE_HOME"), "~/Library/Caches"
    else:
        given, default = os.environ.get("XDG_CACHE_HOME"), "~/.cache"
    cache = Path(given) if given and Path(given).is_absolute() else _expanded(default)
    return cache / "melee" if cache.is_absolute() else None


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # no home
        return Path(path)


class Kept:
    """The file of one program's machine code.

    Parameters
    ----------
    name, key
        The program's name, and its key; without a key nothing can be kept.
    """

    def __init__(self, name: str, key: str | None) -> None:
        self.place = directory()
        self.path = None
        if self.place is not None and key is not None:
            self.path = self.place / f"{name}-{key}.code"
        self.name = name

    def read(self) -> bytes | None:
        """What was kept; None if there is nothing, or nothing that can be believed."""
        if self.path is None:
            return None
        try:
            with self.path.open("rb") as file:
                if not self._is_trusted(os.fstat(file.fileno())):
                    _log.warning(
                        "%s belongs to someone else, or others may write to it, and is not used; "
                        "remove it, or set %s",
                        self.path, VARIABLE,
                    )  # fmt: skip
                    return None
                content = file.read()
        except OSError:
            return None
        start = len(MARK) + 32
        digest, code = content[len(MARK) : start], content[start:]
        if not content.startswith(MARK) or self._digest(code) != digest:
            return None
        return code

    def _digest(self, code: bytes) -> bytes:
        """A checksum of machine code and of its name, under which alone it is of use."""
        return hashlib.sha256(str(self.path and self.path.name).encode() + b"\0" + code).digest()

    def _is_trusted(self, about: os.stat_result) -> bool:
        if not hasattr(os, "getuid"):
            return True
        owners = {0, os.getuid()}
        if os.environ.get(VARIABLE) and self.place is not None:
            owners.add(self.place.stat().st_uid)
        return about.st_uid in owners and not about.st_mode & 0o022

    def write(self, code: bytes) -> bool:
        """Keep machine code; False, with a line in the log, where that cannot be done."""
        if self.place is None:
            _say("there is no place to keep machine code: this user has no home")
            return False
        if self.path is None:
            _say("machine code is not kept: the source of its kernels is in no file, or was edited")
            return False
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and not self._is_trusted(self.path.stat()):
                self.path.unlink()
            write_atomically(self.path, MARK + self._digest(code) + code)
            self.path.chmod(self.path.stat().st_mode & 0o755)  # whatever the umask: for us to write
        except (DataError, OSError) as error:
            _say(f"machine code is not kept ({error})")
            return False
        _remove_oldest(self.place)
        return True

    @contextlib.contextmanager
    def alone(self, check_stop: Callable[[], None]) -> Iterator[None]:
        """While one process compiles a program, others that want it wait here."""
        file = None
        if self.path is not None and fcntl is not None:
            with contextlib.suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                file = self.path.with_suffix(".lock").open("ab")
        try:
            while file is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    check_stop()
                    time.sleep(0.02)
                except OSError:  # a file system without locks
                    break
            yield
        finally:
            if file is not None:
                with contextlib.suppress(OSError):
                    self.path.with_suffix(".lock").unlink()  # type: ignore[union-attr]
                file.close()


def _remove_oldest(place: Path) -> None:
    """Keep room: every edit of a kernel and every new version leaves files behind."""
    with contextlib.suppress(OSError):
        found = [(file.stat().st_mtime_ns, file) for file in place.glob("*.code")]
        for _, old in sorted(found)[:-MOST_FILES]:
            old.unlink()
        for old in place.glob("*.lock"):  # of processes that were killed
            if old.stat().st_mtime < time.time() - 24 * 3600:
                old.unlink()


def _say(what: str) -> None:
    """Tell once that every start will have to compile."""
    global _said
    if not _said:
        _said = True
        _log.warning(
            "%s: it is compiled in memory, at every start anew. Set %s to a directory that can be "
            "written, or to one that `melee compile` has filled", what, VARIABLE,
        )  # fmt: skip
