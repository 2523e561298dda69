"""Figures, as files: PNG or SVG, by the ending of their name."""

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from melee.arrays import Floats
from melee.atomic import write_atomically
from melee.errors import InputError
from melee.extras import needed

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"]
"""Okabe and Ito's palette: told apart by everyone, in print too."""


def check_path(path: Path) -> Path:
    """The path, if a figure can be written there; asked before any work is done for it."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"cannot draw {path}: figures end in .png or .svg; rename it")
    with needed("drawing figures", "bench"):
        import matplotlib as mpl  # noqa: F401 - to ask before the work
    if not path.parent.is_dir():
        raise InputError(f"cannot draw {path}: there is no directory {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"cannot draw {path}: it is a directory; name a file in it")
    if not os.access(path.parent, os.W_OK):
        raise InputError(
            f"cannot draw {path}: the directory {path.parent} cannot be written to; give another"
        )
    return path


def learning_curves(curves: Mapping[str, Floats], path: Path, *, title: str) -> None:
    """Draw the mean reward up to each round, one line per name, on a logarithmic axis."""
    with needed("drawing figures", "bench"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    ends = []
    for i, (name, curve) in enumerate(curves.items()):
        points = np.unique(np.geomspace(1, len(curve), 400).astype(int))
        color = COLORS[i % len(COLORS)]
        axes.plot(points, curve[points - 1], color=color, linewidth=1.6, label=name)
        ends.append((float(curve[-1]), name, color))
    axes.set_xscale("log")
    low, high = limits(curves.values())
    reach = 0.02 * (high - low)
    axes.set_ylim(low - (0.0 if low == 0.0 else reach), high + reach)
    axes.set_xlabel("round (logarithmic)")
    axes.set_ylabel("mean reward so far")
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, fontsize=9)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=160)
    write_atomically(path, drawn.getvalue())


def limits(curves: Iterable[Floats]) -> tuple[float, float]:
    """What to draw curves between: 0 and 1 if all are, else the lowest and the highest of all.

    >>> limits([np.array([0.2, 0.9])]), limits([np.array([3.0, -1.0]), np.array([7.0])])
    ((0.0, 1.0), (-1.0, 7.0))
    """
    every = np.concatenate(list(curves))
    low, high = float(every.min()), float(every.max())
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def sparkline(curve: Floats, width: int = 60, between: tuple[float, float] = (0.0, 1.0)) -> str:
    """A curve in one line of text, from the lowest block to the highest.

    >>> sparkline(np.linspace(0, 1, 8), width=8)
    '▁▂▃▄▅▆▇█'
    """
    blocks = "▁▂▃▄▅▆▇█"
    low, high = between
    points = np.unique(np.linspace(0, len(curve) - 1, width).astype(int))
    heights = (curve[points] - low) / (high - low) * len(blocks)
    return "".join(blocks[min(max(int(height), 0), len(blocks) - 1)] for height in heights)
