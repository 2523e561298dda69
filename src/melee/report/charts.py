"""The report's figures as files, for papers and slides: drawn by matplotlib, without pyplot."""

import io
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.extras import needed
from melee.figures import COLORS
from melee.report.values import Curves, ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

LINES = ["-", (0, (5, 2)), (0, (1, 1.5))]
AHEAD, BEHIND, LEVEL = "#0072b2", "#d55e00", "#8b919b"
SOFT = "#575e68"
LONGEST_NAME = 36
"""Letters of an explorer's name that a figure has room for."""


def figures(data: ReportData) -> dict[str, bytes | None]:
    """Every figure as SVG and PNG, by file name; None for one that the results do not allow.

    Same data, same bytes: the files carry no date and no random identifiers.
    """
    with needed("drawing figures", "bench"):
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    some = data.n_complete > 0
    several = some and len(data.explorers) > 1
    timed = any(row.seconds > 0 for row in data.headline)
    drawings: list[tuple[str, Callable[[ReportData, Figure], None], bool]] = [
        ("cdf", cdf, some),
        ("heat-map", heat_map, several),
        ("shares", shares, data.shares is not None),
        ("scatter", scatter, several),
        ("learning-curves", learning_curves, some),
        ("critical-difference", critical_difference, data.ranks is not None),
        ("cost", cost, timed),
    ]
    files: dict[str, bytes | None] = {}
    # Names are not mathematics: a dollar sign in one is a dollar sign.
    settings: Any = {
        "svg.hashsalt": "melee",
        "text.parse_math": False,
        "font.size": 9,
        "axes.titlesize": 10,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name in a script that the font lacks
        for name, draw, possible in drawings:
            figure = Figure(layout="constrained")
            FigureCanvasAgg(figure)
            if possible:
                draw(data, figure)
                figure.draw_without_rendering()  # lays out, once for both files
                figure.set_layout_engine("none")
            for ending, metadata in (("svg", {"Date": None}), ("png", {})):
                buffer = io.BytesIO()
                if possible:
                    figure.savefig(buffer, format=ending, dpi=160, metadata=metadata)
                files[f"{name}.{ending}"] = buffer.getvalue() or None
    return files


def cdf(data: ReportData, figure: "Figure") -> None:
    """The share of datasets on which each explorer reaches a relative reward."""
    figure.set_size_inches(8.0, 4.4)
    axes = figure.subplots()
    for i in data.order:
        axes.plot(data.cdf.x, data.cdf.y[i], label=_named(data, i), **_style(i))
    axes.set(xlim=(0, 1), ylim=(0, 1.01))
    axes.set_xlabel("relative reward x")
    axes.set_ylabel("share of datasets with at least x")
    _finish(axes)
    _legend(axes)


def heat_map(data: ReportData, figure: "Figure") -> None:
    """Significant wins minus losses of the row against the column, one panel per test."""
    order = data.order
    size, room = 0.5 + 0.42 * len(order), _room(data)
    figure.set_size_inches(size * len(data.tests) + room + 1.4, size + room)
    names = [_named(data, i) for i in order]
    panels = figure.subplots(1, len(data.tests), squeeze=False, sharey=True)[0]
    for axes, test in zip(panels, data.tests, strict=True):
        wins = np.array(test.wins)[np.ix_(order, order)]
        net = wins - wins.T
        most = max(1, int(np.abs(net).max()))
        axes.imshow(np.sign(net) * np.sqrt(np.abs(net) / most), cmap=_diverging(), vmin=-1, vmax=1)
        for row, column in np.ndindex(*net.shape):
            text = "·" if row == column else f"{net[row, column]:+d}".replace("+0", "0")
            axes.text(column, row, text.replace("-", "−"), ha="center", va="center", fontsize=7)
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(test.name, loc="left")
    figure.supylabel("wins − losses of the row", fontsize=9)


def shares(data: ReportData, figure: "Figure") -> None:
    """The share of the way from uniform choice to the best, by use and explorer."""
    found = data.shares
    assert found is not None
    rows = np.array([*found.values, found.mean, found.worst])[:, found.order]
    figure.set_size_inches(3.2 + 0.46 * rows.shape[1], 0.6 + _room(data) + 0.21 * len(rows))
    axes = figure.subplots()
    axes.imshow(np.clip(2.0 * rows - 1.0, -1, 1), cmap=_diverging(), vmin=-1, vmax=1, aspect="auto")
    for row, column in np.ndindex(*rows.shape):
        text = f"{round(float(rows[row, column]), 2) + 0.0:.2f}".replace("-", "−")
        axes.text(column, row, text, ha="center", va="center", fontsize=7)
    axes.axhline(len(found.values) - 0.5, color="black", linewidth=0.8)
    axes.set_xticks(range(rows.shape[1]), [_named(data, i) for i in found.order], rotation=90)
    axes.set_yticks(range(len(rows)), [*found.datasets, "mean", "worst"])
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)


def scatter(data: ReportData, figure: "Figure") -> None:
    """The two leading explorers, dataset by dataset, with significance in colour and shape."""
    figure.set_size_inches(5.2, 5.2)
    axes = figure.subplots()
    x, y = data.pair
    points = np.array(
        [(dataset.reward[x], dataset.reward[y]) for dataset in data.datasets if dataset.complete]
    )
    signs = np.array(list(data.tests[0].signs[f"{min(x, y)},{max(x, y)}"]))
    first_better, other_better = ("+", "-") if x < y else ("-", "+")
    low, high = float(points.min()) - 0.02, float(points.max()) + 0.02
    axes.plot([low, high], [low, high], color=SOFT, linewidth=0.8, linestyle="--")
    for sign, color, marker, text in (
        ("0", LEVEL, "o", "no significant difference"),
        (first_better, BEHIND, "s", f"{_named(data, x)} better"),
        (other_better, AHEAD, "^", f"{_named(data, y)} better"),
    ):
        mine = points[signs == sign]
        axes.scatter(
            mine[:, 0],
            mine[:, 1],
            s=22,
            marker=marker,
            facecolors="none" if sign == "0" else color,
            edgecolors=color,
            alpha=0.8,
            label=f"{text}: {len(mine)}",
        )
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set_xlabel(f"{_named(data, x)}: mean reward")
    axes.set_ylabel(f"{_named(data, y)}: mean reward")
    _finish(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def learning_curves(data: ReportData, figure: "Figure") -> None:
    """All datasets together, then the five datasets with the most rounds."""
    together = [curves for curves in data.curves if curves.dataset is None]
    alone = [curves for curves in data.curves if curves.dataset is not None]
    longest = sorted(alone, key=lambda curves: (-curves.x[-1], curves.name))
    chosen = (together[:1] + longest)[:6]
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure.set_size_inches(3.6 * columns + 2.0, 2.9 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, curves in zip(panels, chosen, strict=False):
        _curves(axes, curves, data.order)
    for axes in panels[len(chosen) :]:
        axes.set_visible(False)
    lines = panels[0].get_lines()
    figure.legend(
        lines,
        [_named(data, i) for i in data.order],
        loc="outside right upper",
        frameon=False,
        fontsize=8,
    )


def critical_difference(data: ReportData, figure: "Figure") -> None:
    """Average ranks on a line; a bar joins explorers that the data do not tell apart."""
    assert data.ranks is not None
    average = np.array(data.ranks.average)
    order = np.argsort(average, kind="stable")
    half = -(-len(order) // 2)
    bars = 0.28 * len(data.ranks.cliques)
    figure.set_size_inches(max(8.0, 4.0 + 2.0 * _room(data)), 1.1 + 0.27 * half + 0.4 * bars)
    axes = figure.subplots()
    axes.set(xlim=(1, max(2, len(order))), ylim=(-bars - half - 0.8, 1.6))
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    axes.spines["top"].set_position(("data", 0.0))
    axes.xaxis.tick_top()
    axes.set_xticks(range(1, len(order) + 1))
    axes.set_yticks([])
    for i, clique in enumerate(data.ranks.cliques):
        ends = average[clique].min() - 0.04, average[clique].max() + 0.04
        axes.plot(ends, [-0.28 * (i + 1)] * 2, color="black", linewidth=3, solid_capstyle="butt")
    for place, i in enumerate(order):
        left = place < half
        depth = -bars - 0.9 - (place if left else len(order) - 1 - place)
        edge = 0.0 if left else 1.0
        across = axes.get_yaxis_transform()
        axes.plot([average[i]] * 2, [0, depth], clip_on=False, **_style(int(i)))
        axes.annotate(
            f"{_named(data, int(i))} {average[i]:.2f}",
            xy=(average[i], depth),
            xytext=(edge, depth),
            textcoords=across,
            ha="right" if left else "left",
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": COLORS[i % len(COLORS)], "linewidth": 1.0},
        )
    if data.ranks.critical is not None and data.ranks.critical < len(order) - 1:
        end = 1 + data.ranks.critical
        axes.plot([1, end], [1.3, 1.3], color="black", linewidth=1.2, marker="|", clip_on=False)
        text = f"critical difference {data.ranks.critical:.2f}"
        axes.text(end + 0.1, 1.3, text, va="center", fontsize=8, color=SOFT)


def cost(data: ReportData, figure: "Figure") -> None:
    """Mean reward against seconds per 1000 rounds."""
    figure.set_size_inches(8.0, 4.4)
    axes = figure.subplots()
    for row in data.headline:
        if row.seconds > 0:
            i = row.explorer
            color = COLORS[i % len(COLORS)]
            axes.plot(
                [row.seconds],
                [row.reward],
                "o",
                color=color,
                markerfacecolor=color if i < len(COLORS) else "white",
                markeredgewidth=2,
                label=_named(data, i),
            )
    _logarithmic(axes)
    axes.set_xlabel("seconds per 1000 rounds (logarithmic)")
    axes.set_ylabel("mean reward")
    _finish(axes)
    _legend(axes)


def _curves(axes: "Axes", curves: Curves, order: list[int]) -> None:
    """The curves of one dataset, or of all, with their bands."""
    for i in order:
        mean = np.array(curves.mean[i])
        axes.plot(curves.x, mean, **_style(i))
        if curves.band is not None:
            band = np.array(curves.band[i])
            color = COLORS[i % len(COLORS)]
            axes.fill_between(
                curves.x, mean - band, mean + band, color=color, alpha=0.12, linewidth=0
            )
    _logarithmic(axes)
    axes.set_xlabel(curves.x_label)
    axes.set_ylabel(curves.y_label)
    axes.set_title(curves.name if len(curves.name) < 45 else curves.name[:44] + "…", loc="left")
    _finish(axes)


def _named(data: ReportData, i: int) -> str:
    """An explorer's name, or its beginning and its end, which tell settings apart."""
    name = data.explorers[i]
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME // 2]}…{name[-LONGEST_NAME // 2 + 1 :]}"


def _room(data: ReportData) -> float:
    """Inches that the longest name needs, along its line."""
    return max(1.2, 0.075 * max(len(_named(data, i)) for i in data.order))


def _style(i: int) -> dict[str, Any]:
    return {
        "color": COLORS[i % len(COLORS)],
        "linestyle": LINES[i // len(COLORS) % len(LINES)],
        "linewidth": 1.5,
    }


def _diverging() -> "Colormap":
    """Orange over white to blue, pale enough at the ends for black numbers."""
    with needed("drawing figures", "bench"):
        from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("melee", ["#e28e4d", "#ffffff", "#4d9cc9"])


def _logarithmic(axes: "Axes") -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter("")


def _finish(axes: "Axes") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e8eaee", linewidth=0.6)
    axes.set_axisbelow(True)


def _legend(axes: "Axes") -> None:
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
