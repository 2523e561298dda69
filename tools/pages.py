"""Pages that MkDocs does not find in docs/ (a hook, named in mkdocs.yml).

- What lies elsewhere in the repository becomes a page under `repository/` as soon as a page of
  docs/ leads to it: Markdown as it is, code as a listing, a directory by its README.
- `reference/` is made of the docstrings of what docs/api.md names, and of the command line.

So the pages keep links that work where they are read as files.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from tools.commands import Command, commands

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
OUTSIDE = "repository/"
_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^(```\w+) [^\n]*$", re.MULTILINE)
_LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml", ".in": "text"}


def site_path(path: str) -> str:
    """The source path, within the site, of a path within the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    return OUTSIDE + (path if path.endswith(".md") else f"{path}.md")


def follow(markdown: str, page: str) -> tuple[str, set[str]]:
    """A page's text with links as the site has them, and the files outside of docs/ they lead to.

    `page` is the page's path within the repository.
    """
    outside: set[str] = set()

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[1]))
        if not (ROOT / target).exists():
            return link[0]
        if target == "README.md":  # the site has a front page of its own
            target = "docs/index.md"
        if not target.startswith("docs/"):
            outside.add(f"{target}/README.md" if (ROOT / target).is_dir() else target)
        here = posixpath.dirname(site_path(page))
        return posixpath.relpath(site_path(target), here or ".") + (link[2] or "")

    # What the tests are told about a block (`needs=pandas`) is not for readers.
    return _LINK.sub(moved, _FENCE.sub(r"\1", markdown)), outside


def listing(path: str) -> str:
    """A file outside of docs/ as Markdown."""
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return text
    return f"# `{path}`\n\n````{_LANGUAGES.get(Path(path).suffix, 'text')}\n{text}````\n"


def outside_pages() -> dict[str, str]:
    """Pages for what lies outside of docs/, and for what these lead to in turn."""
    pages: dict[str, str] = {}
    wanted = {"CHANGELOG.md", "CONTRIBUTING.md"}
    for page in DOCS.rglob("*.md"):
        wanted |= follow(page.read_text(), page.relative_to(ROOT).as_posix())[1]
    while wanted:
        path = wanted.pop()
        pages[site_path(path)], more = (
            follow(listing(path), path) if path.endswith(".md") else (listing(path), set())
        )
        wanted |= {name for name in more if site_path(name) not in pages}
    return pages


def reference_pages(api: str) -> dict[str, str]:
    """A page of docstrings for each part of docs/api.md."""
    pages = {}
    for part in re.split(r"^## ", api, flags=re.MULTILINE)[1:]:
        title = part.partition("\n")[0].strip()
        names = re.findall(r"^### `(melee\.[\w.]+)`$", part, flags=re.MULTILINE)
        # A method comes with its class.
        tops = [name for name in names if name.rpartition(".")[0] not in names]
        elsewhere = f"[the reference](../api.md#{_slug(title)})"
        about = f"As the code says it; {elsewhere} says it in other words."
        blocks = "".join(f"\n::: {name}\n" for name in tops)
        pages[f"reference/{_slug(title)}.md"] = f"# {title}\n\n{about}\n{blocks}"
    return pages


def command_page(declared: list[Command]) -> str:
    """The command line: each command with its arguments and options."""
    lines = ["# Command line", "", "What `melee COMMAND --help` says, on one page.", ""]
    for command in declared:
        lines += [f"## `{command.name}`", "", _escaped(command.help), ""]
        for parameter in command.parameters:
            names = ", ".join(f"`{name}`" for name in parameter.names)
            if parameter.is_option and parameter.metavar:
                names += f" `{parameter.metavar}`"
            if parameter.required:
                names += " (required)"
            elif parameter.default:
                names += f" (by default `{parameter.default}`)"
            lines.append(f"- {names}: {_escaped(parameter.help)}")
        lines.append("")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return re.sub(r"([<>|*_\[\]])", r"\\\1", text)


def _slug(title: str) -> str:
    """A heading as the target of a link, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


# -- what MkDocs calls ---------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Name headings as GitHub does, so that links work in both places."""
    config.mdx_configs["toc"]["slugify"] = lambda title, _: _slug(title)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    from mkdocs.structure.files import File, InclusionLevel

    made = outside_pages() | reference_pages((DOCS / "api.md").read_text())
    made["reference/command-line.md"] = command_page(commands())
    for path, text in made.items():
        file = File.generated(config, path, content=text)
        if path.startswith(OUTSIDE) and path.count("/") > 1:
            file.inclusion = InclusionLevel.NOT_IN_NAV  # it is led to by links
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links out of docs/ to the pages that were made for them."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]  # a single page needs no list of pages beside it
    if page.file.generated_by:
        return _FENCE.sub(r"\1", markdown)
    return follow(markdown, f"docs/{page.file.src_uri}")[0]
