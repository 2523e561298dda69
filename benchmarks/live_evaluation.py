"""How often `evaluate_live` holds what explorers earn live, over a grid of small worlds.

    python -m benchmarks.live_evaluation

For each world and explorer: logs of a policy with known probabilities are drawn and evaluated, and
the same explorer is played live in the same world, as often as it takes to know its mean reward.
The table tells in how many logs the 95 % interval held that mean for a run of as many rounds as
were accepted, of `dr` and of `replay`; how wide intervals are, beside the ideal, which knows how
much the estimates of other logs differ; and in how many the interval of `evaluate` held it, which
teaches the explorer by the log.
"""

import argparse

import numpy as np

from tests.evaluation.live_runs import EXPLORERS, WORLDS, Cell, cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--explorers", default=",".join(EXPLORERS))
    parser.add_argument("--rounds", type=int, default=400, help="of each log")
    parser.add_argument("--logs", type=int, default=10, help="of each world")
    parser.add_argument("--live", type=int, default=60, help="runs by which the truth is known")
    given = parser.parse_args()
    explorers = tuple(given.explorers.split(","))
    print(
        "| world | explorer | live | dr | held | width | replay | held | width | trained | held |"
    )
    print("| --- | --- |" + " ---: |" * 9)
    every: list[Cell] = []
    for name, world in WORLDS.items():
        sizes = {"n_rounds": given.rounds, "n_logs": given.logs, "n_live": given.live}
        for explorer, cell in zip(explorers, cells(world, explorers, **sizes), strict=True):
            every.append(cell)
            columns = [f"{cell.live.mean():.3f}"]
            for kind, found in cell.found.items():
                columns += [f"{found[:, 0].mean():.3f}", f"{cell.holds(kind).mean():.0%}"]
                columns += [f"{cell.width(kind):.2f}"] if kind in ("dr", "replay") else []
            print(f"| {name} | `{explorer}` | {' | '.join(columns)} |", flush=True)
    for kind in every[0].found:
        held = np.concatenate([cell.holds(kind) for cell in every])
        print(
            f"{kind}: {held.sum()} of {len(held)} intervals hold the live mean, {held.mean():.1%}"
        )
        if kind in ("dr", "replay"):
            print(f"  median width {np.median([cell.width(kind) for cell in every]):.2f}")


if __name__ == "__main__":
    main()
