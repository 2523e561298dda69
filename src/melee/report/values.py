"""What the report shows, as plain values: the page and the figures compute nothing themselves."""

from dataclasses import dataclass

CURVE_SCALE = 10_000
"""Curves are most of the page, where they are whole ten-thousandths: half as many characters."""


@dataclass(frozen=True)
class HeadlineRow:
    """One explorer over all complete datasets.

    `gap` is the mean difference from the leader with its 95 % interval, `p_value` Wilcoxon's over
    families with Holm's correction, both of shares where all datasets have one (`by_share`); the
    leader has neither. The mean and the worst share are there where some datasets have one.
    """

    explorer: int
    reward: float
    share: float | None
    worst_share: float | None
    gap: tuple[float, float, float] | None
    p_value: float | None
    relative: float
    rank: float
    net: int
    share_best: float
    seconds: float
    reference: bool


@dataclass(frozen=True)
class Test:
    """One significance test: on how many datasets each row beats each column, and on which.

    `signs` has one character per complete dataset, by pair "i,j" with i < j: `+` where explorer
    i is significantly better, `-` where j is, `0` where neither. `a_a` says how the test fared
    on explorers against themselves, `a_a_rates` by explorer.
    """

    name: str
    note: str
    a_a: str
    a_a_rates: list[float] | None
    wins: list[list[int]]
    signs: dict[str, str]


@dataclass(frozen=True)
class Cdf:
    """The share of datasets, by explorer, whose relative reward is at least x."""

    x: list[float]
    y: list[list[float]]


@dataclass(frozen=True)
class Ranks:
    """Average ranks, the difference that chance explains, and the groups within it."""

    average: list[float]
    critical: float
    cliques: list[list[int]]
    n_families: int


@dataclass(frozen=True)
class DatasetRow:
    """One dataset; values by explorer, None where some seed has no run.

    `spread` is the standard deviation of the mean rewards of seeds, None where there is one seed;
    `share` and its spread are there where the dataset knows its expected rewards.
    """

    name: str
    family: str
    n_rounds: int
    n_features: int
    n_actions: int
    complete: bool
    reward: list[float | None]
    spread: list[float | None]
    share: list[float | None]
    share_spread: list[float | None]
    relative: list[float | None]
    seconds: list[float | None]


@dataclass(frozen=True)
class Shares:
    """Shares of uses (rows) by explorer, their mean and the worst; `order` puts the best first."""

    datasets: list[str]
    values: list[list[float]]
    mean: list[float]
    worst: list[float]
    order: list[int]
    note: str


@dataclass(frozen=True)
class Curves:
    """Learning curves of all explorers; `dataset` is None for a mean over datasets."""

    name: str
    dataset: str | None
    note: str
    x_label: str
    y_label: str
    bounded: bool
    x: list[int] | list[float]
    mean: list[list[float]]
    band: list[list[float]] | None


@dataclass(frozen=True)
class Failure:
    """Cells of one dataset that have no run, and why."""

    dataset: str
    who: str
    reason: str


@dataclass(frozen=True)
class ReportData:
    """Everything on the page. Explorers are numbered as planned; `order` puts the best first."""

    title: str
    facts: list[tuple[str, str]]
    summary: str
    nothing: str
    explorers: list[str]
    order: list[int]
    pair: tuple[int, int]
    n_planned: int
    n_complete: int
    n_seeds: int
    headline: list[HeadlineRow]
    headline_note: str
    by_share: bool
    shares: Shares | None
    tests: list[Test]
    ranks: Ranks | None
    ranks_note: str
    ranks_missing: str
    cdf: Cdf
    cdf_note: str
    cost_note: str
    datasets: list[DatasetRow]
    datasets_note: str
    curves: list[Curves]
    about: list[tuple[str, list[tuple[str, str]]]]
    failures: list[Failure]
    failures_note: str
    curve_scale: int = CURVE_SCALE
