"""Learning curves: how `melee` comes to its reward, and how its policy came to be.

    python -m benchmarks.melee_curves --suite DIR --out docs/figures [--policies DIR,DIR]

Writes melee-rewards.svg (mean over the suite's datasets of the reward in windows of the run, which
lie evenly on the logarithm of time) and melee-training.svg (share on held-out synthetic tasks over
the generations of the training, for the shipped policy and those given).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from melee import artefact
from melee.arrays import Floats
from melee.benchmark.mapping import mapper
from melee.datasets.suites import load_suite
from melee.loop import simulate
from melee.preparation import prepare

SPECS = {
    "melee": "melee",
    "gated-ucb": "gated-ucb",
    "LinUCB, α = 0.2": "linucb:alpha=0.2",
    "greedy": "epsilon-greedy:learner=ridge",
    "full information, linear": "full-information",
}
EDGES = np.unique(np.geomspace(10, 4000, 25).astype(int))


def windows(job: tuple[str, str, int]) -> Floats:
    """Mean reward of every SPEC in every window that the dataset reaches, NaN in others."""
    suite, name, seed = job
    prepared = prepare(load_suite(suite).entry(name).load(), seed=seed, max_rounds=int(EDGES[-1]))
    found = np.full((len(SPECS), len(EDGES) - 1), np.nan)
    for i, spec in enumerate(SPECS.values()):
        rewards = simulate(prepared, spec, seed=seed).rewards
        for j in range(len(EDGES) - 1):
            if EDGES[j + 1] <= len(rewards):
                found[i, j] = rewards[EDGES[j] : EDGES[j + 1]].mean()
    return found


def draw_rewards(found: Floats, n_datasets: int, out: Path) -> None:
    """Only datasets that reach the last window, so that a line compares with itself."""
    long = found[~np.isnan(found).any(axis=(1, 2))].mean(axis=0)
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    middle = np.sqrt(EDGES[:-1] * EDGES[1:])
    for name, line in zip(SPECS, long, strict=True):
        thick = 2.4 if name == "melee" else 1.3
        axes.plot(middle, line, label=name, linewidth=thick)
    axes.set(xscale="log", xlabel="round", ylabel="reward in the window")
    axes.set_title(f"{n_datasets} datasets of 4,000 rounds, mean reward by time")
    axes.legend(frameon=False)
    figure.savefig(out, metadata={"Date": None})


def draw_training(manifests: dict[str, dict[str, Any]], out: Path) -> None:
    """The validation curve of every training."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, manifest in manifests.items():
        curve = manifest["training"]["validation_curve"]
        generations, values = zip(*curve, strict=True)
        axes.plot(generations, values, marker="o", markersize=4, label=name)
    axes.axhline(
        values[0], color="grey", linewidth=0.8, linestyle=":", label="the rule it starts from"
    )
    axes.set(xlabel="generation", ylabel="share on held-out tasks")
    axes.set_title("Validation on synthetic tasks while training")
    axes.legend(frameon=False)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policies", default="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "melee"
    names = load_suite(given.suite).names
    with mapper("local", workers=given.workers) as apply:
        jobs = [(given.suite, name, seed) for name in names for seed in range(given.seeds)]
        found = np.array(apply(windows, jobs))
    reach = ~np.isnan(found).any(axis=(1, 2))
    draw_rewards(found, int(reach.sum()) // given.seeds, given.out / "melee-rewards.svg")
    manifests = {}
    for policy in ["melee", *(name for name in given.policies.split(",") if name)]:
        text = (artefact.locate(policy) / artefact.MANIFEST).read_text(encoding="utf-8")
        manifest = json.loads(text)
        manifests[f"seed {manifest['training']['seed']}"] = manifest
    draw_training(manifests, given.out / "melee-training.svg")


if __name__ == "__main__":
    main()
