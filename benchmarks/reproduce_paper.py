"""The paper's claims: melee-paper against its seven baselines, and over training seeds.

    python -m benchmarks.reproduce_paper --suite DIR [--seeds 3] [--training-seeds 10] [--workers 1]

Every part is resumable: run it again after an interruption. Policies are trained with as many
training seeds as asked for, and the ablated one; the policy of seed 0 is the one that ships. Then
all explorers play every dataset of the suite over the same learner, preparation and row order, and
the tables are printed beside the paper's numbers. A comparison over other learners f follows: how
much there is to win depends on it.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from melee.arrays import Floats
from melee.benchmark.results import Results
from melee.benchmark.run import load_results
from melee.benchmark.store import Store
from melee.datasets.suites import load_suite
from melee.explorers.melee_paper import policy_hash
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


BASELINE = "epsilon-decreasing"
"""The paper's strongest baseline."""


def missing(suite: str) -> list[int]:
    """The paper's datasets that a directory does not have, by their OpenML ids."""
    if not Path(suite).is_dir():
        return []
    files = [
        found for file in Path(suite).iterdir() if (found := re.match(r"openml_(\d+)\.", file.name))
    ]
    held = {int(found[1]) for found in files}
    listed = [int(entry.source.split()[-1]) for entry in load_suite("paper300")]
    return [number for number in sorted(listed) if number not in held]


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


def training_table(results: Results, policies: list[str], ablated: str) -> list[str]:
    """Every training seed's policy against its ablation and the paper's strongest baseline."""
    first = only(results, results.explorers, results.seeds[:1])
    pairs = compare_pairs(first)
    means = dict(zip(results.explorers, results.mean_rewards().T, strict=True))
    differences = {(one.row, one.column): one for one in mean_differences(results)}
    lines = [
        "| training seed | mean reward | against ε-decreasing, won–lost, one run | net "
        "| mean difference (95 % interval) | against the ablation, won–lost, one run | net "
        "| mean difference (95 % interval) |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for seed, name in enumerate(policies):
        cells = [f"{seed}", f"{means[name].mean():.4f}"]
        for other in (BASELINE, ablated):
            one = differences[name, other]
            cells += net(pairs, name, other)
            cells.append(f"{one.mean:+.4f} ({one.low:+.4f} to {one.high:+.4f})")
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(spread(means, policies, other, ablated) for other in (BASELINE, ablated))]
    return lines


def spread(means: dict[str, Floats], policies: list[str], other: str, ablated: str) -> str:
    """How far the policies of the training seeds are ahead of an explorer, in a sentence."""
    ahead = np.array([(means[name] - means[other]).mean() for name in policies])
    label = "the ablation" if other == ablated else other
    deviation = f", standard deviation {ahead.std(ddof=1):.4f}" if len(ahead) > 1 else ""
    return (
        f"- {(ahead > 0).sum()} of {len(ahead)} policies earn more than {label}: by "
        f"{ahead.mean():.4f} on average, {ahead.min():.4f} to {ahead.max():.4f}{deviation}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="paper300", help="paper300, or a directory")
    parser.add_argument("--out", type=Path, default=Path("runs/reproduction"))
    parser.add_argument("--seeds", type=int, default=3, help="of the runs on every dataset")
    parser.add_argument("--training-seeds", type=int, default=10, help="policies to train")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    workers = ["--workers", str(given.workers)]
    trained = [given.out / "policies" / f"seed-{seed}" for seed in range(given.training_seeds)]
    for seed, path in enumerate(trained):
        run("train", "--preset", "paper", "--seed", str(seed), "--out", str(path), *workers)
    ablated_path = given.out / "policies" / "ablated"
    # Of any training seed: with a positive weight on the probability alone all play the same.
    run("train", "--preset", "paper", "--features", "probabilities", "--out", str(ablated_path),
        *workers)  # fmt: skip
    policies, ablated = (
        [f"{FULL}:policy={path}" for path in trained],
        f"{FULL}:policy={ablated_path}",
    )
    claims, learners, seeds = (given.out / name for name in ("claims", "learners", "seeds"))
    common = ["--suite", given.suite, *workers]
    run("bench", *common, "--seeds", str(given.seeds), "--explorers",
        ",".join([FULL, *PAPERS, *OTHERS, ablated]), "--out", str(claims))  # fmt: skip
    run("bench", *common, "--seeds", str(given.seeds), "--no-a-a", "--explorers",
        ",".join([*policies, BASELINE, ablated]), "--out", str(seeds))  # fmt: skip
    settings = ["", *(f":{setting}" for setting, _ in LEARNERS.values())]
    pairs = [f"{name}{s}" for s in settings for name in (FULL, BASELINE)]
    run("bench", *common, "--seeds", "1", "--no-a-a", "--explorers", ",".join(pairs),
        "--out", str(learners))  # fmt: skip
    store = Store.read(claims)
    results, again = load_results(store), load_results(store, replicate=1)
    level = together(check_levels(results, again).values())
    absent = missing(given.suite)
    same = policy_hash(str(trained[0])) == policy_hash("paper")
    text = "\n".join(
        [
            f"{len(results.complete_datasets())} of the paper's 300 datasets, seeds "
            f"{results.seeds}. Missing: {', '.join(map(str, absent)) or 'none'}.",
            "",
            *main_table(results, ablated),
            "",
            *relative_table(results),
            "",
            *training_table(load_results(Store.read(seeds)), policies, ablated),
            f"- The policy of training seed 0 is {'' if same else 'not '}the one that ships.",
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
