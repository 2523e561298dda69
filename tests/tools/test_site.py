"""The site: every page has its place, links lead on, and nothing is fetched from elsewhere."""

import json
import re
from pathlib import Path

import pytest

from tools.commands import Command, Parameter, commands
from tools.pages import command_page, follow, outside_pages, reference_pages
from tools.site import foreign, problems, write_versions

ROOT = Path(__file__).parent.parent.parent
PLAN = (ROOT / "mkdocs.yml").read_text()
MADE = outside_pages() | reference_pages((ROOT / "docs" / "api.md").read_text())


def _in_navigation():
    return re.findall(r"^ +- .*?(\S+\.md)$", PLAN.partition("\nnav:")[2], re.MULTILINE)


def test_every_page_of_docs_has_one_place_in_the_navigation():
    listed = _in_navigation()
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert sorted(pages - set(listed)) == [], "add these to `nav` in mkdocs.yml"
    assert len(listed) == len(set(listed))


def test_the_navigation_leads_to_pages_that_exist_or_are_made():
    made = {*MADE, "reference/command-line.md"}
    for page in _in_navigation():
        assert (ROOT / "docs" / page).is_file() or page in made, page


def test_every_reference_page_that_is_made_is_in_the_navigation():
    made = {page for page in MADE if page.startswith("reference/")}
    assert made <= set(_in_navigation())
    assert "::: melee.Agent\n" in MADE["reference/agents.md"]
    assert "::: melee.Agent.act\n" not in MADE["reference/agents.md"]


@pytest.mark.parametrize(
    ("page", "link", "expected", "outside"),
    [
        ("docs/agent.md", "[a](api.md#agents)", "[a](api.md#agents)", set()),
        ("docs/agent.md", "[a](../README.md#install)", "[a](index.md#install)", set()),
        (
            "docs/how-to/drift.md",
            "[a](../../examples/news.py)",
            "[a](../repository/examples/news.py.md)",
            {"examples/news.py"},
        ),
        (
            "docs/how-to/own-explorer.md",
            "[a](../../examples/boltzmann_decay)",
            "[a](../repository/examples/boltzmann_decay/README.md)",
            {"examples/boltzmann_decay/README.md"},
        ),
        ("CONTRIBUTING.md", "[a](docs/agent.md)", "[a](../agent.md)", set()),
        ("docs/agent.md", "[a](https://example.org/x)", "[a](https://example.org/x)", set()),
        ("docs/agent.md", "[a](missing.md)", "[a](missing.md)", set()),  # MkDocs names it
    ],
)
def test_links_lead_to_the_pages_of_the_site(page, link, expected, outside):
    assert follow(link, page) == (expected, outside)


def test_what_tests_are_told_about_a_block_is_not_shown():
    assert follow("```python needs=pandas\nx\n```\n", "docs/a.md")[0] == "```python\nx\n```\n"


def test_the_command_line_is_described_whole():
    page = command_page(commands())
    assert "## `melee evaluate`" in page
    assert "- `--format` (by default `table`): table, csv or json.\n" in page
    assert "- `LOG` (required): A log" in page


def test_a_text_from_the_code_is_not_taken_for_markdown():
    option = Parameter(("--x",), True, "", None, False, "a|b <c> *d*")
    assert r"a\|b \<c\> \*d\*" in command_page([Command("melee", "", (option,))])


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.html", '<script src="https://cdn.test/x.js"></script>', ["https://cdn.test/x.js"]),
        ("a.html", '<link rel="stylesheet" href="//cdn.test/x.css">', ["//cdn.test/x.css"]),
        (
            "a.html",
            '<img srcset="a.png 1x, http://cdn.test/b.png 2x">',
            ["http://cdn.test/b.png 2x"],
        ),
        ("a.html", '<p style="background:url(http://cdn.test/b)">', ["http://cdn.test/b"]),
        ("a.html", "<style>@import 'https://cdn.test/f';</style>", ["https://cdn.test/f"]),
        ("a.html", '<pre class="mermaid">', ["what draws class 'mermaid'"]),
        ("a.css", "@font-face{src:url(https://cdn.test/f.woff2)}", ["https://cdn.test/f.woff2"]),
        ("a.html", '<a href="https://example.org">b</a><img src="x.svg">', []),
        ("a.html", '<link rel="canonical" href="https://example.org/a">', []),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"><use xlink:href="#a"/></svg>', []),
    ],
)
def test_what_would_be_fetched_from_other_hosts_is_found(tmp_path, name, text, found):
    path = tmp_path / name
    path.write_text(text)
    assert foreign(path) == found
    assert len(list(problems(tmp_path))) == len(found)


def test_the_figures_fetch_nothing():
    assert [path.name for path in (ROOT / "docs").rglob("*.svg") if foreign(path)] == []


def test_versions_are_listed_newest_first(tmp_path):
    for name in ("0.9.0", "0.10.0", "drafts", "1.0.0rc1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "0.11.0").mkdir()  # nothing was built there
    assert write_versions(tmp_path) == ["1.0.0rc1", "0.10.0", "0.9.0"]
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [one["version"] for one in listed] == ["1.0.0rc1", "0.10.0", "0.9.0"]
    assert "url=1.0.0rc1/" in (tmp_path / "index.html").read_text()
