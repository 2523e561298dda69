import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from melee.atomic import make_directory, target_of, write_atomically
from melee.errors import DataError


@pytest.fixture
def umask():
    """Sets the umask, for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(directory):
    return sorted(one.name for one in directory.iterdir())


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_the_umask(mask, expected, tmp_path, umask):
    umask(mask)
    write_atomically(tmp_path / "new", b"1")
    assert mode(tmp_path / "new") == expected


@pytest.mark.parametrize("given", [0o600, 0o640, 0o444, 0o664])
def test_a_file_that_is_there_keeps_its_permissions(given, tmp_path, umask):
    path = tmp_path / "agent"
    path.write_bytes(b"old")
    path.chmod(given)
    write_atomically(path, b"new")
    assert (mode(path), path.read_bytes()) == (given, b"new")


def test_a_secret_is_never_readable_by_others_while_it_is_written(tmp_path, umask, monkeypatch):
    path, seen = tmp_path / "agent", []
    path.write_bytes(b"old")
    path.chmod(0o600)
    change = os.fchmod

    def note(descriptor, to):
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        change(descriptor, to)

    monkeypatch.setattr(os, "fchmod", note)
    write_atomically(path, b"new")
    assert seen == [0o600]


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    real, link, second = tmp_path / "there" / "real", tmp_path / "link", tmp_path / "second"
    real.write_bytes(b"old")
    link.symlink_to("there/real")
    second.symlink_to(link)
    write_atomically(second, b"new")
    assert link.is_symlink()
    assert second.is_symlink()
    assert real.read_bytes() == b"new"
    real.unlink()
    write_atomically(link, b"again")  # to where nothing is
    assert real.read_bytes() == b"again"
    assert names(tmp_path) == ["link", "second", "there"]
    assert names(tmp_path / "there") == ["real"]


def directory(path):
    path.mkdir()


def fifo(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/null")


@pytest.mark.parametrize(
    ("make", "kind"), [(directory, "a directory"), (fifo, "a FIFO"), (device, "a device")]
)
def test_what_is_no_file_is_refused_and_left_alone(make, kind, tmp_path):
    path = tmp_path / "agent"
    make(path)
    before = path.lstat()
    with pytest.raises(DataError, match=f"agent: cannot be written, it is {kind}; give a file"):
        write_atomically(path, b"new")
    assert path.lstat() == before
    assert names(tmp_path) == ["agent"]


def test_the_file_and_then_its_directory_are_forced_to_the_disk(tmp_path, monkeypatch):
    synced, sync = [], os.fsync

    def note(descriptor):
        state = os.fstat(descriptor)
        synced.append((stat.S_ISDIR(state.st_mode), state.st_ino, (tmp_path / "a").exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    write_atomically(tmp_path / "a", b"1")
    file = (False, (tmp_path / "a").stat().st_ino, False)
    assert synced == [file, (True, tmp_path.stat().st_ino, True)]


def test_what_a_killed_writer_leaves_is_removed_by_the_next(tmp_path):
    path = tmp_path / "agent"
    write_atomically(path, b"old")
    code = (
        "import os, sys; from pathlib import Path; from melee.atomic import write_atomically;"
        "os.fsync = lambda _: os.kill(os.getpid(), 9); write_atomically(Path(sys.argv[1]), b'x')"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    left = [one for one in tmp_path.iterdir() if one != path]
    assert [target_of(one.name) for one in left] == ["agent"]  # the second removed the first's
    assert path.read_bytes() == b"old"
    write_atomically(path, b"new")
    assert names(tmp_path) == ["agent"]


def test_what_a_living_writer_writes_and_files_of_others_are_left_alone(tmp_path):
    mine = tmp_path / ".agent.0123abcd.tmp"
    others = [".agent2.0123abcd.tmp", ".agent.tmp", "agent.0123abcd.tmp", ".agent.0123abcd.tmp~"]
    for name in others:
        (tmp_path / name).touch()
    with mine.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_atomically(tmp_path / "agent", b"1")
        assert names(tmp_path) == sorted([*others, mine.name, "agent"])
    write_atomically(tmp_path / "agent", b"2")
    assert names(tmp_path) == sorted([*others, "agent"])


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    path, errors = tmp_path / "agent", []

    def write(letter):
        try:
            for _ in range(60):
                write_atomically(path, letter * 5000)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert path.read_bytes() in [letter * 5000 for letter in (b"a", b"b", b"c")]
    assert names(tmp_path) == ["agent"]


def test_the_longest_of_names_can_be_written(tmp_path):
    path = tmp_path / ("ä" * 127)
    write_atomically(path, b"1")
    write_atomically(path, b"2")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [(path.name, b"2")]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, r"cannot be written \(No space left on device\); make room on the disk"),
        (errno.EACCES, r"cannot be written \(Permission denied\); check the permissions"),
    ],
)
def test_a_failure_gets_a_sentence_and_leaves_the_old_file(number, sentence, tmp_path, monkeypatch):
    path = tmp_path / "agent"
    path.write_bytes(b"old")

    def fail(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataError, match=sentence):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["agent"]


def test_paths_that_cannot_be_get_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    no_way = [tmp_path / "no" / "agent", tmp_path / "file" / "agent", Path("a\0b"), loop]
    for path in [*no_way, tmp_path / ("x" * 3000)]:
        with pytest.raises(DataError, match=r"cannot be written \(.*\); "):
            write_atomically(path, b"1")
    with pytest.raises(DataError, match="a file; give a directory"):
        make_directory(tmp_path / "file")
    with pytest.raises(DataError, match=r"cannot be written to \(Not a directory\)"):
        make_directory(tmp_path / "file" / "x")


def test_a_directory_that_cannot_be_written_to_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(DataError, match=r"cannot be written to \(Permission denied\)"):
        make_directory(tmp_path)
