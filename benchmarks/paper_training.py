"""What the paper's training leaves open, measured: the options, and the noise of validation.

    python -m benchmarks.paper_training --out RUNS [--seeds 3] [--tasks 100] [--docs]

Trainings are cut to 20 tasks and choose nothing: of each, four policies on the way play the same
fresh synthetic tasks, which no training has seen, beside the ablated policy. The options are
changed one at a time. Resumable: what a training and its policies found is kept.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages import put
from melee.arrays import Floats
from melee.explorers.melee_paper import SCHEMA
from melee.meta.aggrevate import Training, aggrevate, validate

VARIANTS: dict[str, dict[str, Any]] = {
    "as the paper says": {},
    "tasks in turn": {"order": "in-turn"},
    "f rolls in first": {"first": "learner"},
    "counts of played actions": {"counts": "played"},
}
CUT: dict[str, Any] = {"n_tasks": 20, "n_validation": 1, "n_final": 1}
AT = (5, 10, 15, 20)
FRESH = Training(seed=4242)
ABLATED: Floats = np.array([float(name == "probability") for name in SCHEMA])


def returns_of(setting: dict[str, Any], seed: int, n_tasks: int) -> Floats:
    """Mean rewards (tasks, policies) of a training's policies and, last, of the ablated one."""
    rounds = list(aggrevate(Training(**CUT, **setting, seed=seed)))
    policies = [*(rounds[n - 1].weights for n in AT), ABLATED]
    return np.array([validate((FRESH, i, policies)) for i in range(n_tasks)])


def variants_table(found: dict[str, list[Floats]]) -> list[str]:
    """How far the policies of each variant are ahead of the ablation, by training seed."""
    n_seeds, n_tasks = len(next(iter(found.values()))), len(next(iter(found.values()))[0])
    lines = [
        f"| training, {n_seeds} seeds | ahead of the ablation on {n_tasks} tasks | by seed | "
        "beside the first row |",
        "| --- | ---: | ---: | ---: |",
    ]
    gains = {name: gain(runs) for name, runs in found.items()}
    base = next(iter(gains.values()))
    for name, ahead in gains.items():
        by_seed = ", ".join(f"{mean:+.4f}" for mean in ahead.mean(axis=1))
        change = (ahead - base).mean(axis=0)  # over seeds: what is left is a difference per task
        error = change.std(ddof=1) / np.sqrt(len(change))
        beside = "–" if ahead is base else f"{change.mean():+.4f} ± {error:.4f}"
        lines.append(f"| {name} | {ahead.mean():+.4f} | {by_seed} | {beside} |")
    return lines


def gain(runs: list[Floats]) -> Floats:
    """What the policies of each run earn more than the ablation: mean by (seed, task)."""
    return np.array([(run[:, :-1] - run[:, -1:]).mean(axis=1) for run in runs])


def noise_lines(runs: list[Floats]) -> list[str]:
    """How noisy the comparison of two policies of one training is."""
    rewards = np.mean([run[:, :-1].std(axis=0, ddof=1) for run in runs])
    gaps = [run[:, i] - run[:, j] for run in runs for i in range(len(AT)) for j in range(i)]
    sizes = np.array([gap.std(ddof=1) for gap in gaps])
    size = float(np.sqrt((sizes**2).mean()))
    return [
        f"From one held-out task to the next a policy's mean reward has a standard deviation of "
        f"{rewards:.3f}, and the difference between two policies of a training, on the same rows "
        f"with the same random numbers, of {size:.4f} ({sizes.min():.4f} to {sizes.max():.4f}). "
        f"Its standard error is {size / np.sqrt(20):.4f} on 20 tasks and {size / np.sqrt(640):.4f} "
        f"on 640; for 0.0005 it takes {int(np.ceil((size / 0.0005) ** 2)):,}.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=100, help="fresh tasks that policies play")
    parser.add_argument("--docs", action="store_true", help="into docs/learning-to-explore.md")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Floats]] = {name: [] for name in VARIANTS}
    for seed in range(given.seeds):
        for name, setting in VARIANTS.items():
            file = given.out / f"{name.replace(' ', '-')}-{seed}-{given.tasks}.json"
            if not file.exists():
                returns = returns_of(setting, seed, given.tasks)
                file.write_text(json.dumps(returns.tolist()), encoding="utf-8")
            found[name].append(np.array(json.loads(file.read_text(encoding="utf-8"))))
    text = "\n".join([*noise_lines(found["as the paper says"]), "", *variants_table(found)])
    print(text)
    if given.docs:
        put("training", text, "learning-to-explore.md")


if __name__ == "__main__":
    main()
