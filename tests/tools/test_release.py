"""What would be published: each check finds what it is there for."""

import re
import tomllib
from pathlib import Path

import pytest

from hatch_build import for_index
from melee.version import __version__
from tools.release_check import (
    NEEDED,
    VERSIONS,
    content_problems,
    licence_problems,
    metadata_problems,
    pythons,
)

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
METADATA = f"""\
Name: melee-bandits
Version: {__version__}
Summary: {PROJECT["description"]}
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.11
Description-Content-Type: text/markdown
""" + "".join(f"Provides-Extra: {one}\n" for one in PROJECT["optional-dependencies"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("melee/__pycache__/agent.cpython-311.pyc", "should not be inside"),
        ("melee/datasets/clicks.parquet", "should not be inside"),
        ("melee/agent.melee", "should not be inside"),
        ("tests/test_agent.py", "would be installed beside the package"),
    ],
)
def test_what_does_not_belong_into_a_wheel_is_named(name, said):
    assert list(content_problems([*NEEDED, name], is_wheel=True)) == [f"{name} {said}"]


def test_a_wheel_without_its_policies_is_refused():
    weights = "melee/pretrained/melee/weights.npz"
    inside = [one for one in NEEDED if one != weights]
    assert list(content_problems(inside, is_wheel=True)) == [f"{weights} is missing"]


def test_a_source_may_hold_what_its_tests_read_and_no_cache():
    names = [f"src/{one}" for one in NEEDED]
    assert list(content_problems([*names, "tests/agent/a.melee"], is_wheel=False)) == []
    assert len(list(content_problems([*names, ".venv/bin/x", "src/a.pyc"], is_wheel=False))) == 2


def test_what_a_wheel_needs_is_in_the_tree():
    assert [one for one in NEEDED if not (ROOT / "src" / one).is_file()] == []
    shipped = (ROOT / "src" / "melee" / "pretrained").glob("*/weights.npz")
    assert {one.relative_to(ROOT / "src").as_posix() for one in shipped} <= set(NEEDED)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", None),
        ("Name: melee-bandits", "Name: melee", "Name is 'melee', expected 'melee-bandits'"),
        (f"Version: {__version__}", "Version: 9", f"Version is '9', expected '{__version__}'"),
        ("License-File: LICENSE\n", "", "License-File does not name LICENSE"),
        ("Provides-Extra: tables\n", "", "Provides-Extra is"),
    ],
)
def test_metadata_say_what_the_project_says(old, new, said):
    found = list(metadata_problems(METADATA.replace(old, new), PROJECT, __version__))
    assert len(found) == (said is not None)
    assert not found or found[0].startswith(said)


@pytest.mark.parametrize(
    ("licence", "is_fine"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", True),
        ("Apache Software License", True),
        ("Apache-2.0 OR GPL-2.0-only", True),
        ("BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND LGPL-2.1", False),
        ("Other/Proprietary License", False),
        ("", False),
    ],
)
def test_licences_are_permissive_or_named(licence, is_fine):
    found = list(licence_problems([("package", "1.0", licence)]))
    assert found == [] if is_fine else "package 1.0 has the licence" in found[0]


def test_an_interpreter_is_looked_for_by_each_version():
    found = pythons()
    assert tuple(found) == VERSIONS
    assert any(found.values())


def test_the_citation_names_this_version():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_tool_is_pinned_with_hashes_and_no_address():
    for path in (ROOT / "requirements").glob("*.in"):
        pins = path.with_suffix(".txt").read_text()
        assert "://" not in pins, path.name
        assert pins.count("==") <= pins.count("--hash=sha256:"), path.name
        for line in path.read_text().splitlines():
            name = re.match(r"[A-Za-z][\w.-]*", line)
            if name:
                assert re.search(rf"^{name[0]}(\[.*\])?==", pins, re.MULTILINE), line


README = """\
# Title

![A picture](docs/a.svg)

*How it is made: `x`,
and more.*

**Bold** and [a page](docs/a.md#b), [a site](https://example.org), [here](#title).

```python
x = names[0](docs)
```
"""


def test_an_index_is_not_shown_what_only_the_repository_has():
    assert (
        for_index(README)
        == """\
# Title

**Bold** and a page, [a site](https://example.org), [here](#title).

```python
x = names[0](docs)
```
"""
    )


def test_the_readme_of_the_index_leads_nowhere_that_it_does_not_have():
    readme = (ROOT / "README.md").read_text()
    assert list(metadata_problems(f"{METADATA}\n{readme}", PROJECT, __version__)) == [
        "the description shows or leads to files that an index does not have"
    ]
    assert not list(metadata_problems(f"{METADATA}\n{for_index(readme)}", PROJECT, __version__))
    assert len(for_index(readme)) > 0.7 * len(readme)
