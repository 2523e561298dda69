"""`melee` beside VowpalWabbit in the same tables, on all suites.

    python -m benchmarks.compare_vw --out RUNS [--multiclass DIR] [--paper DIR] [--docs]

Plays the suite `production` and, where they are given, the multi-class tables and the paper's
datasets by `melee bench`, in which VowpalWabbit is an explorer like others. Each of its algorithms
stands at its best setting in hindsight on the very datasets that are reported; `melee` is played as
it ships. `--settings few` plays one or two settings of each algorithm, `grid` all of `vw:grid`.
Resumable, and a change of melee's own code or policy leaves VowpalWabbit's cells, so the same
command plays only `melee` anew. It needs the extra `vw`: `.venv-peers/bin/python`.
"""

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.pages import put
from melee.arrays import Floats
from melee.benchmark.results import Results
from melee.benchmark.run import load_results
from melee.benchmark.specs import listed, read
from melee.benchmark.store import CellStore
from melee.benchmark.vw import families
from melee.statistics import compare_pairs, mean_differences

MELEE = "melee"
FEW = (
    "--epsilon 0.02 --cb_type mtr -l 0.5",
    "--bag 4 --greedify --cb_type mtr -l 0.5",
    "--cover 4 --nounif --psi 0.1 --cb_type dr -l 0.5",
    "--regcbopt --mellowness 0.01 --cb_type mtr -l 2",
    "--squarecb --gamma_scale 100 --cb_type mtr -l 2",
    "--squarecb --gamma_scale 100 --cb_type mtr -l 2 --cb_min_cost -1 --cb_max_cost 0",
)
"""Settings of the grid, picked by hand: VW's default learning rate, or the higher one."""


def chosen(settings: str) -> dict[str, list[str]]:
    """The SPECs to play, as results list them, by algorithm."""
    every = {name: [listed(read(spec)) for spec in specs] for name, specs in families().items()}
    if settings == "grid":
        return every
    few = {
        name: [spec for spec in specs if spec.removeprefix("vw:") in FEW]
        for name, specs in every.items()
    }
    return {name: specs for name, specs in few.items() if specs}


def play(suite: str, out: Path, specs: list[str], given: argparse.Namespace) -> Results:
    """The results of `melee` and these, of which finished ones are not played again."""
    command = [sys.executable, "-m", "melee.cli", "bench", "--suite", suite, "--no-a-a"]
    command += ["--explorers", ",".join([MELEE, *specs]), "--seeds", str(given.seeds)]
    command += ["--max-rounds", str(given.max_rounds), "--workers", str(given.workers)]
    subprocess.run([*command, "--out", str(out)], check=True)
    return load_results(CellStore.read(out))


def scores(results: Results) -> tuple[Floats, str]:
    """Scores by dataset and explorer, over seeds: shares where all datasets know them."""
    cells = [
        [
            [results.cell(dataset, name, seed) for seed in results.seeds]
            for name in results.explorers
        ]
        for dataset in results.complete_datasets()
    ]
    shares = np.array([[[cell.share for cell in row] for row in of] for of in cells], dtype=float)
    if not np.isnan(shares).any():
        return shares.mean(axis=2), "share"
    return results.mean_rewards(), "mean reward"


def table(results: Results, algorithms: dict[str, list[str]]) -> list[str]:
    """`melee`, and every algorithm of VowpalWabbit at its best setting, best first."""
    values, word = scores(results)
    of = dict(zip(results.explorers, values.T, strict=True))
    best = {
        name: max(specs, key=lambda spec: float(of[spec].mean()))
        for name, specs in algorithms.items()
    }
    mine = of[MELEE]
    lines = [
        f"| explorer | best of | {word} | worst | melee − it | 95 % interval | higher–lower "
        "| won–lost, test over seeds | won–lost, the paper's test |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        f"| **melee** | 1 | {mine.mean():.4f} | {mine.min():.3f} | | | | | |",
    ]
    part = Results.of([cell for cell in results if cell.explorer in (MELEE, *best.values())])
    for name, spec in sorted(best.items(), key=lambda item: -float(of[item[1]].mean())):
        gap = mine - of[spec]
        cells = [f"{name}: `{spec}`", str(len(algorithms[name])), f"{of[spec].mean():.4f}"]
        cells += [f"{of[spec].min():.3f}", f"{gap.mean():+.4f}", interval(part, spec, gap, word)]
        cells += [f"{(gap > 0).sum()}–{(gap < 0).sum()}"]
        cells += [won(part, spec, "seeds") if len(results.seeds) > 1 else "–"]
        cells += [won(part, spec, "rounds")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def interval(results: Results, spec: str, gap: Floats, word: str) -> str:
    """Of the mean difference: by families of datasets, or of shares, of which every use is one."""
    if word == "share":
        half = 1.96 * float(gap.std(ddof=1)) / np.sqrt(len(gap))
        return f"{gap.mean() - half:+.4f} to {gap.mean() + half:+.4f}"
    for difference in mean_differences(results):
        if {difference.row, difference.column} == {MELEE, spec}:
            sign = 1 if difference.row == MELEE else -1
            low, high = sorted((sign * difference.low, sign * difference.high))
            return f"{low:+.4f} to {high:+.4f}"
    raise AssertionError(spec)


def won(results: Results, spec: str, test: str) -> str:
    """On how many datasets `melee` is significantly better, and worse."""
    for pair in compare_pairs(results, test=test):  # type: ignore[arg-type]
        if (pair.row, pair.column) == (MELEE, spec):
            return f"{pair.wins}–{pair.losses}"
        if (pair.row, pair.column) == (spec, MELEE):
            return f"{pair.losses}–{pair.wins}"
    raise AssertionError(spec)


def text_of(results: Results, algorithms: dict[str, list[str]], max_rounds: int) -> str:
    """What is put into the page for a suite."""
    n, of = len(results.complete_datasets()), len(results.datasets)
    lines = [
        f"{n} of {of} datasets, seeds {results.seeds}, at most {max_rounds:,} rounds; "
        f"{sum(map(len, algorithms.values()))} settings of VowpalWabbit "
        f"{results.about['VowpalWabbit']}.",
        "",
        *table(results, algorithms),
    ]
    complete = set(results.complete_datasets())
    failed = {cell.dataset for cell in results.failures()}
    left = [name for name in results.datasets if name not in complete]
    if live := [name for name in left if name in failed]:
        lines += ["", f"Left out, as VowpalWabbit cannot play them here: {', '.join(live)}."]
    if len(live) < len(left):
        lines += ["", f"{len(left) - len(live)} datasets were not played to the end."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--multiclass", help="a directory of multi-class tables")
    parser.add_argument("--paper", help="a directory with the paper's datasets, or paper300")
    parser.add_argument("--settings", choices=("few", "grid"), default="few")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--max-rounds", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--docs", action="store_true", help="write docs/compare-vw.md")
    given = parser.parse_args()
    algorithms = chosen(given.settings)
    suites = {"production": "production", "multiclass": given.multiclass, "paper": given.paper}
    for name, suite in suites.items():
        if suite is None:
            continue
        specs = list(itertools.chain(*algorithms.values()))
        results = play(suite, given.out / name, specs, given)
        text = text_of(results, algorithms, given.max_rounds)
        print(f"{name}\n\n{text}")
        if given.docs:
            put(f"vw-{name}", text, "compare-vw.md")


if __name__ == "__main__":
    main()
