"""Tests of variants, without contexts: what `melee` earns beside the rules that are made for them.

    python -m benchmarks.variants --tests 500 [--docs]

2 to 30 variants, 1,000 to 20,000 visitors, successes of 0.5 to 99.5 %, each test drawn by its
number. Every explorer plays the same tests in the same order; a share is 0 for a fixed split and 1
for the best variant from the first visitor on.
"""

import argparse

import numpy as np

import melee
from benchmarks.pages import put
from melee.arrays import Floats
from melee.benchmark.mapping import mapper
from melee.datasets.lifelike import log_uniform
from melee.datasets.payments import Clicks
from melee.datasets.production import Use, task_of
from melee.errors import DataError
from melee.rng import generator
from melee.shares import share
from melee.task import Task

EXPLORERS = (
    "melee",
    *(f"linucb:learner=adaptive:alpha={width}" for width in (1.0, 1.5, 2.0)),
    *(f"thompson:learner=adaptive:scale={scale}" for scale in (0.3, 0.6, 1.0)),
    "gated-ucb:learner=adaptive:scale=2.0:power=1.0",
    *(f"epsilon-greedy:learner=adaptive:epsilon={rate}" for rate in (0.02, 0.05, 0.1)),
    "tau-first:learner=adaptive:tau=0.05",
)
SIZES = ((2, 2), (3, 6), (7, 15), (16, 30))
"""Numbers of variants, by which tests are told apart in the table."""


def drawn(number: int) -> Task:
    """The test of a number; one that luck would decide is drawn again."""
    rng = generator(number, "tests of variants")
    while True:
        rate = log_uniform(rng, 0.005, 0.6)
        use = Use(
            pays=Clicks(rate if rng.random() < 0.7 else 1.0 - rate),
            n_rounds=round(log_uniform(rng, 1000, 20_000)),
            n_actions=round(log_uniform(rng, 2, 30)),
            strength=log_uniform(rng, 0.1, 1.5),
        )
        try:
            return task_of(use, f"test-{number}", rng)
        except DataError:
            continue


def played(number: int) -> Floats:
    """The number of variants, and the share of every explorer."""
    task = drawn(number)
    prepared = melee.prepare(task, seed=number)
    assert task.expected is not None
    expected = task.expected[prepared.order]
    runs = [melee.simulate(prepared, spec, seed=number) for spec in EXPLORERS]
    return np.array([task.n_actions, *(share(expected, run.actions) for run in runs)])


def table(found: Floats) -> str:
    """A row for each explorer, the best first."""
    sizes, shares = found[:, 0], found[:, 1:]
    lines = [
        f"{len(found)} tests.",
        "",
        "| explorer | mean share | melee − it (standard error) | "
        + " | ".join(f"{low} to {high}" if high > low else f"{low} variants" for low, high in SIZES)
        + " |",
        "| --- | ---: | ---: |" + " ---: |" * len(SIZES),
    ]
    for i in np.argsort(-shares.mean(axis=0)):
        ahead = shares[:, 0] - shares[:, i]
        apart = f"{ahead.mean():+.4f} ({ahead.std() / len(ahead) ** 0.5:.4f})" if i else ""
        name = f"`{EXPLORERS[i]}`" if i else "**`melee`**, as it ships"
        of_size = [shares[(sizes >= low) & (sizes <= high), i] for low, high in SIZES]
        by_size = " | ".join(f"{found.mean():.3f}" if len(found) else "–" for found in of_size)
        lines.append(f"| {name} | {shares[:, i].mean():.3f} | {apart} | {by_size} |")
    return "\n".join(lines)


def main() -> None:
    """Play what is asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    with mapper("local", workers=given.workers) as apply:
        text = table(np.array(apply(played, list(range(given.tests)))))
    print(text)
    if given.docs:
        put("variants", text, "melee.md")


if __name__ == "__main__":
    main()
