"""Where machine code is kept, and what is believed."""

import errno
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

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
print("compiled" if any(one.compiled for one in agent._programs) else "loaded", agent.fingerprint)
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


def decide(cwd, *, user=None, **environment):
    """A process that makes an agent: its first line, and what it finds in its directory."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MELEE_", "XDG_", "HOME"))}
    python = sys.executable if user is None else str(for_all())
    path = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [python, "-B", "-c", DECIDE],
        env={**plain, "PYTHONPATH": path, **environment},
        cwd=cwd, user=user, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *lines, result, directory = done.stdout.splitlines()
    assert directory == "working directory: []"
    return lines, result


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A directory that holds what DECIDE needs, and the agent's fingerprint there."""
    place, empty = tmp_path_factory.mktemp("filled"), tmp_path_factory.mktemp("empty")
    lines, result = decide(empty, MELEE_CACHE_DIR=str(place))
    assert result.startswith("compiled")
    assert lines == []
    return place, result.split()[1]


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


def test_what_is_kept_is_loaded(filled, empty):
    place, fingerprint = filled
    assert decide(empty, MELEE_CACHE_DIR=str(place)) == ([], f"loaded {fingerprint}")


def test_what_is_loaded_needs_little_of_numba(filled, empty):
    """Half a second of imports is for who compiles."""
    script = DECIDE + "print('numba.np.npyimpl' in sys.modules, 'numba' in sys.modules)\n"
    plain = {k: v for k, v in os.environ.items() if not k.startswith("MELEE_")}
    said = [
        subprocess.run(
            [sys.executable, "-B", "-c", script],
            env={**plain, "PYTHONPATH": str(ROOT / "src"), "MELEE_CACHE_DIR": str(place)},
            cwd=empty, capture_output=True, text=True, check=True,
        ).stdout.splitlines()
        for place in (filled[0], "/proc/nowhere")
    ]  # fmt: skip
    assert [lines[-3].split()[0] for lines in said] == ["loaded", "compiled"]
    assert [lines[-1] for lines in said] == ["False True", "True True"]


@as_root
def test_a_directory_that_cannot_be_written_is_read(filled, empty):
    place, fingerprint = filled
    given = decide(empty, user=NOBODY, MELEE_CACHE_DIR=opened(place))
    assert given == ([], f"loaded {fingerprint}")


@as_root
def test_a_user_without_a_home_and_with_nothing_to_write_compiles_in_memory(filled, empty):
    lines, result = decide(empty, user=54321)  # of whom nothing is known
    assert result == f"compiled {filled[1]}"
    assert len(lines) == 1
    assert "compiled in memory" in lines[0]
    lines, result = decide(empty, user=NOBODY, HOME="/", MELEE_CACHE_DIR="/proc/nowhere")
    assert result == f"compiled {filled[1]}"
    assert len(lines) == 1


def test_damaged_code_is_compiled_again(filled, empty, tmp_path):
    place = Path(shutil.copytree(filled[0], tmp_path / "damaged"))
    for path in place.glob("*.code"):
        path.write_bytes(path.read_bytes()[:-100])
    assert decide(empty, MELEE_CACHE_DIR=str(place)) == ([], f"compiled {filled[1]}")
    assert decide(empty, MELEE_CACHE_DIR=str(place)) == ([], f"loaded {filled[1]}")


def test_of_four_processes_that_start_at_once_one_compiles(empty, tmp_path):
    plain = {k: v for k, v in os.environ.items() if not k.startswith("MELEE_")}
    script = DECIDE.replace("any(one", "[one").replace("agent._programs)", "agent._programs]")
    script = script.replace('"compiled" if [', "sum([").replace('] else "loaded"', "])")
    plain |= {"PYTHONPATH": str(ROOT / "src"), "MELEE_CACHE_DIR": str(tmp_path / "at once")}
    four = [
        subprocess.Popen(
            [sys.executable, "-B", "-c", script],
            env=plain,
            cwd=empty, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    answers = [one.communicate()[0].splitlines()[0].split() for one in four]
    assert sum(int(compiled) for compiled, _ in answers) == 3  # programs, each by one of the four
    assert len({fingerprint for _, fingerprint in answers}) == 1
