"""Shares by use, where datasets know their expected rewards."""

import numpy as np

from melee.benchmark.results import Results
from melee.report.values import Shares

NOTE = (
    "The share of the way from uniform choice, 0, to the best possible choice, 1, by true expected "
    "rewards and averaged over seeds; below 0 is worse than uniform choice. Unlike rewards, shares "
    "of different uses can be averaged, whatever is paid."
)


def shares_by_use(results: Results, complete: list[str]) -> Shares | None:
    """The shares of the complete datasets that have them; None if there is none."""
    known: dict[str, list[float]] = {}
    for dataset in complete:
        found = [
            [results.cell(dataset, explorer, seed).share for seed in results.seeds]
            for explorer in results.explorers
        ]
        values = np.array(found, dtype=np.float64)  # NaN for None
        if np.isfinite(values).all():
            known[dataset] = values.mean(axis=1).tolist()
    if not known:
        return None
    table = np.array(list(known.values()))
    mean, worst = table.mean(axis=0), table.min(axis=0)
    return Shares(
        datasets=list(known),
        values=table.tolist(),
        mean=mean.tolist(),
        worst=worst.tolist(),
        order=[int(i) for i in np.argsort(-mean, kind="stable")],
        note=NOTE,
    )


def told(shares: Shares, explorers: list[str]) -> str:
    """Who goes furthest, in a sentence."""
    rows = np.array(shares.values)
    parts = [
        f"{explorers[i]} {_minus(shares.mean[i])} (worst {_minus(shares.worst[i])}, "
        f"on {shares.datasets[int(rows[:, i].argmin())]})"
        for i in shares.order[:3]
    ]
    text = f"Mean share of what can be gained, over {len(shares.datasets)} uses: "
    return text + "; ".join(parts) + "."


def _minus(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
