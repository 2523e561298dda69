"""The main job, small: every explorer on the real datasets that come with scikit-learn."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from melee.arrays import Floats
from melee.datasets import load_suite
from melee.explorers import EXPLORERS
from melee.loop import simulate
from melee.preparation import prepare


@dataclass(frozen=True)
class Comparison:
    """Mean rewards of explorers (rows, best first) on datasets (columns)."""

    explorers: list[str]
    datasets: list[str]
    rewards: Floats
    n_rounds: int


def compare(
    suite: str = "bundled", *, n_seeds: int = 3, on_step: Callable[[str], None] | None = None
) -> Comparison:
    """Play every explorer on every dataset of a suite; all see the same rows in one order."""
    tasks = [entry.load() for entry in load_suite(suite)]
    table = np.zeros((len(EXPLORERS), len(tasks)))
    n_rounds = 0
    prepared = [[prepare(task, seed=seed) for seed in range(n_seeds)] for task in tasks]
    for i, name in enumerate(EXPLORERS):
        for j in range(len(tasks)):
            runs = [simulate(prepared[j][seed], name, seed=seed) for seed in range(n_seeds)]
            table[i, j] = np.mean([run.mean_reward for run in runs])
            n_rounds += sum(len(run.rewards) for run in runs)
        if on_step is not None:
            on_step(name)
    order = np.argsort(-table.mean(axis=1), kind="stable")
    names = list(EXPLORERS)
    return Comparison(
        [names[i] for i in order], [task.name for task in tasks], table[order], n_rounds
    )
