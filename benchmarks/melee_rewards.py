"""What `melee` earns, beside every other explorer at its best setting in hindsight.

    python -m benchmarks.melee_rewards --suite DIR --out RUNS [--policies DIR,DIR] [--quick]

All play the same rows in the same order after the same preparation. Every other family has its
parameters chosen on these very datasets, one setting for the whole suite, over SGD and over a
ridge; `melee` is played as it ships, and so are the policies of other training seeds. With --quick
only families that come close are played, at a few settings, most of which won before. Resumable:
run it again after an interruption. VowpalWabbit stands beside it in `benchmarks.compare_vw`.

Wins are counted by two tests at 1 %: a moderated t-test over seeds, which holds its level, and the
paper's paired t-test over rounds, which does not. --a-a measures both levels on these very runs.
"""

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

from benchmarks.claims import (
    MELEE,
    Row,
    clusters,
    difference,
    level_of,
    named,
    of_development,
    own_specs,
    part_of,
    row_named,
    rows_of,
    sentence,
    spread,
    won,
)
from benchmarks.pages import put
from melee.arrays import Floats, Ints
from melee.atomic import write_atomically
from melee.benchmark.results import Results
from melee.benchmark.run import load_results
from melee.benchmark.store import CellStore
from melee.statistics import LevelCheck, check_levels, together

WAYS = {MELEE: "", "melee, cold": ":cold=true", "melee, no guard": ":guard=false"}
"""How `melee` is played."""
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
    return ["".join([name, *setting]) for setting in settings]


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
    "thompson over melee's learner": grid("thompson" + OWN, scale=(0.3, 0.6)),
    "epsilon-greedy over melee's learner": grid("epsilon-greedy" + OWN, epsilon=(0.0, 0.05)),
    "full-information over melee's learner": [FULL + OWN.removesuffix(":rescale=true")],
}
"""Every family, and the settings among which hindsight may choose."""
QUICK = {
    "linucb": grid("linucb", alpha=(0.1, 0.2)),
    "gated-ucb": [*grid("gated-ucb", scale=(1.2,), power=(2.0,)), "gated-ucb:scale=2.4:power=6.0"],
    "thompson": grid("thompson", scale=(0.1,)),
    "epsilon-greedy": grid("epsilon-greedy", BOTH, epsilon=(0.0, 0.01)),
    FULL: FAMILIES[FULL],
    "linucb over melee's learner": grid("linucb" + OWN, alpha=(0.6, 1.0)),
    "gated-ucb over melee's learner": grid("gated-ucb" + OWN, scale=(4.0,), power=(2.0, 4.0)),
    "thompson over melee's learner": grid("thompson" + OWN, scale=(0.3,)),
    "epsilon-greedy over melee's learner": grid("epsilon-greedy" + OWN, epsilon=(0.0,)),
    "full-information over melee's learner": FAMILIES["full-information over melee's learner"],
}
"""What the claims need: families that come close, at a few settings, most of which won before."""


def rewards_of(results: Results) -> dict[str, Floats]:
    """Mean rewards of every explorer on every complete dataset."""
    return dict(zip(results.explorers, results.mean_rewards().T, strict=True))


def table(
    results: Results, mine: dict[str, list[str]], families: dict[str, list[str]]
) -> list[str]:
    """`melee` and every family at its best, with differences and wins by both tests."""
    rows, cluster = rows_of(rewards_of(results), mine, families), clusters(results)
    own = row_named(rows, MELEE)
    lines = [
        "| explorer | best setting | mean reward | melee − it (95 % interval) | by policy "
        "| won–lost, test over seeds | won–lost, the paper's test |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        if row is own:
            lines.append(f"| **melee** | as it ships | **{spread(row.means)}** | | | | |")
            continue
        apart = difference(own, row, cluster)
        setting = "" if row.name in mine else f"`{row.specs[0]}`"
        low, high = apart.of_policies.min(), apart.of_policies.max()
        by_policy = f"{low:+.4f} to {high:+.4f}" if len(apart.of_policies) > 1 else ""
        cells = [row.name, setting, spread(row.means), str(apart), by_policy]
        cells += [won(results, own, row, test) for test in ("seeds", "rounds")]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", *verdict(rows, cluster)]


def verdict(rows: list[Row], cluster: Ints) -> list[str]:
    """In words: whom `melee` is ahead of, whom behind, and where that cannot be told."""
    own = row_named(rows, MELEE)
    others = {row.name: difference(own, row, cluster) for row in rows if not is_own(row)}
    behind, ahead, open_ = (
        [name for name, difference in others.items() if difference.told == told]
        for told in (-1, 1, 0)
    )
    known = [f"{name} by {-others[name].mean:.4f}" for name in behind]
    return [
        sentence("`melee` is behind", known, "No family is ahead of `melee` beyond the interval."),
        sentence("It is ahead of", ahead, "It is ahead of none beyond the interval."),
        sentence("The interval tells nothing of", open_, "No interval contains 0."),
    ]


def is_own(row: Row) -> bool:
    """Whether it is `melee`, at whatever settings."""
    return row.name.split(",")[0] == MELEE


def text_of(
    results: Results,
    mine: dict[str, list[str]],
    families: dict[str, list[str]],
    check: LevelCheck | None,
) -> str:
    """All datasets; and, where they are not all of one kind, those apart from development."""
    datasets = results.complete_datasets()
    first, seed = results.explorers[0], results.seeds[0]
    used = of_development({name: results.cell(name, first, seed).family for name in datasets})
    apart = [name for name in datasets if name not in used]
    n_policies = len(mine[MELEE])
    lines = [
        f"{len(datasets)} of {len(results.datasets)} datasets, seeds {results.seeds}, "
        f"{n_policies} training seed{'s' if n_policies > 1 else ''} of `melee`.",
        level_of(check),
    ]
    if len(results.seeds) == 1:
        lines.append("With one seed there is no test over seeds.")
    if not used or not apart:
        kind = "development sets" if used else "apart from the development sets"
        return "\n".join([*lines, f"All are {kind}.", "", *table(results, mine, families)])
    lines += ["", f"**All {len(datasets)}:**", "", *table(results, mine, families), ""]
    lines += [
        f"**The {len(apart)} apart from development.** {len(used)} are development sets in another "
        f"form: {', '.join(used)}.",
        "",
        *table(part_of(results, apart, results.explorers), mine, families),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policies", default="", help="of more training seeds, by commas")
    parser.add_argument("--quick", action="store_true", help="only what the claims need")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-rounds", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--a-a", action="store_true", help="play all twice, to measure the levels")
    parser.add_argument("--docs", choices=("paper", "multiclass"), help="its place in the docs")
    parser.add_argument("--families", default="", help="only these, by commas")
    given = parser.parse_args()
    families = named(QUICK if given.quick else FAMILIES, given.families)
    ways = {MELEE: ""} if given.quick else WAYS
    mine = {name: own_specs(given.policies, extra) for name, extra in ways.items()}
    specs = itertools.chain(*mine.values(), *families.values())
    command = [sys.executable, "-m", "melee.cli", "bench", "--suite", given.suite]
    command += ["--explorers", ",".join(specs), "--seeds", str(given.seeds)]
    command += ["--max-rounds", str(given.max_rounds), "--workers", str(given.workers)]
    command += ["--a-a" if given.a_a else "--no-a-a", "--out", str(given.out)]
    subprocess.run(command, check=True)
    store = CellStore.read(given.out)
    results, check = load_results(store), None
    if given.a_a and given.seeds > 1:
        check = together(check_levels(results, load_results(store, replicate=1)).values())
    text = text_of(results, mine, families, check)
    text = f"At most {given.max_rounds:,} rounds. {text}\n"
    write_atomically(given.out / "melee_rewards.md", text.encode())
    print(text)
    if given.docs:
        put(given.docs, text, "melee.md")


if __name__ == "__main__":
    main()
