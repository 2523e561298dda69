"""The paper's claims: melee-paper against its seven baselines, and over training seeds.

    python -m benchmarks.reproduce_paper --suite DIR [--seeds 3] [--training-seeds 10]
        [--workers 1] [--only claims,seeds,learners] [--docs]

Three parts: the shipped policy against the paper's baselines (`claims`); policies of many training
seeds, of which seed 0's is the shipped one, against their ablation and the strongest baseline
(`seeds`); and the shipped one over other learners f, on which depends how much there is to win
(`learners`). All explorers play every dataset over the same learner, preparation and row order.
Everything is resumable: run it again after an interruption.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.pages import put
from melee.arrays import Floats
from melee.benchmark.results import Results
from melee.benchmark.run import load_results
from melee.benchmark.store import CellStore
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
LEARNERS = {"logistic": "loss=logistic", "adaptive": "steps=adaptive", "ridge": "learner=ridge"}
"""Other learners, by the settings that give them."""


PARTS = ("claims", "seeds", "learners")
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
    kept = [cell for cell in results if cell.explorer in explorers and cell.seed in seeds]
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
    differences = {
        (difference.row, difference.column): difference for difference in mean_differences(results)
    }
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
        difference = differences[FULL, other]
        mean = f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"
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
        *((name, f":{setting}") for name, setting in LEARNERS.items()),
    ]:
        mine, theirs = f"{FULL}{setting}", f"{BASELINE}{setting}"
        cells = [f"{means[mine]:.4f}", f"{means[theirs]:.4f}", *net(pairs, mine, theirs)]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return lines


def training_table(results: Results, policies: list[str], ablated: str) -> list[str]:
    """Every training seed's policy against its ablation and the paper's strongest baseline."""
    first = only(results, results.explorers, results.seeds[:1])
    pairs = compare_pairs(first)
    means = dict(zip(results.explorers, results.mean_rewards().T, strict=True))
    differences = {
        (difference.row, difference.column): difference for difference in mean_differences(results)
    }
    lines = [
        "| training seed | mean reward | against ε-decreasing, won–lost, one run | net "
        "| mean difference (95 % interval) | against the ablation, won–lost, one run | net "
        "| mean difference (95 % interval) |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for seed, name in enumerate(policies):
        cells = [f"{seed}", f"{means[name].mean():.4f}"]
        for other in (BASELINE, ablated):
            difference = differences[name, other]
            cells += net(pairs, name, other)
            cells.append(
                f"{difference.mean:+.4f} ({difference.low:+.4f} to {difference.high:+.4f})"
            )
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


class Reproduction:
    """The parts of the reproduction: what they train and play, and the tables they end in."""

    def __init__(self, suite: str, out: Path, n_seeds: int, n_policies: int, workers: int) -> None:
        self.suite, self.out, self.n_seeds, self.workers = suite, out, n_seeds, str(workers)
        self.trained = [out / "policies" / f"seed-{seed}" for seed in range(n_policies)]
        self.ablated = f"{FULL}:policy={out / 'policies' / 'ablated'}"

    def train(self, path: Path, *options: str) -> None:
        """Train a policy, or find it trained."""
        run("train", "--preset", "paper", "--workers", self.workers, *options, "--out", str(path))

    def train_ablated(self) -> None:
        """Of seed 0: all with a positive weight on the probability alone play the same."""
        self.train(self.out / "policies" / "ablated", "--features", "probabilities")

    def bench(self, name: str, explorers: list[str], *options: str) -> CellStore:
        """Play the suite, or what is left of it."""
        given = ["--suite", self.suite, "--seeds", str(self.n_seeds), "--workers", self.workers]
        run("bench", *given, *options, "--explorers", ",".join(explorers),
            "--out", str(self.out / name))  # fmt: skip
        return CellStore.read(self.out / name)

    def claims(self) -> list[str]:
        """The shipped policy against the paper's baselines."""
        self.train_ablated()
        store = self.bench("claims", [FULL, *PAPERS, *OTHERS, self.ablated])
        results, again = load_results(store), load_results(store, replicate=1)
        level = together(check_levels(results, again).values())
        run("report", str(self.out / "claims"))
        return [
            datasets_line(self.suite, results),
            "",
            *main_table(results, self.ablated),
            "",
            *relative_table(results),
            "",
            f"A/A check: an explorer differs from itself at 0.01 on {level.rounds.share:.1%} of "
            f"the datasets by the paper's test, on {level.seeds.share:.1%} by the test over seeds.",
        ]

    def seeds(self) -> list[str]:
        """The policies of all training seeds against their ablation and ε-decreasing."""
        for seed, path in enumerate(self.trained):
            self.train(path, "--seed", str(seed))
        self.train_ablated()
        policies = [f"{FULL}:policy={path}" for path in self.trained]
        store = self.bench("seeds", [*policies, BASELINE, self.ablated], "--no-a-a")
        same = policy_hash(str(self.trained[0])) == policy_hash("paper")
        results = load_results(store)
        return [
            datasets_line(self.suite, results),
            "",
            *training_table(results, policies, self.ablated),
            f"- The policy of training seed 0 is {'' if same else 'not '}the one that ships.",
        ]

    def learners(self) -> list[str]:
        """The shipped policy against ε-decreasing over other learners f."""
        settings = ["", *(f":{setting}" for setting in LEARNERS.values())]
        pairs = [f"{name}{setting}" for setting in settings for name in (FULL, BASELINE)]
        return learner_table(load_results(self.bench("learners", pairs, "--no-a-a")))


def datasets_line(suite: str, results: Results) -> str:
    """How many of the paper's datasets were played, which are missing, and with which seeds."""
    absent = ", ".join(map(str, missing(suite)))
    return (
        f"{len(results.complete_datasets())} of the paper's 300 datasets, seeds {results.seeds}. "
        f"Missing, by their OpenML ids: {absent or 'none'}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="paper300", help="paper300, or a directory")
    parser.add_argument("--out", type=Path, default=Path("runs/reproduction"))
    parser.add_argument("--seeds", type=int, default=3, help="of the runs on every dataset")
    parser.add_argument("--training-seeds", type=int, default=10, help="policies to train")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by commas")
    parser.add_argument("--docs", action="store_true", help="write into docs/reproduction.md")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    parts = Reproduction(given.suite, given.out, given.seeds, given.training_seeds, given.workers)
    wanted = given.only.split(",")
    if strange := [name for name in wanted if name not in PARTS]:
        parser.error(f"--only {','.join(strange)}: no such part; expected {', '.join(PARTS)}")
    for name in wanted:
        text = "\n".join(getattr(parts, name)())
        (given.out / f"{name}.md").write_text(text + "\n", encoding="utf-8")
        print(text, flush=True)
        if given.docs:
            put(name, text, "reproduction.md")


if __name__ == "__main__":
    main()
