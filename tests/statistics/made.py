"""Small results made of given or drawn rewards."""

import numpy as np

from melee.benchmark.results import CellResult, Results


def cell(dataset, explorer, seed, rewards, family=None, problem=""):
    rewards = np.asarray(rewards, dtype=np.float64)
    size = len(rewards)
    return CellResult(
        dataset, family or dataset, size, 2, 2, explorer, seed, rewards, 0.1, problem=problem
    )


def from_means(means, families=None, n_rounds=1):
    """One seed whose rewards are constant: `means` has shape (datasets, explorers)."""
    return Results.of(
        cell(f"d{d}", f"e{e}", 0, np.full(n_rounds, mean), families[d] if families else None)
        for d, row in enumerate(means)
        for e, mean in enumerate(row)
    )


def drawn(seed, n_datasets=6, n_explorers=3, n_seeds=2, n_rounds=20, gap=0.2, datasets=None):
    """Coins whose chance grows with the explorer's number; `datasets` reorders them."""
    rng = np.random.default_rng(seed)
    chance = np.clip(0.4 + gap * np.arange(n_explorers), 0.0, 1.0)
    cells = {
        d: [
            cell(f"d{d}", f"e{e}", s, rng.random(n_rounds + d) < chance[e], f"f{d // 2}")
            for e in range(n_explorers)
            for s in range(n_seeds)
        ]
        for d in range(n_datasets)
    }
    return Results.of(one for d in datasets or range(n_datasets) for one in cells[d])
