"""How much of "the best of all settings in hindsight" is luck: one setting, played again and again.

    python -m benchmarks.luck --tasks 150 --settings 10 --seeds 3

On fresh tasks of the production family `melee` stands for all of so many settings: it is played
with other seeds for each, and scored by the mean over its seeds, as settings are in a comparison.
The best of these on every task is ahead of their mean, though all are the same. By so much a best
in hindsight looks better than anything that could have been chosen beforehand.
"""

import argparse

import numpy as np

from melee.arrays import Floats
from melee.benchmark.mapping import mapper
from melee.explorers.melee import Melee, load_policy
from melee.meta.episodes import episode, run, start
from melee.preparation import prepare

FIRST = 2**41 + 2**40
"""Seeds from here on are of no other use."""


def played(job: tuple[int, int]) -> Floats:
    """The shares of so many runs on the task of a seed, each in an order of its own."""
    seed, n_runs = job
    explorer, policy = Melee(), load_policy("melee").policy
    found = np.empty(n_runs)
    first = episode("production", seed, explorer)
    for i in range(n_runs):
        prepared = prepare(first.task, seed=i, max_rounds=first.n_rounds)
        found[i] = run(start(explorer, policy, prepared)[0], explorer, prepared, seed + i)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=150)
    parser.add_argument("--settings", type=int, default=10, help="that are all the same")
    parser.add_argument("--seeds", type=int, default=3, help="for each setting")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    n_runs = given.settings * given.seeds
    with mapper("local", workers=given.workers) as apply:
        shares = np.array(apply(played, [(FIRST + i, n_runs) for i in range(given.tasks)]))
    settings = shares.reshape(given.tasks, given.settings, given.seeds).mean(axis=2)
    best = settings.max(axis=1)
    error = float((best - settings.mean(axis=1)).std()) / given.tasks**0.5
    print(f"mean share {settings.mean():.4f}")
    print(
        f"the best of {given.settings} for each task, {given.seeds} seeds each: {best.mean():.4f}, "
        f"by luck {best.mean() - settings.mean():+.4f} (standard error {error:.4f})"
    )
    within = np.mean(settings > best[:, None] - 0.03)
    print(f"within 0.03 of that best: {within:.0%} of the tasks, for a setting as good as the best")


if __name__ == "__main__":
    main()
