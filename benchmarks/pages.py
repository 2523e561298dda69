"""Pages of the documentation whose tables are written by the benchmarks that measure them."""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def put(name: str, text: str, page: str) -> None:
    """Put a text between the marks of that name in a page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    path = DOCS / page
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{path}: there is no place for {name}; expected the marks {begin} {end}")
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
