"""Mistakes of Banditron and BanditronMELEE against the bound, on data with a known margin."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from melee.explorers.banditron import Banditron, BanditronMelee
from melee.figures import COLORS
from melee.meta.banditron import gamma, mistake_bound, separable_task, trace
from melee.preparation import prepare
from melee.task import Task

MU, N_ROWS, N_RUNS = 0.3, 5030, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("banditron.svg"))
    out: Path = parser.parse_args().out
    contexts, labels, competitor = separable_task(N_ROWS, seed=0)
    prepared = prepare(Task.from_labels("separable", contexts, labels), seed=0)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    inputs, played = prepared.inputs(prepared.order), labels[prepared.order]
    # W* acts on raw contexts; undo the scaling to have it act on what the learner sees.
    shift, scale = prepared.scaling.shift_scale
    weights = competitor / (scale * prepared.scaling.factor)
    star = np.column_stack([weights, competitor @ shift])
    for explorer, color in [(Banditron(mu=MU), COLORS[1]), (BanditronMelee(mu=MU), COLORS[0])]:
        runs = [trace(prepared, explorer, seed=seed) for seed in range(N_RUNS)]
        mistakes = np.mean([np.cumsum(run.mistakes) for run in runs], axis=0)
        edge = gamma(np.array([run.edges for run in runs]), len(competitor))
        bound = mistake_bound(star, inputs, played, mu=MU, gamma=edge)
        t = np.arange(1, len(mistakes) + 1)
        axes.plot(t, mistakes, color=color, label=f"{explorer.name}: mistakes")
        axes.plot(t, bound, color=color, linestyle="--", label=f"its bound, Γ = {edge:.2f}")
        print(f"{explorer.name}: {mistakes[-1]:.0f} mistakes, bound {bound[-1]:.0f}, Γ {edge:.3f}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("round (logarithmic)")
    axes.set_ylabel("mistakes so far (logarithmic)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(out, dpi=160, metadata={"Date": None} if out.suffix == ".svg" else {})


if __name__ == "__main__":
    main()
