"""What `melee` reaches on uses that people have, beside every other explorer at its best.

    python -m benchmarks.production_shares --out RUNS [--policies DIR,DIR] [--docs]

Plays the suite `production` and counts shares: 0 for uniform choice, 1 for the best possible one,
by true expected rewards. Every other family has its setting chosen in hindsight on these very uses,
one for the whole suite, over SGD, a ridge and the learner of `melee`, which is played as it ships.
Resumable: run it again after an interruption. With --docs the tables and the picture of
docs/melee.md are written, and the table of the README.
"""

import argparse
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.claims import (
    MELEE,
    Row,
    Scores,
    as_listed,
    difference,
    named,
    own_specs,
    row_named,
    rows_of,
    sentence,
    spread,
)
from benchmarks.melee_rewards import grid
from benchmarks.pages import DOCS, put
from melee.arrays import Floats
from melee.atomic import write_atomically
from melee.benchmark.results import Results
from melee.benchmark.run import load_results
from melee.benchmark.store import CellStore
from melee.datasets.payments import Clicks, Graded, Numbers, Revenue
from melee.datasets.production import Use
from melee.datasets.uses import USES

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
KINDS: dict[str, Callable[[Use], bool]] = {
    "clicks": lambda use: steady(use) and pays_rate(use) < 0.9 and use.n_features > 0,
    "A/B tests, no context": lambda use: steady(use) and use.n_features == 0,
    "successes, 90 % and more": lambda use: steady(use) and 0.9 <= pays_rate(use) <= 1.0,
    "graded rewards, ratings": lambda use: steady(use) and isinstance(use.pays, Graded),
    "revenue, other numbers": lambda use: steady(use) and isinstance(use.pays, Revenue | Numbers),
    "20 actions and more": lambda use: steady(use) and use.n_actions >= 20,
    "drift": lambda use: bool(use.drift),
    "actions that come and go, late rewards": lambda use: use.comes_and_goes or use.delay > 0.0,
}
"""Kinds of uses; a use may belong to several."""
N_DRAWN, N_SHORT = 10, 5
"""Explorers in the picture, and beside `melee` on the first page."""


def steady(use: Use) -> bool:
    """Whether nothing changes in time."""
    return not (use.drift or use.comes_and_goes or use.delay)


def pays_rate(use: Use) -> float:
    """The rate of clicks or successes under uniform choice; infinite for other rewards."""
    return use.pays.rate if isinstance(use.pays, Clicks) else np.inf


def shares_of(results: Results) -> dict[str, Floats]:
    """The share of every explorer on every complete use, averaged over seeds."""
    return {
        explorer: np.array(
            [
                np.mean([results.cell(use, explorer, seed).share for seed in results.seeds])
                for use in results.complete_datasets()
            ]
        )
        for explorer in results.explorers
    }


def hindsight(shares: Scores, mine: list[str]) -> Floats:
    """The best share on every use that any setting of any other explorer reaches."""
    own = set(map(as_listed, mine))
    return np.asarray(np.max([share for spec, share in shares.items() if spec not in own], axis=0))


def table(rows: list[Row], uses: list[str], best: Floats) -> list[str]:
    """Means, differences, worst uses and how often close to the best in hindsight."""
    own = row_named(rows, MELEE)
    lines = [
        "| explorer | best setting for the suite | mean share | melee − it (95 % interval) "
        "| worst | on | below 0.60 | within 0.03 of the best in hindsight |",
        "| --- | --- | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for row in rows:
        apart = "" if row is own else str(difference(own, row, np.arange(len(uses))))
        setting = "as it ships" if row is own else f"`{row.specs[0]}`"
        cells = [f"**{row.name}**" if row is own else row.name, setting, spread(row.means, ".3f")]
        cells += [apart, spread(row.values.min(axis=1), ".2f"), uses[int(row.on_each.argmin())]]
        below, close = (row.values < 0.6).sum(axis=1), (row.values >= best - 0.03).mean(axis=1)
        cells += [spread(below, ".3g"), spread(close, ".0%")]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", f"The best of all settings in hindsight, for each use: {best.mean():.3f}."]


def verdict(rows: list[Row], uses: list[str], missing: list[str], best: Floats) -> list[str]:
    """In words: where `melee` stands, and what falls short."""
    own = row_named(rows, MELEE)
    apart = {row.name: difference(own, row, np.arange(len(uses))) for row in rows if row is not own}
    ahead = [
        f"{name} by {-difference.mean:.3f}"
        for name, difference in apart.items()
        if difference.mean < 0.0
    ]
    sure = [name for name, difference in apart.items() if difference.told == 1]
    mean, behind = own.on_each, best - own.on_each
    low = [f"{use} {mean[i]:.2f}" for i, use in enumerate(uses) if mean[i] < 0.6]
    far = [f"{use} {behind[i]:.2f}" for i, use in enumerate(uses) if behind[i] > 0.1]
    lines = [
        f"- By its mean share `melee` is number {rows.index(own) + 1} of {len(rows)}.",
        "- " + sentence("Ahead of it", ahead, "No family is ahead of it."),
        "- "
        + sentence("Behind it beyond the interval", sure, "None is behind beyond the interval."),
        "- " + sentence("Its share is below 0.60 on", low, "Its share is 0.60 or more everywhere."),
        "- "
        + sentence(
            "More than 0.10 behind the best in hindsight on",
            far,
            "Nowhere is it more than 0.10 behind the best in hindsight.",
        ),
    ]
    if missing:
        lines.append("- " + sentence("Not played by all, and left out", missing, ""))
    return lines


def of_learners(shares: Scores) -> str:
    """What the learner does: LinUCB at its best over a ridge, and over the learner of `melee`."""
    means = {
        spec: float(shares[spec].mean())
        for spec in map(as_listed, FAMILIES["linucb"])
        if spec in shares
    }
    plain = [mean for spec, mean in means.items() if "learner=" not in spec]
    own = [mean for spec, mean in means.items() if "hidden=" in spec]
    if not plain or not own:
        return ""
    return (
        f"- Learners: linucb at its best reaches {max(plain):.3f} over a ridge, "
        f"and {max(own):.3f} over the learner of `melee`."
    )


def by_kind(rows: list[Row], uses: list[str], best: Floats) -> list[str]:
    """For each kind of use: `melee`, the best other family there, and the best in hindsight."""
    own, others = row_named(rows, MELEE), [row for row in rows if row.name != MELEE]
    lines = [
        "| kind of use | uses | melee | best other family, at one setting for all uses | its share "
        "| melee − it (95 % interval) | best of all settings for each use |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: |",
    ]
    for kind, belongs in KINDS.items():
        of = [i for i, use in enumerate(uses) if belongs(USES[use])]
        if not of:
            continue
        parts = {row.name: replace(row, values=row.values[:, of]) for row in [own, *others]}
        other = max((parts[row.name] for row in others), key=lambda row: row.mean)
        apart = difference(parts[MELEE], other, np.arange(len(of)))
        cells = [kind, str(len(of)), spread(parts[MELEE].means, ".3f"), other.name]
        cells += [f"{other.mean:.3f}", str(apart), f"{best[of].mean():.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def by_use(rows: list[Row], uses: list[str], best: Floats) -> list[str]:
    """One row per use: what `melee` reaches, the best other family there, the best setting."""
    own, others = row_named(rows, MELEE), [row for row in rows if row.name != MELEE]
    lines = [
        "| use | melee | best other family | its share | best of all settings |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    for i, use in enumerate(uses):
        other = max(others, key=lambda row: float(row.on_each[i]))
        cells = [use, spread(own.values[:, i], ".2f"), other.name, f"{other.on_each[i]:.2f}"]
        lines.append("| " + " | ".join([*cells, f"{best[i]:.2f}"]) + " |")
    return lines


def short(rows: list[Row], uses: list[str]) -> list[str]:
    """`melee` and the best of the others, for the first page."""
    others = [row for row in rows if row.name != MELEE][:N_SHORT]
    lines = [
        f"| {len(uses)} uses | mean share | worst use | uses below 0.60 |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in rows:
        if row.name != MELEE and row not in others:
            continue
        name = (
            "**`melee`**, nothing tuned" if row.name == MELEE else f"{row.name}{over(row)}, tuned"
        )
        below = (row.values < 0.6).sum(axis=1)
        cells = [name, spread(row.means, ".3f"), spread(row.values.min(axis=1), ".2f")]
        lines.append("| " + " | ".join([*cells, spread(below, ".3g")]) + " |")
    return lines


def over(row: Row) -> str:
    """Over which learner the best setting of a family is."""
    if "hidden=" in row.specs[0]:
        return " over `melee`'s learner"
    found = re.search(r"learner=([\w-]+)", row.specs[0])
    return f" over `{found[1]}`" if found else ""


def draw(rows: list[Row], uses: list[str], path: Path) -> None:
    """The share by use of the explorers with the highest means, `melee` among them."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "melee"
    others = [row.name for row in rows if row.name != MELEE][: N_DRAWN - 1]
    drawn = [row for row in rows if row.name in (MELEE, *others)]
    values = np.array([row.on_each for row in drawn])
    figure, axes = plt.subplots(figsize=(13.0, 5.2), layout="constrained")
    image = axes.imshow(values, vmin=0.0, vmax=1.0, cmap="viridis", aspect="auto")
    axes.set_xticks(range(values.shape[1]), uses, rotation=90, fontsize=7)
    axes.set_yticks(range(len(drawn)), [f"{row.name}  {row.mean:.2f}" for row in drawn])
    for i, j in itertools.product(range(values.shape[0]), range(values.shape[1])):
        shade = "white" if values[i, j] < 0.6 else "black"
        axes.text(
            j, i, f"{100 * values[i, j]:.0f}", ha="center", va="center", fontsize=6, color=shade
        )
    axes.set_title("Share of what can be gained, in percent, by use; one setting for all uses")
    figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def text_of(results: Results, mine: list[str]) -> tuple[str, str, list[Row]]:
    """What is put into the page and into the README, and the rows that they show."""
    uses, shares = results.complete_datasets(), shares_of(results)
    missing = [use for use in results.datasets if use not in uses]
    rows, best = rows_of(shares, {MELEE: mine}, FAMILIES), hindsight(shares, mine)
    n = f"{len(mine)} training seed{'s' if len(mine) > 1 else ''} of `melee`"
    about = f"{len(uses)} of {len(results.datasets)} uses, seeds {results.seeds}, {n}."
    page = [
        about,
        "",
        *table(rows, uses, best),
        "",
        "**What this says, and what falls short.**",
        "",
    ]
    page += [*verdict(rows, uses, missing, best), of_learners(shares), "", "**By kind of use**", ""]
    page += [*by_kind(rows, uses, best), "", "**Use by use**", "", *by_use(rows, uses, best)]
    return "\n".join(page) + "\n", "\n".join(short(rows, uses)) + "\n", rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policies", default="", help="of more training seeds, by commas")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--max-rounds", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--families", default="", help="only these, by commas")
    given = parser.parse_args()
    mine = own_specs(given.policies)
    specs = [*mine, *itertools.chain(*named(FAMILIES, given.families).values())]
    command = [sys.executable, "-m", "melee.cli", "bench", "--suite", "production"]
    command += ["--explorers", ",".join(specs), "--seeds", str(given.seeds), "--no-a-a"]
    command += ["--max-rounds", str(given.max_rounds)]
    command += ["--workers", str(given.workers), "--out", str(given.out)]
    subprocess.run(command, check=True)
    results = load_results(CellStore.read(given.out))
    page, first, rows = text_of(results, mine)
    write_atomically(given.out / "production_shares.md", page.encode())
    print(page)
    if given.docs:
        put("production", page, "melee.md")
        put("production", first, "../README.md")
        uses = results.complete_datasets()
        draw(rows, uses, DOCS / "figures" / "production-shares.svg")
        kept = {spec: np.round(share, 4).tolist() for spec, share in shares_of(results).items()}
        told = {"uses": uses, "shares": kept}
        RESULTS.mkdir(exist_ok=True)
        write_atomically(RESULTS / "production_shares.json", json.dumps(told, indent=1).encode())


if __name__ == "__main__":
    main()
