"""What `melee` earns, beside every other explorer at its best setting in hindsight.

    python -m benchmarks.melee_rewards --suite DIR --out RUNS [--policies DIR,DIR]

All play the same rows in the same order after the same preparation. Every other family has its
parameters chosen on these very datasets, one setting for the whole suite, over SGD and over a
ridge; `melee` is played as it ships. Resumable: run it again after an interruption. VowpalWabbit
stands beside it in `benchmarks.compare_vw`.
"""

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

from benchmarks.pages import put
from melee.benchmark.results import Results
from melee.benchmark.run import load_results
from melee.benchmark.store import Store
from melee.explorers import parse
from melee.statistics import compare_pairs, mean_differences

MELEE = "melee"
FULL = "full-information"
OWN = ":learner=adaptive:hidden=32:ridge=0.2:exact=500:rescale=true"
"""What gives another explorer the learner and the scaling of `melee`; and a weak ridge alone, which
is hard to beat on clean labels."""


def grid(name: str, learners: tuple[str, ...] = ("",), **values: tuple[float, ...]) -> list[str]:
    """All SPECs of a family over these learners and parameter values.

    >>> grid("linucb", alpha=(0.1, 0.2))
    ['linucb:alpha=0.1', 'linucb:alpha=0.2']
    """
    settings = itertools.product(learners, *([f":{k}={v}" for v in vs] for k, vs in values.items()))
    return ["".join([name, *one]) for one in settings]


BOTH = ("", ":learner=ridge")
ALPHAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
SCALES, POWERS = (0.3, 0.6, 1.2, 2.4), (2.0, 3.0, 4.0, 6.0)
FAMILIES = {
    "linucb": grid("linucb", alpha=ALPHAS),
    "gated-ucb": grid("gated-ucb", scale=SCALES, power=POWERS),
    "epsilon-greedy": grid("epsilon-greedy", BOTH, epsilon=(0.0, 0.01, 0.05, 0.1)),
    "epsilon-decreasing": grid("epsilon-decreasing", BOTH, epsilon=(0.1, 1.0)),
    "eg-epsilon-greedy": grid("eg-epsilon-greedy", BOTH),
    "tau-first": grid("tau-first", BOTH, tau=(0.02, 0.05)),
    "cover": grid("cover", BOTH, psi=(0.1, 1.0)),
    "cover-nu": grid("cover-nu", BOTH, psi=(0.1, 1.0)),
    "regcb-opt": grid("regcb-opt", mellowness=(0.0001, 0.001, 0.01, 0.1)),
    "regcb-elim": grid("regcb-elim", mellowness=(0.0001, 0.001, 0.01)),
    "squarecb": grid("squarecb", BOTH, gamma=(10.0, 100.0, 1000.0)),
    "bagging": grid("bagging:greedify=true", BOTH, bags=(4, 16)),
    "thompson": grid("thompson", scale=(0.05, 0.1, 0.2, 0.4)),
    "softmax": grid("softmax", BOTH, temperature=(0.01, 0.03, 0.1)),
    "banditron": grid("banditron", mu=(0.02, 0.1)),
    "melee-paper": grid("melee-paper", BOTH),
    FULL: grid(FULL, ("", ":learner=sgd")),
    "linucb over melee's learner": grid("linucb" + OWN, alpha=(0.3, 0.6, 1.0, 2.0)),
    "gated-ucb over melee's learner": grid(
        "gated-ucb" + OWN, scale=(1.0, 2.0, 4.0), power=(1.0, 2.0, 4.0)
    ),
    "full-information over melee's learner": [FULL + OWN.removesuffix(":rescale=true")],
}
"""Every family, and the settings among which hindsight may choose."""


def as_listed(spec: str) -> str:
    """A SPEC as results list it: without the settings that are defaults."""
    return parse(spec).short_spec


def best_of(results: Results, specs: list[str]) -> str:
    """The setting with the highest mean reward over the datasets."""
    means = dict(zip(results.explorers, results.mean_rewards().mean(axis=0), strict=True))
    return max(map(as_listed, specs), key=lambda spec: means[spec])


def table(results: Results, name: str) -> list[str]:
    """`name` against every family at its best."""
    means = dict(zip(results.explorers, results.mean_rewards().mean(axis=0), strict=True))
    best = {family: best_of(results, specs) for family, specs in FAMILIES.items()}
    kept = [name, *best.values()]
    part = Results.of([one for one in results if one.explorer in kept], results.about)
    net = {}
    for pair in compare_pairs(part):
        if pair.row == name:
            net[pair.column] = f"{pair.wins}–{pair.losses} ({pair.net:+d})"
        elif pair.column == name:
            net[pair.row] = f"{pair.losses}–{pair.wins} ({-pair.net:+d})"
    differences = {}
    for one in mean_differences(part):
        if name not in (one.row, one.column):
            continue
        sign = 1 if one.row == name else -1
        low, high = sorted((sign * one.low, sign * one.high))
        other = one.column if one.row == name else one.row
        differences[other] = f"{sign * one.mean:+.4f} ({low:+.4f} to {high:+.4f})"
    lines = [
        f"| {name} ({means[name]:.4f}) against | best setting | mean reward | won–lost (net) "
        "| mean difference (95 % interval) |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for family, spec in sorted(best.items(), key=lambda item: -means[item[1]]):
        cells = [family, f"`{spec}`", f"{means[spec]:.4f}", net[spec], differences[spec]]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def bars(results: Results, policies: list[str]) -> list[str]:
    """One row per policy: what it earns, cold and without its guard too, and the margins."""
    means = dict(zip(results.explorers, results.mean_rewards().mean(axis=0), strict=True))
    best = {family: means[best_of(results, specs)] for family, specs in FAMILIES.items()}
    shown = [one for one in FAMILIES if one.startswith(("linucb", "gated-ucb", FULL))]
    lines = [
        f"| policy | mean reward | cold | no guard | {' | '.join(f'− {one}' for one in shown)} |",
        "| --- " + "| ---: " * (len(shown) + 3) + "|",
    ]
    for policy in policies:
        chosen = "" if policy == "melee" else f":policy={policy}"
        mine, cold, bare = (
            means[as_listed(f"melee{chosen}{extra}")]
            for extra in ("", ":cold=true", ":guard=false")
        )
        margins = " | ".join(f"{mine - best[family]:+.4f}" for family in shown)
        lines.append(
            f"| {Path(policy).name} | {mine:.4f} | {cold - mine:+.4f} | {bare - mine:+.4f} "
            f"| {margins} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policies", default="", help="more trained policies, by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-rounds", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--docs", choices=("paper", "multiclass"), help="its place in the docs")
    parser.add_argument("--families", default="", help="only these, by commas")
    given = parser.parse_args()
    for family in [one for one in FAMILIES if one not in given.families.split(",")]:
        if given.families:
            del FAMILIES[family]
    policies = ["melee", *(one for one in given.policies.split(",") if one)]
    own = [f"melee:policy={one}" if one != "melee" else one for one in policies]
    mine = [f"{one}{extra}" for one in own for extra in ("", ":cold=true", ":guard=false")]
    specs = [*mine, *itertools.chain(*FAMILIES.values())]
    command = [sys.executable, "-m", "melee.cli", "bench", "--suite", given.suite]
    command += ["--explorers", ",".join(specs), "--seeds", str(given.seeds), "--no-a-a"]
    command += ["--max-rounds", str(given.max_rounds), "--workers", str(given.workers)]
    subprocess.run([*command, "--out", str(given.out)], check=True)
    results = load_results(Store.read(given.out))
    n = len(results.complete_datasets())
    lines = [f"{n} datasets, seeds {results.seeds}, at most {given.max_rounds:,} rounds.", ""]
    lines += [*bars(results, policies), "", *table(results, MELEE)]
    text = "\n".join(lines)
    (given.out / "melee_rewards.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    if given.docs:
        put(given.docs, text, "melee.md")


if __name__ == "__main__":
    main()
