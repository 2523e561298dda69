"""The recipe of docs/how-to/containers.md, by user and permissions, without a container engine."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from typer.testing import CliRunner

import melee
from melee.cli import app
from melee.compiled import codegen, files, programs
from melee.errors import DataError
from tests.compiled.test_files import NOBODY, ROOT, as_root, for_all

PAGE = ROOT / "docs" / "how-to" / "containers.md"

SERVE = """
import logging, os, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout)
import melee
agent = melee.Agent(["a", "b", "c"])
decision = agent.act({"x": 1.0})
melee.compile_now(agent)
print([one.compiled for one in agent._programs], agent.ready, os.getuid(), os.listdir("."))
"""


def recipe():
    """The environment and the commands of the page's Dockerfile."""
    dockerfile = re.search(r"```dockerfile\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert dockerfile is not None
    lines = [line.partition(" ") for line in dockerfile[1].splitlines()]
    environment = dict(rest.split("=", 1) for word, _, rest in lines if word == "ENV")
    commands = [rest for word, _, rest in lines if word == "RUN" and not rest.startswith("pip")]
    users = [int(rest) for word, _, rest in lines if word == "USER"]
    return environment, commands, users


@as_root
@pytest.mark.parametrize("begun", [True, pytest.param(False, marks=pytest.mark.long)])
def test_an_image_built_by_root_serves_a_user_who_can_write_nowhere(begun, tmp_path):
    environment, commands, users = recipe()
    assert (list(environment), commands, users) == (
        ["MELEE_CACHE_DIR"],
        ["melee compile"],
        [NOBODY],
    )
    place = tmp_path / environment["MELEE_CACHE_DIR"].lstrip("/")
    path = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MELEE_", "XDG_", "HOME"))}
    plain |= {"PYTHONPATH": path, "MELEE_CACHE_DIR": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    python = str(for_all())
    if begun:  # with what these tests have compiled, which takes a while
        melee.compile_now(melee.Agent(["a", "b", "c"]))
        place.mkdir(parents=True)
        for code in Path(str(files.directory())).glob("*.code"):
            with contextlib.suppress(FileNotFoundError):  # others make room in it meanwhile
                shutil.copy2(code, place)
    for command in commands:
        _, *arguments = shlex.split(command)
        subprocess.run([python, "-m", "melee.cli", *arguments], env=plain, check=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    for one in [place, empty, tmp_path, *tmp_path.parents[:3]]:
        one.chmod(0o555 if one in (place, empty) else 0o755)
    kept = {one.name: one.stat().st_mtime_ns for one in place.iterdir()}
    served = subprocess.run(
        [python, "-c", SERVE],
        env=plain, cwd=empty, user=users[0], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert served.stdout == f"[False, False, False] True {NOBODY} []\n", served.stderr
    assert {one.name: one.stat().st_mtime_ns for one in place.iterdir()} == kept


def test_the_command_says_what_it_has_compiled_and_where(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "melee.cli", "compile", "uniform"],
        env={**os.environ, "MELEE_CACHE_DIR": str(tmp_path / "kept")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "act_rows" in done.stdout
    assert str(tmp_path / "kept") in done.stdout.replace("\n", "")
    assert len(list((tmp_path / "kept").glob("*.code"))) == 3


def test_the_command_compiles_for_agents_to_which_candidates_come(monkeypatch, tmp_path):
    monkeypatch.setenv("MELEE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(programs, "_PROGRAMS", {})
    done = CliRunner().invoke(app, ["compile", "uniform", "--candidates"], catch_exceptions=False)
    assert "act_pairs" in done.stdout
    kept = {path.name for path in tmp_path.glob("*.code")}
    assert len(kept) == 2
    agent = melee.Agent(explorer="uniform")
    agent.learn(agent.act({"x": 1}, actions={"a": {"topic": "film", "n": 1.0}}).id, 1.0)
    melee.compile_now(agent)
    assert {path.name for path in tmp_path.glob("*.code")} == kept


def test_the_command_says_so_where_nothing_can_be_kept(monkeypatch):
    monkeypatch.setenv("MELEE_CACHE_DIR", "/proc/nowhere")
    monkeypatch.setenv("MELEE_COMPILE", "now")
    monkeypatch.setattr(programs, "_PROGRAMS", {})
    monkeypatch.setattr(codegen, "compile_kernel", lambda function, *_: (function, b"code"))
    with pytest.raises(DataError, match="set MELEE_CACHE_DIR to a directory that can be written"):
        CliRunner().invoke(app, ["compile", "uniform"], catch_exceptions=False)
    assert Path("/proc/nowhere").exists() is False
