"""How often `evaluate_live` holds what explorers earn live, over a grid of small worlds.

    python -m benchmarks.live_evaluation [--docs]

For each world and explorer: logs of a policy with known probabilities are drawn and evaluated, and
the same explorer is played live in the same world, as often as it takes to know its mean reward.
The table tells in how many logs the 95 % interval held that mean for a run of as many rounds as
were accepted, of `dr` and of `replay`; how wide intervals are, beside the ideal, which knows how
much the estimates of other logs differ; in how many the interval of `evaluate` held it, which
teaches the explorer by the log; and the same of the difference to the second explorer, with how
wide its interval is beside that of `dr`. A second table has the same by explorer.
"""

import argparse

import numpy as np

from benchmarks.pages import put
from tests.evaluation.live_runs import DIFFERENCE, EXPLORERS, TRAINED, WORLDS, Cell, cells

KINDS = ("dr", "replay", TRAINED, DIFFERENCE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--explorers", default=",".join(EXPLORERS))
    parser.add_argument("--rounds", type=int, default=400, help="of each log")
    parser.add_argument("--logs", type=int, default=20, help="of each world")
    parser.add_argument("--live", type=int, default=120, help="runs by which the truth is known")
    parser.add_argument("--docs", action="store_true", help="write into the documentation")
    given = parser.parse_args()
    explorers = tuple(given.explorers.split(","))
    print(
        "| world | explorer | live | dr | held | width | replay | held | width | trained | held "
        "| difference | held | width |"
    )
    print("| --- | --- |" + " ---: |" * 12)
    every: dict[tuple[str, str], Cell] = {}
    for name, world in WORLDS.items():
        sizes = {"n_rounds": given.rounds, "n_logs": given.logs, "n_live": given.live}
        for explorer, cell in zip(explorers, cells(world, explorers, **sizes), strict=True):
            every[name, explorer] = cell
            columns = [f"{cell.live.mean():.3f}"]
            for kind in KINDS:
                if kind in cell.found:
                    columns += [f"{cell.found[kind][:, 0].mean():.3f}"]
                    columns += [f"{cell.holds(kind).mean():.0%}"]
                    columns += [f"{cell.width(kind):.2f}"] if kind != TRAINED else []
                else:
                    columns += [""] * 3
            print(f"| {name} | `{explorer}` | {' | '.join(columns)} |", flush=True)
    text = summary(every, explorers)
    print(f"\n{text}")
    if given.docs:
        put("live", text, "how-to/evaluation.md")


def summary(every: dict[tuple[str, str], Cell], explorers: tuple[str, ...]) -> str:
    """In how many logs intervals held what live runs earn, by explorer and in all."""
    n_logs = len(next(iter(every.values())).live)
    worlds = {name for name, _ in every}
    lines = [
        f"{n_logs} logs of each of {len(worlds)} worlds; the width is beside that of an ideal "
        "interval, which knows how far the estimates of other logs differ.",
        "",
        "| explorer | dr holds | width | replay holds | width | trained on the log | "
        f"difference to `{explorers[1]}` holds | width | beside dr |",
        "| --- |" + " ---: |" * 8,
    ]
    for label, some in [*((f"`{name}`", (name,)) for name in explorers), ("all", explorers)]:
        of_row = [cell for (_, explorer), cell in every.items() if explorer in some]
        columns = []
        for kind in KINDS:
            known = [cell for cell in of_row if kind in cell.found]
            if not known:
                columns += [""] * 3
                continue
            columns.append(f"{np.mean([cell.holds(kind) for cell in known]):.1%}")
            if kind != TRAINED:
                columns.append(f"{np.median([cell.width(kind) for cell in known]):.2f}")
            if kind == DIFFERENCE:
                columns.append(f"{np.median([_beside(cell) for cell in known]):.2f}")
        lines.append(f"| {label} | {' | '.join(columns)} |")
    return "\n".join(lines)


def _beside(cell: Cell) -> float:
    """How wide the intervals of differences are beside those of `dr`."""
    of_both = (np.diff(cell.found[kind][:, 1:]) for kind in (DIFFERENCE, "dr"))
    return float(np.divide(*of_both).mean())


if __name__ == "__main__":
    main()
