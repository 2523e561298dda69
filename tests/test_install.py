"""What an installation needs: the base for an agent's life, an extra for the rest, by name."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LIFE = ROOT / "tests" / "lean_life.py"
MOST_MEGABYTES = 330
MODULES = {"scikit-learn": "sklearn"}


def _names(requirements):
    return {canonicalize_name(Requirement(one).name) for one in requirements}


def _packages(extra):
    """The modules of an extra's packages, those of the extras inside it too."""
    packages = set()
    for one in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if one.name == PROJECT["name"]:
            packages |= {package for inner in one.extras for package in _packages(inner)}
        else:
            packages.add(MODULES.get(one.name, one.name))
    return packages


BASE = _names(PROJECT["dependencies"]) | {"llvmlite"}  # Numba's other half


def test_the_base_is_numpy_numba_and_the_terminal():
    assert _names(PROJECT["dependencies"]) == {"numpy", "numba", "typer", "rich"}


def test_all_is_everything_but_peers():
    extras = set(PROJECT["optional-dependencies"]) - {"vw"}
    assert _packages("all") == {package for extra in extras for package in _packages(extra)}
    assert _packages("vw") - _packages("all") == {"vowpalwabbit"}


def test_what_is_developed_with_has_every_package():
    lines = (ROOT / "requirements" / "dev.in").read_text().splitlines()
    named = {MODULES.get(one, one) for one in (line.partition("#")[0].strip() for line in lines)}
    assert _packages("all") | _names(PROJECT["dependencies"]) <= named


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src" / "melee").rglob("*.py")), ids=lambda path: path.stem
)
def test_every_import_is_of_the_base_or_asks_for_an_extra_that_has_it(path):
    for node, extra in _imports(ast.parse(path.read_text()).body, None):
        modules = (
            [str(node.module)] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
        for module in (name.partition(".")[0] for name in modules):
            if module not in sys.stdlib_module_names and module != "melee":
                where = f"{path.relative_to(ROOT)}:{node.lineno} imports {module}"
                assert module in (_packages(extra) if extra else BASE), where


def _imports(nodes, extra):
    """Imports that run, each with the extra that the block around it asks for."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, extra
        elif isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        elif isinstance(node, ast.With) and (asked := _asked(node)):
            yield from _imports(node.body, asked)
        else:
            yield from _imports(ast.iter_child_nodes(node), extra)


def _asked(node):
    call = node.items[0].context_expr
    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "needed":
        return ast.literal_eval(call.args[1])
    return None


def test_without_extras_an_agent_lives_and_the_rest_asks_for_them():
    _live(sys.executable, "--refuse", cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})


def _live(python, *options, cwd, env):
    done = subprocess.run(
        [python, "-W", "error", LIFE, *options],
        cwd=cwd,
        env={**env, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all is well\n"


def _closure(package):
    """The package and all that it needs, of those installed here."""
    found, new = set(), {canonicalize_name(package)}
    while new:
        found |= new
        wanted = [Requirement(line) for name in new for line in requires(name) or []]
        new = {
            canonicalize_name(one.name)
            for one in wanted
            if one.marker is None or one.marker.evaluate({"extra": ""})
        } - found
    return found


def _pinned(names):
    """The lines of requirements/dev.txt, hashes included, for these packages."""
    text = (ROOT / "requirements" / "dev.txt").read_text()
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    named = [(re.split(r"[^\w.-]", block)[0], block) for block in blocks]
    return "".join(block for name, block in named if canonicalize_name(name) in names)


@pytest.mark.long
def test_the_base_environment_is_small_and_an_agent_lives_in_it(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    home = tmp_path / "base"
    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin" / "python"
    names = set().union(*map(_closure, sorted(_names(PROJECT["dependencies"]))))
    (tmp_path / "base.txt").write_text(_pinned(names))
    into = [*pip, "--python", python, "install", "--quiet"]
    run(*into, "--require-hashes", "-r", tmp_path / "base.txt")
    run(*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("melee_bandits-*.whl")
    run(*into, "--no-deps", wheel)
    run(*pip, "--python", python, "check")

    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    megabytes = sum(path.stat().st_blocks * 512 for path in files) / 1e6
    print(f"{len(names) + 1} packages, {megabytes:.0f} MB on disk")
    assert megabytes <= MOST_MEGABYTES
    _live(python, cwd=tmp_path, env=env | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")})
