"""The report on disk: one page that needs nothing else, its figures and its tables."""

import html
import json
import math
import os
import re
from dataclasses import fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from melee.atomic import make_directory, write_atomically
from melee.benchmark.results import Results
from melee.report import charts
from melee.report.data import collect
from melee.report.tables import tables
from melee.report.values import CURVE_SCALE, Curves, ReportData


def write_report(
    results: Results,
    directory: str | os.PathLike[str],
    a_a: Results | None = None,
    *,
    title: str = "",
) -> Path:
    """Write report.html, figures/ and tables/ into a directory; the path of the page.

    The same results give the same bytes. The page comes last, so it never speaks of figures
    that are not there yet.

    Parameters
    ----------
    results
        The benchmark; cells that failed are listed, and their datasets left out of statistics.
    directory
        Made if it does not exist; files of an earlier report are replaced.
    a_a
        The same plan once more with other exploration seeds, for the A/A check.
    title
        What the page is called; after the suite when left out.
    """
    home = Path(directory)
    data = collect(results, a_a, title)
    for folder, files in (("figures", charts.figures(data)), ("tables", tables(data, results))):
        make_directory(home / folder)
        for name, content in files.items():
            if content is None:
                (home / folder / name).unlink(missing_ok=True)
            else:
                write_atomically(home / folder / name, content)
    write_atomically(home / "report.html", page(data).encode())
    return home / "report.html"


def page(data: ReportData) -> str:
    """The page as text. Names from data enter as escaped text or as JSON, never as markup."""
    template = (resources.files("melee.report") / "page.html").read_text(encoding="utf-8")
    values = {"title": html.escape(data.title), "data": _embedded(data)}
    # One pass, so that a dataset called {{data}} stays a name.
    return re.sub(r"\{\{(title|data)\}\}", lambda found: values[found[1]], template)


def _embedded(data: ReportData) -> str:
    """The data as JSON that cannot end the script element which holds it."""
    text = json.dumps(_plain(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any) -> Any:
    """A value as JSON has it: six decimals, and null for what is not a number."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, Curves):
        return _shallow(value) | {"mean": _whole(value.mean), "band": _whole(value.band)}
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if is_dataclass(value):
        return {key: _plain(part) for key, part in _shallow(value).items()}
    return value


def _shallow(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _whole(curves: list[list[float]] | None) -> list[list[int]] | None:
    """Curves in whole units of 1/CURVE_SCALE."""
    if curves is None:
        return None
    whole: list[list[int]] = np.rint(np.array(curves) * CURVE_SCALE).astype(int).tolist()
    return whole
