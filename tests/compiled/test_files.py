"""Where machine code is kept, and what is believed."""

import errno
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

from melee.compiled import files

ROOT = Path(__file__).parents[2]
KEY = "0" * 32
NOBODY = 65534


def for_all() -> str | None:
    """An interpreter of this version that every user can run."""
    here = Path(sys.executable).resolve()
    system = Path(f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}")
    for one in (here, system):
        if one.exists() and all(above.stat().st_mode & 0o5 == 0o5 for above in (one, *one.parents)):
            return str(one)
    return None


as_root = pytest.mark.skipif(
    os.getuid() != 0 or for_all() is None,
    reason="needs root, who can become another user, and a Python that others can run",
)

DECIDE = """
import logging, sys, os
logging.basicConfig(format="%(message)s", stream=sys.stdout)
import melee
agent = melee.Agent(["a", "b", "c"], "uniform", seed=3)
melee.compile_now(agent)
decision = agent.act({"x": 1.0})
agent.learn(decision.id, 1.0)
print(sum(one.compiled for one in agent._programs), agent.fingerprint)
print("all of Numba:", "numba.np.npyimpl" in sys.modules)
print("working directory:", os.listdir("."))
"""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv(files.VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(files, "_said", False)
    return files.Kept("a.kernel", KEY)


def test_what_was_kept_is_read_again(kept):
    assert kept.read() is None
    assert kept.write(b"machine code")
    assert files.Kept("a.kernel", KEY).read() == b"machine code"
    assert files.Kept("a.kernel", "1" * 32).read() is None
    assert files.Kept("another", KEY).read() is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[:10],
        lambda content: b"",
        lambda content: content + b"x",
        lambda content: content[:-3] + b"\0" + content[-2:],
        lambda content: b"another format\n" + content,
        lambda content: bytes(len(content)),
    ],
)
def test_what_is_cut_or_changed_is_not_believed(kept, damage):
    kept.write(b"machine code" * 50)
    kept.path.write_bytes(damage(kept.path.read_bytes()))
    assert kept.read() is None
    assert kept.write(b"machine code")
    assert kept.read() == b"machine code"


def test_a_file_under_another_name_is_not_believed(kept):
    kept.write(b"machine code")
    other = files.Kept("a.kernel", "1" * 32)
    shutil.copy(str(kept.path), str(other.path))
    assert other.read() is None


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077, 0o000])
def test_what_was_kept_under_any_umask_is_believed(kept, umask):
    before = os.umask(umask)
    try:
        assert kept.write(b"machine code")
    finally:
        os.umask(before)
    assert kept.read() == b"machine code"
    assert kept.path.stat().st_mode & 0o777 == 0o644 & ~umask


@as_root
def test_code_of_someone_else_is_not_believed(kept, caplog):
    kept.write(b"machine code")
    os.chown(kept.path, NOBODY, NOBODY)
    assert kept.read() is None
    assert "belongs to someone else" in caplog.text
    os.chown(kept.place, NOBODY, NOBODY)  # who names a directory trusts its owner
    assert kept.read() == b"machine code"
    kept.path.chmod(0o666)
    assert kept.read() is None


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_where_nothing_can_be_written_one_line_says_so(kept, monkeypatch, caplog, reason):
    def full(handle):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(os, "fsync", full)
    with caplog.at_level(logging.WARNING):
        assert not kept.write(b"machine code")
        assert not kept.write(b"machine code")
    assert caplog.text.count("machine code is not kept") == 1
    assert os.strerror(reason) in caplog.text
    assert "Set MELEE_CACHE_DIR" in caplog.text
    assert list(kept.place.iterdir()) == []


def test_a_user_without_a_home_has_no_place(monkeypatch):
    monkeypatch.delenv(files.VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "~")
    assert files.directory() is None
    kept = files.Kept("a.kernel", KEY)
    assert kept.read() is None
    assert not kept.write(b"machine code")


def test_the_oldest_files_are_removed(kept, monkeypatch):
    monkeypatch.setattr(files, "MOST_FILES", 3)
    for i in range(5):
        one = files.Kept(f"kernel{i}", KEY)
        assert one.write(b"machine code")
        os.utime(str(one.path), (i, i))
    assert files.Kept("last", KEY).write(b"machine code")
    assert sorted(path.name[:7] for path in kept.place.glob("*.code")) == [
        "kernel3", "kernel4", "last-00",
    ]  # fmt: skip


# -- whole processes -----------------------------------------------------------------------------

N_PROGRAMS = 3  # of the agent in DECIDE


class Decided(NamedTuple):
    """What a process that made an agent has said."""

    lines: list[str]  # of the log
    n_compiled: int
    fingerprint: str
    all_of_numba: bool  # whether it imported what only compiling needs


def start(cwd, *, user=None, **environment):
    """A process that makes an agent."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MELEE_", "XDG_", "HOME"))}
    python = sys.executable if user is None else str(for_all())
    path = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    return subprocess.Popen(
        [python, "-B", "-c", DECIDE],
        env={**plain, "PYTHONPATH": path, **environment},
        cwd=cwd, user=user, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def end(process):
    """What it says, and that it found nothing in its directory."""
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    *lines, result, numba, directory = said.splitlines()
    assert directory == "working directory: []"
    n_compiled, fingerprint = result.split()
    return Decided(lines, int(n_compiled), fingerprint, numba == "all of Numba: True")


def decide(cwd, **options):
    return end(start(cwd, **options))


class Filled(NamedTuple):
    """A directory that holds what DECIDE needs, and the processes that filled it."""

    place: Path
    four: list[Decided]

    @property
    def loaded(self):
        """What every process says that finds the directory."""
        return Decided([], 0, self.four[0].fingerprint, all_of_numba=False)

    @property
    def compiled(self):
        """What a process says that finds nothing, and can keep what it compiles."""
        return Decided([], N_PROGRAMS, self.four[0].fingerprint, all_of_numba=True)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    place, empty = tmp_path_factory.mktemp("filled"), tmp_path_factory.mktemp("empty")
    four = [start(empty, MELEE_CACHE_DIR=str(place)) for _ in range(4)]
    return Filled(place, [end(one) for one in four])


@pytest.fixture
def empty(tmp_path):
    path = tmp_path / "empty"
    path.mkdir(mode=0o777)
    path.chmod(0o777)
    for parent in path.parents[:3]:
        parent.chmod(0o755)
    return path


def opened(place):
    """The directory, and those above it, as others can read them."""
    for parent in [place, *place.parents[:3]]:
        parent.chmod(0o755)
    return str(place)


def test_of_four_processes_that_start_at_once_one_compiles(filled):
    assert [one.lines for one in filled.four] == [[]] * 4
    # Programs, each by one of the four.
    assert sum(one.n_compiled for one in filled.four) == N_PROGRAMS
    assert len({one.fingerprint for one in filled.four}) == 1


def test_what_is_kept_is_loaded_and_needs_little_of_numba(filled, empty):
    """Half a second of imports is for who compiles."""
    assert decide(empty, MELEE_CACHE_DIR=str(filled.place)) == filled.loaded
    assert all(one.all_of_numba for one in filled.four if one.n_compiled)


@as_root
def test_a_directory_that_cannot_be_written_is_read(filled, empty):
    given = decide(empty, user=NOBODY, MELEE_CACHE_DIR=opened(filled.place))
    assert given == filled.loaded


@as_root
@pytest.mark.parametrize(
    ("user", "environment"),
    [
        pytest.param(54321, {}, id="of whom nothing is known"),
        pytest.param(
            NOBODY, {"HOME": "/", "MELEE_CACHE_DIR": "/proc/nowhere"},
            id="told to keep it nowhere", marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_a_user_with_nothing_to_write_compiles_in_memory(user, environment, filled, empty):
    given = decide(empty, user=user, **environment)
    assert given._replace(lines=[]) == filled.compiled
    assert len(given.lines) == 1
    assert "compiled in memory" in given.lines[0]


def test_damaged_code_is_compiled_again(filled, empty, tmp_path):
    place = Path(shutil.copytree(filled.place, tmp_path / "damaged"))
    path = min(place.glob("*.code"), key=lambda one: one.stat().st_size)
    path.write_bytes(path.read_bytes()[:-100])
    again = decide(empty, MELEE_CACHE_DIR=str(place))
    assert again == filled.compiled._replace(n_compiled=1)  # the others are believed
    assert decide(empty, MELEE_CACHE_DIR=str(place)) == filled.loaded
