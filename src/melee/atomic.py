"""Files that are written whole or not at all, however the writer ends.

The content goes to a temporary file beside its target, `.NAME.01234567.tmp`, and takes the target's
place once it is on the disk. A lock on the temporary file tells whether its writer lives: what a
killed one has left is removed by the next who writes to the same target.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from melee.errors import DataError, file_error

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and nothing cleared away
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, even if the machine stops.

    A file that is there keeps its permissions and, where allowed, its owner; a new one has those
    of the umask. A symbolic link is followed: what it points to is written. Anything but a file is
    refused. Once this returns, the content is on the disk, under its name.
    """
    try:
        target = Path(os.path.realpath(path))
        before = _state_of(target)
        for is_kind, name in _KINDS:
            if before is not None and is_kind(before.st_mode):
                raise DataError(f"{path!s:.300}: cannot be written, it is {name}; give a file")
        clear(target)
        with _temporary(target, private=before is not None) as (descriptor, temporary):
            if before is not None:
                _make_alike(descriptor, before)
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            os.fsync(descriptor)
            temporary.replace(target)
        sync_directory(target.parent)
    except DataError:
        raise
    except (OSError, ValueError) as error:  # a ValueError where a path holds \0
        raise file_error(path, "written", error) from None


def clear(path: Path) -> None:
    """Remove the temporary files that killed writers of this path have left."""
    if fcntl is None:
        return
    try:
        files = [
            file for file in path.parent.iterdir() if target_of(file.name) == _short(path.name)
        ]
    except OSError:  # a directory may be written to and not read
        return
    for left in files:
        with contextlib.suppress(OSError):  # such as when its writer lives
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(descriptor)


def target_of(name: str) -> str | None:
    """The name of the file that a temporary file is for, None if it is none.

    >>> target_of(".agent.melee.0a1b2c3d.tmp"), target_of("agent.melee")
    ('agent.melee', None)
    """
    match = _TEMPORARY.fullmatch(name)
    return match[1] if match else None


def make_directory(path: Path) -> None:
    """Make a directory, and those above it; a DataError if files cannot be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except FileExistsError:
        raise DataError(f"{path!s:.300}: a file; give a directory") from None
    except (OSError, ValueError) as error:
        raise file_error(path, "written to", error) from None


def sync_directory(path: Path) -> None:
    """Make names in a directory last: a file's own sync does not."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # it may be written to and not read, or this is Windows
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # network file systems
            raise
    finally:
        os.close(descriptor)


def _state_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _short(name: str) -> str:
    """The name, or what stands for it where a temporary file's would be too long."""
    if len(os.fsencode(name)) <= 200:
        return name
    return hashlib.sha256(os.fsencode(name)).hexdigest()


@contextlib.contextmanager
def _temporary(target: Path, *, private: bool) -> Iterator[tuple[int, Path]]:
    """A new file beside the target, locked by us as long as it is open, removed if it is left."""
    while True:
        name = f".{_short(target.name)}.{secrets.token_hex(4)}.tmp"
        temporary = target.with_name(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor = os.open(temporary, flags, 0o600 if private else 0o666)
        try:
            if _lock(descriptor, temporary):
                yield descriptor, temporary
                return
        finally:
            with contextlib.suppress(OSError):  # it has taken the target's place
                temporary.unlink()
            os.close(descriptor)


def _lock(descriptor: int, path: Path) -> bool:
    """Lock a new file; False if someone who clears away took it for abandoned just before."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:  # a file system without locks: nobody clears away there either
        return True


def _make_alike(descriptor: int, before: os.stat_result) -> None:
    """Give a file the owner, as far as we may, and the permissions of the one it replaces."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
