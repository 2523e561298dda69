"""The paper's claims: melee-paper against its seven baselines at the paper's settings.

Every part is resumable: run it again after an interruption. The ablated policy is trained first
(the full one ships with the package), then all explorers play every dataset of the suite over the
same learner, preparation and row order, then the tables are printed beside the paper's numbers.
With --learner, the same over another learner f: how much there is to win depends on it.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

from melee.benchmark.results import Results
from melee.benchmark.run import load_results
from melee.benchmark.store import Store
from melee.statistics import (
    Pair,
    check_levels,
    compare_pairs,
    mean_differences,
    relative_rewards,
    together,
)

FULL = "melee-paper"
PAPERS = [
    "epsilon-decreasing",
    "epsilon-greedy",
    "eg-epsilon-greedy",
    "linucb",
    "tau-first",
    "cover",
    "cover-nu",
]
"""The paper's seven baselines, at its settings, which are our defaults."""
OTHERS = ["linucb:alpha=1.0", "tau-first:stop=true"]
LEARNERS = {
    "logistic": ("loss=logistic", ["epsilon-decreasing"]),
    "adaptive": ("steps=adaptive", ["epsilon-decreasing"]),
    "ridge": ("learner=ridge", ["epsilon-decreasing"]),
}
"""Other learners: the settings that give them, and the baselines to compare over them."""


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "melee.cli", *arguments], check=True)


def only(results: Results, explorers: list[str], seeds: list[int]) -> Results:
    """The part of the results with these explorers and seeds."""
    kept = [one for one in results if one.explorer in explorers and one.seed in seeds]
    return Results.of(kept, results.about)


def net(pairs: list[Pair], name: str, other: str) -> list[str]:
    """Won–lost and net of `name` against `other`, as two cells."""
    for pair in pairs:
        if (pair.row, pair.column) == (name, other):
            return [f"{pair.wins}–{pair.losses}", f"{pair.net:+d}"]
        if (pair.row, pair.column) == (other, name):
            return [f"{pair.losses}–{pair.wins}", f"{-pair.net:+d}"]
    raise KeyError(other)


def main_table(results: Results, ablated: str) -> list[str]:
    """melee-paper against each of the others."""
    first = only(results, results.explorers, results.seeds[:1])
    tests = [compare_pairs(first), compare_pairs(results), compare_pairs(results, test="seeds")]
    differences = {(one.row, one.column): one for one in mean_differences(results)}
    means = dict(zip(first.explorers, first.mean_rewards().T, strict=True))
    lines = [
        "| melee-paper against | higher–lower–equal, one run | won–lost, one run | net "
        "| won–lost, seeds pooled | net | won–lost, test over seeds | net "
        "| mean difference (95 % interval) |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for other in [name for name in results.explorers if name != FULL]:
        sign = np.sign(means[FULL] - means[other])
        order = [f"{(sign > 0).sum()}–{(sign < 0).sum()}–{(sign == 0).sum()}"]
        cells = [cell for pairs in tests for cell in net(pairs, FULL, other)]
        one = differences[FULL, other]
        mean = f"{one.mean:+.4f} ({one.low:+.4f} to {one.high:+.4f})"
        name = "its ablation" if other == ablated else other
        lines.append("| " + " | ".join([name, *order, *cells, mean]) + " |")
    return lines


def relative_table(results: Results) -> list[str]:
    """Mean rewards, and how often each of the paper's algorithms is the best of them."""
    papers = only(results, [FULL, *PAPERS], results.seeds)
    relative = relative_rewards(papers)
    lines = [
        "| explorer | mean reward | datasets at relative reward 1.0 |",
        "| --- | ---: | ---: |",
    ]
    for i, name in enumerate(papers.explorers):
        mean = papers.mean_rewards()[:, i].mean()
        lines.append(f"| {name} | {mean:.4f} | {np.mean(relative[:, i] == 1.0):.0%} |")
    return lines


def learner_table(results: Results) -> list[str]:
    """melee-paper against a baseline, both over the same other learner."""
    pairs = compare_pairs(only(results, results.explorers, results.seeds[:1]))
    means = dict(zip(results.explorers, results.mean_rewards().mean(axis=0), strict=True))
    lines = ["| learner f | melee-paper | ε-decreasing | won–lost, one run | net |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    for name, setting in [
        ("SGD, squared loss", ""),
        *((k, f":{v[0]}") for k, v in LEARNERS.items()),
    ]:
        mine, theirs = f"{FULL}{setting}", f"epsilon-decreasing{setting}"
        cells = [f"{means[mine]:.4f}", f"{means[theirs]:.4f}", *net(pairs, mine, theirs)]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="paper300", help="paper300, or a directory")
    parser.add_argument("--out", type=Path, default=Path("runs/reproduction"))
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    policy = given.out / "ablated-policy"
    run("train", "--preset", "paper", "--features", "probabilities", "--out", str(policy))
    ablated = f"{FULL}:policy={policy}"
    claims, learners = given.out / "claims", given.out / "learners"
    common = ["--suite", given.suite, "--seeds", str(given.seeds)]
    run("bench", *common, "--explorers", ",".join([FULL, *PAPERS, *OTHERS, ablated]),
        "--out", str(claims))  # fmt: skip
    settings = ["", *(f":{setting}" for setting, _ in LEARNERS.values())]
    pairs = [f"{name}{s}" for s in settings for name in (FULL, "epsilon-decreasing")]
    run("bench", *common, "--no-a-a", "--explorers", ",".join(pairs), "--out", str(learners))
    store = Store.read(claims)
    results, again = load_results(store), load_results(store, replicate=1)
    level = together(check_levels(results, again).values())
    n = len(results.complete_datasets())
    text = "\n".join(
        [
            f"{n} of {len(results.datasets)} datasets, seeds {results.seeds}.",
            "",
            *main_table(results, ablated),
            "",
            *relative_table(results),
            "",
            *learner_table(load_results(Store.read(learners))),
            "",
            f"A/A check: an explorer differs from itself at 0.01 on {level.rounds.share:.1%} of "
            f"the datasets by the paper's test, on {level.seeds.share:.1%} by the test over seeds.",
        ]
    )
    (given.out / "tables.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    run("report", str(claims))


if __name__ == "__main__":
    main()
