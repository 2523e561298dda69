"""What `melee` reaches on uses that people have, beside every other explorer at its best.

    python -m benchmarks.production_shares --out RUNS [--policies DIR,DIR] [--docs]

Plays the suite `production` and counts shares: 0 for uniform choice, 1 for the best possible one,
by true expected rewards. Every other family has its setting chosen in hindsight on these very uses,
one for the whole suite, over SGD, a ridge and the learner of `melee`, which is played as it ships.
Resumable: run it again after an interruption. With --docs the table and the picture of the
documentation are written.
"""

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.melee_rewards import as_listed, grid
from benchmarks.pages import DOCS, put
from melee.arrays import Floats
from melee.atomic import write_atomically
from melee.benchmark.results import Results
from melee.benchmark.run import load_results
from melee.benchmark.store import Store

RESULTS = Path(__file__).parent / "results"
RIDGE, NOISE = ":learner=ridge", ":learner=adaptive"
OWN = ":learner=adaptive:hidden=32:ridge=0.2:exact=500:rescale=true"
"""A ridge; the learner that knows its noise; that with hidden units and scaling as `melee` has."""
FAMILIES = {
    "linucb": [
        *grid("linucb", alpha=(0.1, 0.2, 0.5)),
        "linucb:ridge=10:alpha=0.5",
        *grid("linucb" + NOISE, alpha=(1.0, 1.5)),
        *grid("linucb" + OWN, alpha=(0.6, 1.0, 1.5)),
    ],
    "thompson": ["thompson:scale=0.1", f"thompson{NOISE}:scale=0.6"],
    "gated-ucb": [
        "gated-ucb",
        *grid("gated-ucb" + OWN, scale=(2.0,), power=(0.5, 1.0)),
    ],
    "epsilon-greedy": grid("epsilon-greedy", ("", RIDGE, NOISE, OWN), epsilon=(0.02, 0.05)),
    "epsilon-decreasing": grid("epsilon-decreasing", (RIDGE, OWN), epsilon=(1.0,)),
    "squarecb": [
        *grid("squarecb" + RIDGE, gamma=(10.0, 100.0)),
        *grid("squarecb" + OWN, gamma=(1.0, 3.0)),
    ],
    "regcb-opt": [
        "regcb-opt:mellowness=0.01",
        *grid("regcb-opt" + OWN, mellowness=(0.03, 0.1)),
    ],
    "regcb-elim": ["regcb-elim:mellowness=0.001"],
    "softmax": grid("softmax", (RIDGE, OWN), temperature=(0.01, 0.05)),
    "tau-first": grid("tau-first", (RIDGE, OWN), tau=(0.05,)),
    "cover-nu": grid("cover-nu:policies=4", ("", RIDGE), psi=(0.1,)),
    "bagging": [f"bagging:greedify=true:bags=4{RIDGE}"],
    "eg-epsilon-greedy": [f"eg-epsilon-greedy{RIDGE}"],
    "banditron": ["banditron"],
    "uniform": ["uniform"],
}
"""Every family, and the settings among which hindsight may choose."""
N_DRAWN = 10
"""Explorers in the picture."""


def shares_of(results: Results, explorer: str) -> Floats:
    """The share of an explorer on every use, averaged over seeds."""
    return np.array(
        [
            np.mean([results.cell(use, explorer, seed).share for seed in results.seeds])
            for use in results.complete_datasets()
        ]
    )


def rows_of(results: Results, mine: list[str]) -> dict[str, tuple[str, Floats]]:
    """Every explorer of the table at its setting with the highest mean, best first."""
    known = set(results.explorers)
    found = {spec: (spec, shares_of(results, spec)) for spec in mine}
    for family, specs in FAMILIES.items():
        tried = {spec: shares_of(results, spec) for spec in map(as_listed, specs) if spec in known}
        best = max(tried, key=lambda spec: float(tried[spec].mean()))
        found[family] = best, tried[best]
    return dict(sorted(found.items(), key=lambda item: -float(item[1][1].mean())))


def hindsight(results: Results, mine: list[str]) -> Floats:
    """The best share on every use that any setting of any other explorer reaches."""
    others = [spec for spec in results.explorers if spec not in mine]
    return np.asarray(np.max([shares_of(results, spec) for spec in others], axis=0))


def table(results: Results, mine: list[str]) -> list[str]:
    """Means, worst uses and how often close to the best in hindsight."""
    best = hindsight(results, mine)
    uses = results.complete_datasets()
    lines = [
        "| explorer | best setting for the suite | mean share | worst | on | below 0.60 "
        "| within 0.03 of the best in hindsight |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: |",
    ]
    for family, (spec, values) in rows_of(results, mine).items():
        lines.append(
            f"| {family} | `{spec}` | {values.mean():.3f} | {values.min():.2f} "
            f"| {uses[int(values.argmin())]} | {(values < 0.6).sum()} "
            f"| {(values >= best - 0.03).mean():.0%} |"
        )
    lines += ["", f"The best of all settings in hindsight, for each use: {best.mean():.3f}."]
    return lines


def by_use(results: Results, mine: str) -> list[str]:
    """One row per use: what `melee` reaches, and the best other explorer there."""
    rows = rows_of(results, [mine])
    others = {family: values for family, (_, values) in rows.items() if family != mine}
    names = list(others)
    lines = ["| use | melee | best other family | its share |", "| --- | ---: | --- | ---: |"]
    for i, use in enumerate(results.complete_datasets()):
        best = max(names, key=lambda name: others[name][i])
        lines.append(f"| {use} | {rows[mine][1][i]:.2f} | {best} | {others[best][i]:.2f} |")
    return lines


def draw(results: Results, mine: str, path: Path) -> None:
    """The share by use of the explorers with the highest means."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "melee"
    rows = dict(list(rows_of(results, [mine]).items())[:N_DRAWN])
    values = np.array([shares for _, shares in rows.values()])
    figure, axes = plt.subplots(figsize=(13.0, 5.2), layout="constrained")
    image = axes.imshow(values, vmin=0.0, vmax=1.0, cmap="viridis", aspect="auto")
    axes.set_xticks(range(values.shape[1]), results.complete_datasets(), rotation=90, fontsize=7)
    labels = [f"{name}  {one.mean():.2f}" for name, one in zip(rows, values, strict=True)]
    axes.set_yticks(range(len(rows)), labels)
    for i, j in itertools.product(range(values.shape[0]), range(values.shape[1])):
        shade = "white" if values[i, j] < 0.6 else "black"
        axes.text(
            j, i, f"{100 * values[i, j]:.0f}", ha="center", va="center", fontsize=6, color=shade
        )
    axes.set_title("Share of what can be gained, in percent, by use; one setting for all uses")
    figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policies", default="", help="more trained policies, by commas")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    policies = [one for one in given.policies.split(",") if one]
    mine = ["melee", *(f"melee:policy={one}" for one in policies)]
    specs = [*mine, *itertools.chain(*FAMILIES.values())]
    command = [sys.executable, "-m", "melee.cli", "bench", "--suite", "production"]
    command += ["--explorers", ",".join(specs), "--seeds", str(given.seeds), "--no-a-a"]
    command += ["--workers", str(given.workers), "--out", str(given.out)]
    subprocess.run(command, check=True)
    results = load_results(Store.read(given.out))
    n = len(results.complete_datasets())
    lines = [f"{n} uses, seeds {results.seeds}.", "", *table(results, mine)]
    lines += ["", "What `melee` reaches on every use, and the best other family there:", ""]
    text = "\n".join([*lines, *by_use(results, "melee")]) + "\n"
    write_atomically(given.out / "production_shares.md", text.encode())
    print(text)
    if given.docs:
        put("production", text, "melee.md")
        draw(results, "melee", DOCS / "figures" / "production-shares.svg")
        kept = {spec: np.round(shares_of(results, spec), 4).tolist() for spec in results.explorers}
        told = {"uses": results.complete_datasets(), "shares": kept}
        write_atomically(RESULTS / "production_shares.json", json.dumps(told, indent=1).encode())


if __name__ == "__main__":
    main()
