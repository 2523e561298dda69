"""Articles that come and go: what new ones earn, with and without a look at their features.

    python examples/catalogue.py --out docs/figures/catalogue.svg

Plays a task of the suite `catalogue` twice with the default agent. One is shown the features of the
articles, as candidates of each question; to the other an article is a label, added when it appears.
Drawn is what an article earns in its n-th show, as a lead over showing any article, by expected
rewards; only articles that joined on the way count.
"""

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import melee
from melee.arrays import Floats
from melee.loop import Run
from melee.shares import uniform_and_best

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IN_A_NOTEBOOK = {"max_rounds": 2_000}
SHOWS = 50
COLORS = {True: "#0072b2", False: "#d55e00"}
NAMES = {True: "with features", False: "without"}


def leads(run: Run) -> Floats:
    """The mean lead in the first, second, ... show of new articles."""
    task, rows = run.prepared.task, run.prepared.order[: len(run.actions)]
    assert task.expected is not None
    assert task.open is not None
    uniform, _ = uniform_and_best(task.expected[rows], task.open[rows])
    there_at_once, shows = task.open[rows[0]], np.zeros(task.n_actions, np.int64)
    sums, counts = np.zeros(SHOWS), np.zeros(SHOWS)
    for i, action in enumerate(run.actions.tolist()):
        n = shows[action]
        shows[action] += 1
        if n < SHOWS and not there_at_once[action]:
            sums[n] += task.expected[rows[i], action] - uniform[i]
            counts[n] += 1.0
    return sums / np.maximum(counts, 1.0)


def draw(found: dict[bool, Floats]) -> "Figure":
    """The two curves, each a mean over five shows."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(6.2, 2.8), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        for features, lead in found.items():
            smooth = lead.reshape(-1, 5).mean(axis=1)
            places = np.arange(len(smooth)) * 5 + 3
            axes.plot(places, smooth, color=COLORS[features], label=NAMES[features])
        axes.axhline(0.0, color="#999999", linewidth=0.8)
        axes.set_xlabel("show of a new article")
        axes.set_ylabel("clicks more than uniform")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def example(task: str = "news-40", max_rounds: int | None = None) -> "Figure":
    """Play, print what was earned, and draw it."""
    warnings.simplefilter("ignore", melee.MeleeWarning)
    played = melee.load_suite("catalogue").entry(task).load()
    found = {}
    for features in (True, False):
        run = melee.rehearse(played, features=features, max_rounds=max_rounds)
        found[features] = leads(run)
        print(
            f"{NAMES[features]}: share {run.share:.3f}, new articles {found[features].mean():+.3f}"
        )
    return draw(found)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure, the same bytes for the same figure."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "melee", "font.size": 9}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """The example, as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="news-40")
    parser.add_argument("--max-rounds", type=int)
    parser.add_argument("--out", type=Path, help="where to draw the figure (.svg or .png)")
    given = parser.parse_args()
    figure = example(given.task, given.max_rounds)
    if given.out is not None:
        save(figure, given.out)


if __name__ == "__main__":
    main()
