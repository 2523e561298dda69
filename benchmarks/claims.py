"""What tables of claims are made of: policies, differences, wins, and origins of datasets.

`melee` stands in a table as one row, however many policies of other training seeds play beside the
one that ships: the mean over them, and the least and the greatest in brackets. Every other family
stands at its best single setting, chosen in hindsight on the very datasets of the table.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from benchmarks.pages import DOCS
from melee.arrays import Floats, Ints
from melee.benchmark.results import Results
from melee.explorers import parse
from melee.statistics import LevelCheck, compare_pairs
from melee.statistics.across import clustered_mean
from melee.statistics.inputs import families as families_of
from melee.statistics.matrix import Test

MELEE = "melee"
DEVELOPMENT = (
    *("adult", "analcatdata_authorship", "balance-scale", "car", "cmc", "covtype", "ecoli"),
    *("glass", "letter", "mfeat-fourier", "mfeat-karhunen", "mfeat-morphological", "nursery"),
    *("optdigits", "page-blocks", "segment", "splice", "vehicle", "vowel", "waveform-5000"),
    *("wine", "zoo"),
)
"""The multi-class tables on which choices were made while `melee` was developed."""
ONE_ORIGIN = ("mfeat-",)
"""Names that begin alike where the same objects are described by other columns."""

Scores = Mapping[str, Floats]
"""Of every explorer, on every dataset."""


@dataclass(frozen=True)
class Row:
    """An explorer of a table: its scores on every dataset, a line for each of its policies.

    Most have one policy, and `specs` and `values` one line.
    """

    name: str
    specs: list[str]
    values: Floats

    @property
    def means(self) -> Floats:
        """Of every policy, over the datasets."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def mean(self) -> float:
        """Over policies and datasets."""
        return float(self.values.mean())

    @property
    def on_each(self) -> Floats:
        """The mean over policies, on every dataset."""
        return np.asarray(self.values.mean(axis=0))


def as_listed(spec: str) -> str:
    """A SPEC as results list it: without the settings that are defaults."""
    return parse(spec).short_spec


def own_specs(policies: str, extra: str = "") -> list[str]:
    """SPECs of the policy that ships and of those in the directories given, by commas.

    >>> own_specs("seed1,seed2", ":cold=true")
    ['melee:cold=true', 'melee:policy=seed1:cold=true', 'melee:policy=seed2:cold=true']
    """
    others = [f":policy={policy}" for policy in policies.split(",") if policy]
    return [MELEE + policy + extra for policy in ["", *others]]


def named(families: dict[str, list[str]], names: str) -> dict[str, list[str]]:
    """The families of these names, by commas; all where there is none.

    >>> named({"linucb": ["linucb"], "uniform": ["uniform"]}, "uniform")
    {'uniform': ['uniform']}
    """
    wanted = [name for name in names.split(",") if name] or list(families)
    if missing := [name for name in wanted if name not in families]:
        expected = ", ".join(families)
        raise SystemExit(f"there is no family {missing[0]!r}; expected some of {expected}")
    return {family: families[family] for family in wanted}


def rows_of(
    scores: Scores, mine: Mapping[str, Sequence[str]], families: Mapping[str, Sequence[str]]
) -> list[Row]:
    """Those of `mine` with all their policies, and each family at its best; highest mean first.

    Families of which no setting was played are left out.
    """
    rows = []
    for name, specs in mine.items():
        listed = [as_listed(spec) for spec in specs]
        rows.append(Row(name, listed, np.array([scores[spec] for spec in listed])))
    for name, specs in families.items():
        tried = [spec for spec in map(as_listed, specs) if spec in scores]
        if tried:
            best = max(tried, key=lambda spec: float(scores[spec].mean()))
            rows.append(Row(name, [best], scores[best][None]))
    return sorted(rows, key=lambda row: -row.mean)


def row_named(rows: Sequence[Row], name: str) -> Row:
    """The row of that name."""
    return next(row for row in rows if row.name == name)


class Gap(NamedTuple):
    """A mean difference of the mean over policies, its 95 % interval, and that of each policy."""

    mean: float
    low: float
    high: float
    of_policies: Floats

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{self.mean:+.4f}"
        return f"{self.mean:+.4f} ({self.low:+.4f} to {self.high:+.4f})"

    @property
    def told(self) -> int:
        """1 where the interval is above 0, -1 where below, else 0."""
        return int(self.low > 0.0) - int(self.high < 0.0)


def difference(mine: Row, other: Row, cluster: Ints) -> Gap:
    """Scores of `mine` minus those of `other`, policy by policy where both have several.

    The interval takes datasets as drawn and policies as given: those of one cluster, a family of
    near-duplicates, count as dependent. With one cluster there is none (NaN).
    """
    apart = mine.values - other.values
    mean = float(apart.mean())
    if len(np.unique(cluster)) < 2:
        return Gap(mean, np.nan, np.nan, apart.mean(axis=1))
    _, error, freedom = clustered_mean(apart.mean(axis=0)[:, None], cluster)
    half = float(error[0]) * float(special.stdtrit(freedom, 0.975))
    return Gap(mean, mean - half, mean + half, apart.mean(axis=1))


def spread(values: npt.ArrayLike, form: str = ".4f") -> str:
    """The mean over policies, and the least and the greatest of several.

    >>> spread([0.5, 0.7, 0.9], ".2f"), spread([0.5], ".2f")
    ('0.70 (0.50 to 0.90)', '0.50')
    """
    of_each = np.asarray(values, dtype=np.float64)
    if len(of_each) == 1:
        return f"{of_each[0]:{form}}"
    return f"{of_each.mean():{form}} ({of_each.min():{form}} to {of_each.max():{form}})"


def won(results: Results, mine: Row, other: Row, test: Test) -> str:
    """On how many datasets `mine` is significantly better and worse, the mean over policies."""
    if test == "seeds" and len(results.seeds) < 2:
        return "–"
    found = []
    for i, spec in enumerate(mine.specs):
        pair = [spec, other.specs[i % len(other.specs)]]
        (outcome,) = compare_pairs(part_of(results, results.complete_datasets(), pair), test=test)
        found.append((outcome.wins, outcome.losses))
    wins, losses = np.array(found).T
    if len(found) == 1:
        return f"{wins[0]}–{losses[0]}"
    net = wins - losses
    return f"{wins.mean():.1f}–{losses.mean():.1f} (net {net.min():+d} to {net.max():+d})"


def part_of(results: Results, datasets: Sequence[str], explorers: Sequence[str]) -> Results:
    """The results on these datasets of these explorers."""
    cells = [
        results.cell(dataset, explorer, seed)
        for dataset in datasets
        for explorer in explorers
        for seed in results.seeds
    ]
    return Results.of(cells, results.about)


def clusters(results: Results) -> Ints:
    """The number of each complete dataset's family."""
    return families_of(results)[1]


def of_development(families: Mapping[str, str]) -> list[str]:
    """The datasets that are a development set in another form, given the family of each.

    They have its name, with another number of classes; or its rows under another name; or other
    columns of the same objects.

    >>> of_development({"car": "car", "prnn": "g", "glass": "g", "mfeat-pixel": "p", "iris": "i"})
    ['car', 'prnn', 'glass', 'mfeat-pixel']
    """
    named = {
        name
        for name in families
        if name in DEVELOPMENT
        or re.sub(r"-\d+$", "", name) in DEVELOPMENT
        or name.startswith(ONE_ORIGIN)
    }
    related = {families[name] for name in named}
    return [name for name in families if name in named or families[name] in related]


def level_of(check: LevelCheck | None, page: Path = DOCS / "reproduction.md") -> str:
    """What is known of the tests' levels: measured on these runs, or else where it was."""
    if check is not None:
        return (
            f"Levels, measured on these runs (A/A): at {check.level:.0%} an explorer differs from "
            f"itself on {check.rounds.share:.1%} of {check.rounds.total:,} comparisons by the "
            f"paper's test, on {check.seeds.share:.1%} by the test over seeds; "
            f"{check.n_identical:,} were the same in every round."
        )
    known = re.search(r"^A/A check: (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    said = f": {known[1]}" if known else "."
    return f"Levels, as measured in [the reproduction](reproduction.md){said}"


def sentence(intro: str, parts: Collection[str], none: str) -> str:
    """One sentence that lists what there is.

    >>> sentence("Behind", ["a", "b"], "Behind nothing."), sentence("Behind", [], "Behind nothing.")
    ('Behind: a; b.', 'Behind nothing.')
    """
    return f"{intro}: {'; '.join(parts)}." if parts else none
