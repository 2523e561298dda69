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

import numpy as np

import melee
from melee.arrays import Floats
from melee.loop import Run
from melee.shares import uniform_and_best

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


def draw(found: dict[bool, Floats], path: Path) -> None:
    """The two curves, each a mean over five shows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "melee", "font.size": 9}):
        figure, axes = plt.subplots(figsize=(6.2, 2.8), layout="constrained")
        for features, lead in found.items():
            smooth = lead.reshape(-1, 5).mean(axis=1)
            places = np.arange(len(smooth)) * 5 + 3
            axes.plot(places, smooth, color=COLORS[features], label=NAMES[features])
        axes.axhline(0.0, color="#999999", linewidth=0.8)
        axes.set_xlabel("show of a new article")
        axes.set_ylabel("clicks more than uniform")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def main() -> None:
    """Play, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="news-40")
    parser.add_argument("--max-rounds", type=int)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore", melee.MeleeWarning)
    task = melee.load_suite("catalogue").entry(given.task).load()
    found = {}
    for features in (True, False):
        run = melee.rehearse(task, features=features, max_rounds=given.max_rounds)
        found[features] = leads(run)
        print(
            f"{NAMES[features]}: share {run.share:.3f}, new articles {found[features].mean():+.3f}"
        )
    draw(found, given.out)


if __name__ == "__main__":
    main()
