"""The documentation as a site: built strictly, by version, and held to what it may fetch.

    python -m tools.site --out site

builds `site/VERSION/` beside the versions that are there, the list of them for the menu, and
a front door that leads to the newest. A link that leads nowhere, a page that the navigation lacks
or a page that would fetch something from another host ends it.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parent.parent
_ELSEWHERE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
_CSS = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
# What a browser follows by itself; the `href` of `a` waits for a click.
_FETCHED = {
    "audio": ["src"],
    "embed": ["src"],
    "form": ["action"],
    "iframe": ["src"],
    "image": ["href", "xlink:href"],
    "img": ["src", "srcset"],
    "input": ["src"],
    "link": ["href"],
    "object": ["data"],
    "script": ["src"],
    "source": ["src", "srcset"],
    "track": ["src"],
    "use": ["href", "xlink:href"],
    "video": ["src", "poster"],
}
# What the theme would load from another host, were there something to draw with it.
_LOADERS = ["mermaid", "giscus"]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        for name in _FETCHED.get(tag, []):
            # A canonical address or an alternative is named, not fetched.
            if tag == "link" and given.get("rel") in ("canonical", "alternate", "next", "prev"):
                continue
            for address in given.get(name, "").split(","):
                if _ELSEWHERE.match(address):
                    self.fetched.append(address.strip())
        self.fetched += _CSS.findall(given.get("style", ""))
        for loader in _LOADERS:
            if loader in given.get("class", "").split():
                self.fetched.append(f"what draws class {loader!r}")


def foreign(path: Path) -> list[str]:
    """What a file of the site would make a browser fetch from other hosts."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return _CSS.findall(text)
    page = _Page()
    page.feed(text)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL | re.IGNORECASE)
    return page.fetched + [found for style in styles for found in _CSS.findall(style)]


def problems(site: Path) -> Iterator[str]:
    """What other hosts the pages, styles and figures of a site would ask."""
    for path in sorted(p for p in site.rglob("*") if p.suffix in (".html", ".css", ".svg")):
        for address in foreign(path):
            page = path.relative_to(site)
            yield f"{page} fetches {address}: keep a copy in docs/, or leave it out"


def write_versions(out: Path) -> list[str]:
    """The list of versions that the menu reads, newest first, and the front door to the newest."""
    found = []
    for directory in (path for path in out.iterdir() if (path / "index.html").is_file()):
        try:
            found.append(Version(directory.name))
        except InvalidVersion:
            continue  # not one of ours
    names = [str(version) for version in sorted(found, reverse=True)]
    listed = [{"version": name, "title": name, "aliases": []} for name in names]
    (out / "versions.json").write_text(json.dumps(listed, indent=2) + "\n")
    (out / "index.html").write_text(
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>MELEE</title>"
        f"<meta http-equiv='refresh' content='0; url={names[0]}/'>"
        f"<a href='{names[0]}/'>MELEE {names[0]}</a></html>\n"
    )
    return names


def main() -> None:
    """Build the version that is here, check it, and list it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "site")
    out: Path = parser.parse_args().out.resolve()
    from melee.version import __version__

    here = out / str(Version(__version__))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    if subprocess.run([*command, str(here)], cwd=ROOT, check=False).returncode:
        sys.exit("the site was not built: mend what is named above")
    # It asks for its styles at the root of the host, where no version of the site is.
    (here / "404.html").unlink(missing_ok=True)
    wrong = list(problems(here))
    if wrong:
        sys.exit("\n".join(wrong))
    pages = sum(1 for _ in here.rglob("*.html"))
    names = write_versions(out)
    print(f"{pages} pages in {here}; versions: {', '.join(names)}")


if __name__ == "__main__":
    main()
