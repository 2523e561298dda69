"""The pages: their examples run, and the reference says what the code says.

Blocks of a page run in order and share their names, in an empty directory:

- ```python runs; with `>>>` its outputs are compared. After `needs=MODULE` it is left out where
  that module is not installed, and after `no-run` always.
- ```console runs the lines that start with `$`, and compares what they print.
"""

import doctest
import importlib
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
import typing
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import melee
from tools.api import find

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
API = DOCS / "api.md"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_BLOCK = re.compile(r"^```(python|console)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


EXAMPLES = [page for page in PAGES if _BLOCK.search(page.read_text())]


def _readers_own(page):
    """What some pages take readers to have: a table in the working directory, a task, arrays."""
    if page.name not in ("README.md", "data.md", "melee.md"):
        return {}
    rng = np.random.default_rng(0)
    x, kinds = rng.normal(size=(60, 20)), ["iris", "rose", "tulip"]
    labels = x[:, :3].argmax(axis=1)
    rows = [f"{x[i, 0]},{x[i, 1]},{x[i, 2]},{kinds[label]}" for i, label in enumerate(labels)]
    Path("flowers.csv").write_text("\n".join(["width,length,height,species", *rows]))
    task = melee.Task.from_labels("mine", x, labels)
    return {"task": task, "x": x[0], "X": x, "R": task.rewards, "numpy": np}


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_examples_run_and_say_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__", **_readers_own(page)}
    text = page.read_text()
    for block in _BLOCK.finditer(text):
        kind, options, code = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        needed = re.findall(r"needs=(\w+)", options)
        if "no-run" in options or not all(importlib.util.find_spec(one) for one in needed):
            continue
        if kind == "console":
            _run_commands(code, f"{page.name}:{line}")
        elif ">>>" in code:
            _run_session(code, names, page.name, line)
        else:
            # Blank lines before it: errors name the page's own lines.
            exec(compile("\n" * line + code, str(page), "exec"), names)


def _run_session(code, names, name, line):
    test = doctest.DocTestParser().get_doctest(code, names, name, name, line)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


def _run_commands(code, where):
    for part in re.split(r"^(?=\$ )", code, flags=re.MULTILINE):
        if not part.strip():
            continue
        command, _, expected = part.partition("\n")
        program, *arguments = shlex.split(command.removeprefix("$ "))
        assert program == "melee", f"{where}: only melee is run, not {program}"
        done = subprocess.run(
            [sys.executable, "-m", "melee.cli", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
            check=False,
        )
        got = done.stdout + done.stderr
        if expected.strip():
            assert doctest.OutputChecker().check_output(expected, got, FLAGS), f"{where}:\n{got}"
        else:
            assert done.returncode == 0, f"{where}:\n{got}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        if not path.startswith("http"):
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), f"{page.name}: {target}"
            if heading:
                titles = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
                assert heading in {_anchor(title) for title in titles}, f"{page.name}: {target}"


def _anchor(title):
    """A heading as the target of a link, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


# -- the reference -----------------------------------------------------------------------------


def _sections():
    """The reference by the dotted names of its headings."""
    parts = re.split(r"^### `(melee\.[\w.]+)`\n", API.read_text(), flags=re.MULTILINE)[1:]
    texts = (re.split(r"^#", part, maxsplit=1, flags=re.MULTILINE)[0] for part in parts[1::2])
    return dict(zip(parts[::2], texts, strict=True))


SECTIONS = _sections()


def _is_described_by_a_signature(found):
    if inspect.isclass(found):
        return not issubclass(found, BaseException | Warning)
    return callable(found)


def _signatures(name, found):
    """How something is called, as the reference writes it."""
    for one in typing.get_overloads(found) or [found]:
        signature = inspect.signature(one)
        given = [
            p.replace(annotation=inspect.Parameter.empty)
            for key, p in signature.parameters.items()
            if key not in ("self", "cls")
        ]
        yield f"{name}{signature.replace(parameters=given, return_annotation=signature.empty)}"


def _written_signatures(section):
    block = re.search(r"^```text\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    written = block.group(1) if block else ""
    nested = r"\w+\((?:[^()]|\([^()]*\))*\)"
    return [_plain(one) for one in re.findall(nested, written)]


def _plain(signature):
    one = re.sub(r"\s+", " ", signature).replace('"', "'").replace("( ", "(")
    return re.sub(r"(?<=\d)_(?=\d)", "", re.sub(r",? \)$", ")", one))


def _fields(found):
    """The fields of a named tuple or a dataclass."""
    return {*getattr(found, "_fields", ()), *getattr(found, "__dataclass_fields__", ())}


def _listed(section, pattern):
    """The names in code at the start of bullets or rows of tables."""
    return [
        name
        for start in re.findall(pattern, section, re.MULTILINE)
        for name in re.findall(r"`\*{0,2}(\w+)`", start)
    ]


@pytest.mark.parametrize("dotted", SECTIONS)
def test_the_reference_has_the_signature_of_the_code(dotted):
    found = find(dotted)
    if not _is_described_by_a_signature(found):
        assert not _written_signatures(SECTIONS[dotted])
        return
    signatures = list(_signatures(dotted.rpartition(".")[2], found))
    assert _written_signatures(SECTIONS[dotted]) == [_plain(one) for one in signatures]
    parameters = {
        key
        for one in typing.get_overloads(found) or [found]
        for key in inspect.signature(one).parameters
        if key not in ("self", "cls")
    }
    described = _listed(SECTIONS[dotted], r"^- (`[^:]*?):")
    assert len(described) == len(set(described))
    # A tuple or record is described by its table; everything else parameter by parameter.
    assert set(described) == (set() if _fields(found) else parameters)


CLASSES = [name for name in SECTIONS if inspect.isclass(find(name))]
ON_INSTANCES = {
    "melee.Bandit": {"explorer", "n_actions", "n_features", "n_learned_", "reward_range", "seed"},
    "melee.history.History": {"problems"},
}


@pytest.mark.parametrize("dotted", CLASSES)
def test_the_reference_has_every_public_member_and_no_other(dotted):
    kind = find(dotted)
    members = {
        name: member
        for base in reversed(kind.__mro__)
        if base.__module__.startswith("melee")
        for name, member in vars(base).items()
        if not name.startswith("_")
    }
    methods = {
        name
        for name, member in members.items()
        if inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
    }
    properties = {
        name for name, member in members.items() if isinstance(member, property | cached_property)
    }
    attributes = properties | _fields(kind) | ON_INSTANCES.get(dotted, set())
    described = {name.rpartition(".")[2] for name in SECTIONS if name.startswith(f"{dotted}.")}
    assert described == methods
    assert sorted(_listed(SECTIONS[dotted], r"^\| (`[^|]*) \|")) == sorted(attributes)


def test_the_reference_has_every_public_name():
    described = [find(dotted) for dotted in SECTIONS]
    for name in melee.__all__:
        if name != "__version__":
            assert any(getattr(melee, name) is one for one in described), name


# -- the example -------------------------------------------------------------------------------


def played(script, *arguments):
    """An example, played as its readers do."""
    return subprocess.run(
        [sys.executable, f"examples/{script}.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        ("ab_test", ["--rounds=200", "--tests=1"], "sign-ups gained"),
        ("servers", ["--rounds=60", "--seeds=1", "--half-life=10"], "agent that forgets"),
        ("from_vowpal_wabbit", ["--rounds=2000"], "effective sample size"),
        ("catalogue", ["--max-rounds=60"], "with features"),
        ("prices", ["--rounds=40", "--seeds=1"], "prices with a feature"),
        pytest.param("news", ["--rounds=60", "--seeds=1"], "best possible", marks=pytest.mark.long),
        ("news", ["--rounds=60", "--seeds=1", "--late=7"], "best possible"),
    ],
)
def test_an_example_draws_its_figure(script, arguments, said, tmp_path):
    figure = tmp_path / "figure.svg"
    done = played(script, *arguments, f"--out={figure}")
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert figure.read_text().lstrip().startswith("<?xml")
    assert "<dc:date>" not in figure.read_text()


@pytest.mark.parametrize("script", ["ab_test", "servers", "from_vowpal_wabbit", "prices", "news"])
def test_an_example_refuses_what_it_cannot_play(script):
    done = played(script, "--rounds=1")
    assert done.returncode == 2
    assert "expected at least" in done.stderr


def test_a_log_that_cannot_tell_is_refused_in_a_sentence():
    done = played("from_vowpal_wabbit", "--rounds=300")
    assert done.returncode == 1
    assert done.stderr.startswith("this log cannot evaluate as_taught")


def test_a_log_of_yours_becomes_an_agent(tmp_path):
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        write_log = importlib.import_module("from_vowpal_wabbit").write_log
    finally:
        sys.path.pop(0)
    log, saved = tmp_path / "shop.dsjson", tmp_path / "shop.melee"
    write_log(log, 6000)
    done = played("from_vowpal_wabbit", f"--log={log}", f"--save={saved}")
    assert done.returncode == 0, done.stderr
    assert "the agent earns" in done.stdout
    assert melee.Agent.load(saved).n_learned_ == 6000
