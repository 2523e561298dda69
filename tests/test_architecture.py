"""docs/architecture.md names every module, where it is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
_LINE = re.compile(r"^(?P<indent> {4,})(?P<path>[\w/]+/|[\w/]+\.py)?(?P<rest>.*)$")
_FILE = re.compile(r"[\w/]+\.(?:py|html|csv)\b")


def named(page):
    """The paths that the tree on a page names: directories end in a slash.

    A line begins with a directory, or with a file of the one around it. Lines that begin further
    in than all of these go on with what the directory holds.
    """
    paths: list[str] = []
    around: list[tuple[int, str]] = []  # the directories that a line is in, and their indents
    for line in page.splitlines():
        found = _LINE.match(line)
        if found is None:
            around = []
            continue
        indent, path, rest = len(found["indent"]), found["path"], found["rest"]
        is_entry = path is not None and (not around or indent <= around[-1][0] + 2)
        if is_entry:
            while around and around[-1][0] >= indent:
                around.pop()
        if not around and not (is_entry and path.endswith("/")):
            continue  # an indented line that belongs to no tree
        if is_entry and path.endswith("/"):
            around.append((indent, (around[-1][1] if around else "") + path))
            paths.append(around[-1][1])
            line = rest
        paths += [around[-1][1] + file for file in _FILE.findall(line)]
    return paths


def modules():
    roots = ("src/melee", "benchmarks", "tools")
    files = [file for root in roots for file in ROOT.glob(f"{root}/**/*.py")]
    return sorted(
        file.relative_to(ROOT).as_posix() for file in files if not file.name.startswith("__")
    )


def test_every_module_is_named_once():
    paths = named(PAGE.read_text())
    assert [one for one in modules() if one not in paths] == []
    assert sorted({one for one in paths if paths.count(one) > 1}) == []


def test_every_path_that_is_named_exists():
    paths = named(PAGE.read_text())
    missing = [
        one
        for one in paths
        if not ((ROOT / one).is_dir() if one.endswith("/") else (ROOT / one).is_file())
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("      loop.py  the loop\n      learners/  sgd.py", ["loop.py", "learners/sgd.py"]),
        (
            "      learners/  sgd.py\n                 ridge.py",
            ["learners/sgd.py", "learners/ridge.py"],
        ),
        ("      learners/  sgd.py\n      loop.py  the loop", ["learners/sgd.py", "loop.py"]),
        ("      learners/  sgd.py\n\n      loop.py  no tree", ["learners/sgd.py"]),
    ],
)
def test_a_tree_is_read_line_by_line(change, expected):
    paths = named(f"    src/melee/\n{change}\n")
    assert [one for one in paths if one.endswith(".py")] == [f"src/melee/{p}" for p in expected]
