"""Benchmark results as they might have come out: Bernoulli rewards that improve with time."""

import numpy as np

from melee.benchmark.results import CellResult, Results

NAMES = [
    "epsilon-greedy",
    "epsilon-decreasing",
    "linucb:alpha=0.1",
    "melee",
    "uniform",
    "full-information",
    "cover",
    "cover-nu",
    "tau-first",
    "eg-epsilon-greedy",
    "squarecb",
    "bagging",
    "thompson",
    "melee-paper",
    "gated-ucb",
    "softmax",
    "regcb-opt",
    "regcb-elim",
    "banditron",
    "banditron-melee",
]


def fabricate(
    n_datasets=6,
    n_explorers=4,
    n_seeds=3,
    *,
    names=None,
    failed=(),
    replicate=0,
    rounds=(100, 1500),
):
    """Results of explorers that learn at different speeds; `failed` datasets could not be read.

    Another replicate plays the same rows with other exploration.
    """
    rng, exploration = np.random.default_rng(0), np.random.default_rng([1, replicate])
    explorers = NAMES[:n_explorers]
    quality = np.linspace(0.9, 0.5, n_explorers)[np.argsort(rng.random(n_explorers))]
    cells = []
    for d in range(n_datasets):
        name = names[d] if names else f"dataset-{d}"
        n = int(rng.integers(*rounds))
        top, base, difficulty = rng.uniform(0.7, 1), rng.uniform(0.2, 0.6), rng.uniform(20, 300)
        skill = quality + rng.normal(0, 0.1, n_explorers)
        for seed_ in range(n_seeds):
            luck = rng.random(n)  # the same rows in the same order for every explorer
            for e, explorer in enumerate(explorers):
                t = np.arange(1, n + 1)
                chance = base + (top - base) * np.clip(skill[e], 0, 1) * t / (t + difficulty)
                mixed = np.where(exploration.random(n) < 0.7, luck, exploration.random(n))
                ok = d not in failed
                cells.append(
                    CellResult(
                        dataset=name,
                        family=f"family-{d // 2}",
                        n_rounds=n if ok else 0,
                        n_features=int(4 + d % 30) if ok else 0,
                        n_actions=2 + d % 3 if ok else 0,
                        explorer=explorer,
                        seed=seed_,
                        rewards=(mixed < chance).astype(float) if ok else np.empty(0),
                        seconds=n * 1e-6 * 3.0 ** (e % 7) if ok else 0.0,
                        problem="" if ok else f"{name}: cannot be read; check the file",
                    )
                )
    about = {
        "suite": "fabricated",
        "versions": {"melee": "0.1.0", "python": "3.12"},
        "settings": {"n_calibration": 30, "max_rounds": None},
        "seconds": 12.5,
    }
    return Results.of(cells, about)
