"""What the guard of `melee` costs where all is well, and what it saves where it is not.

    python -m benchmarks.guard --suites production,DIR,DIR [--seeds 3] [--workers 2] [--docs]

Prints, for every suite and for tasks made against the policy, the mean reward with the guard and
without, that of greedy over the same learner, and how often the guard took over; shares in place of
rewards for the suite `production`. With --docs the table joins the documentation.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.pages import put
from melee.arrays import Floats
from melee.benchmark.mapping import mapper
from melee.datasets.suites import load_suite
from melee.datasets.uses import USES
from melee.explorers.melee import Melee
from melee.loop import simulate
from melee.preparation import prepare
from melee.task import Task

OWN = "learner={0.learner}:hidden={0.hidden}:ridge={0.ridge}:exact={0.exact}:rescale=true".format(
    Melee()
)
SPECS = [
    "melee",
    "melee:guard=false",
    f"epsilon-greedy:epsilon=0:{OWN}",
]


def crumbs(seed: int) -> Task:
    """Made against the budget: 30 actions, all but one pay nothing, and that one pays crumbs.

    A best mean of 0.08 looks like a problem on which nothing good is known yet, and 40 columns of
    noise keep every action's prediction uncertain for thousands of rounds. Exploring never pays.
    """
    rng = np.random.default_rng(seed)
    rewards = np.zeros((20_000, 30))
    rewards[:, int(rng.integers(30))] = 0.08
    return Task(f"crumbs-{seed}", rng.normal(size=(20_000, 40)), rewards)


def crowd(seed: int) -> Task:
    """Made against the range: 3,000 actions, far more than any task of the training."""
    rng = np.random.default_rng(seed)
    rates = rng.random(3000) ** 4
    contexts = rng.normal(size=(2000, 3))
    return Task(f"crowd-{seed}", contexts, rng.random((2000, 3000)) < rates)


MADE = {"crumbs": crumbs, "crowd": crowd}


def played(job: tuple[str, str, int]) -> list[Floats]:
    """Mean reward and shares of fallbacks of every SPEC on one task."""
    suite, name, seed = job
    task = MADE[name](seed) if suite == "made" else load_suite(suite).entry(name).load()
    whole = suite in ("made", "production")
    prepared = prepare(task, seed=seed, max_rounds=None if whole else 4000)
    runs = [simulate(prepared, spec, seed=seed) for spec in SPECS]
    values = [run.mean_reward if run.share is None else run.share for run in runs]
    told = [run.diagnostics.values() for run in runs]
    return [np.array([value, *rest]) for value, rest in zip(values, told, strict=True)]


def playable(suite: str) -> list[str]:
    """The names of a suite but for what only an agent can play."""
    if suite != "production":
        return load_suite(suite).names
    return [name for name, use in USES.items() if not (use.comes_and_goes or use.delay)]


def line(name: str, found: Sequence[list[Floats]]) -> str:
    guarded = np.array([runs[0] for runs in found])
    bare, greedy = (np.array([runs[i][0] for runs in found]) for i in (1, 2))
    mean = guarded.mean(axis=0)
    cells = [f"{mean[0]:.4f}", f"{bare.mean():.4f}", f"{greedy.mean():.4f}"]
    cells += [f"{share:.2%}" for share in mean[1:]]
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", default="bundled")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    lines = [
        "| | with the guard | without | greedy | rounds unfamiliar | rounds over budget |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    with mapper("local", workers=given.workers) as apply:
        for suite in given.suites.split(","):
            jobs = [(suite, name, seed) for name in playable(suite) for seed in range(given.seeds)]
            lines.append(line(suite.rstrip("/").rsplit("/", 1)[-1], apply(played, jobs)))
        for name in MADE:
            jobs = [("made", name, seed) for seed in range(given.seeds)]
            lines.append(line(name, apply(played, jobs)))
    print("\n".join(lines))
    if given.docs:
        put("guard", "\n".join(lines), "melee.md")


if __name__ == "__main__":
    main()
