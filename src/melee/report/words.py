"""The report's sentences."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from melee import statistics
from melee.benchmark.results import Results
from melee.report.values import Failure, HeadlineRow, Test
from melee.statistics import LevelCheck, Share

TITLE = "{suite}: explorers compared"
"""Of a page that was given no other."""
TESTS = {
    "rounds": (
        "The paper’s test",
        "the paper’s test",
        "A paired t-test over all rounds at the 0.01 level, seeds pooled. The rounds of one run "
        "are not independent, so it tends to find more differences than there are.",
    ),
    "seeds": (
        "A test that holds its level",
        "the test that holds its level",
        "A moderated t-test over seeds at the 0.01 level: a seed is one independent repetition, "
        "and its variance borrows strength from all datasets. It is made to err on 1 % of datasets "
        "on average, which the A/A check tries, and misses more true differences.",
    ),
}
ONE_SEED = " A test over seeds, which would hold its level, needs at least two."
NO_CHECK = "Not run, so how often this test errs here is not known."
NOTHING = (
    "None of the {n} datasets has a run of every explorer for every seed, so there is nothing to "
    "compare yet; the reasons are under “What was run”."
)
HEADLINE_NOTE = (
    "Averages over the complete datasets. Against the leader: the mean difference with its 95 % "
    "interval, which allows for datasets of one family being alike, and the p-value of Wilcoxon’s "
    "signed-rank test over families with Holm’s correction; the leader was picked by these same "
    "data, which flatters it a little. Relative reward: 0 is the worst and 1 "
    "the best explorer of a dataset. Rank 1 is best; a family counts once. Net significant wins: "
    "the row’s sum in the matrix of {test}."
)
LEAST_P = (
    " With {n} {families} the smallest p that Wilcoxon’s test can give is {least}, and {corrected} "
    "after the correction{verdict}."
)
NEVER = ": here no difference can be significant, however large"
UNITS = (
    " Where uses pay in different units, those that pay most decide a mean reward: look at shares "
    "and ranks there."
)
IN_SHARES = (
    " Uses may pay in different units, and those that pay most decide a mean reward: so the "
    "difference from the leader and its p are of shares."
)
RANKS_NOTE = (
    "The mean rank over {n} families of datasets; 1 is best. A bar joins explorers whose ranks are "
    "closer than Nemenyi’s critical difference at the 0.05 level: the data do not tell them apart."
)
RANKS_MISSING = "Ranks need at least two explorers, and datasets of at least two families."
CDF_NOTE = (
    "Relative reward is 0 for the worst and 1 for the best explorer of a dataset. A curve gives "
    "the share of datasets on which an explorer reaches at least x, so higher is better; at the "
    "right edge is the share on which it is the best of all. Press names to compare their curves."
)
COST_NOTE = (
    "Mean reward against time in the compiled pass, learning included: up is better, left is "
    "faster."
)


WORTH_SAYING = 0.01
"""Where the smallest p that can be is above this, the reader is told."""


def headline_note(
    *, n_families: int, n_others: int, kind: str, by_share: bool, shares: bool
) -> str:
    """What the columns of the headline mean, and what its p-values cannot be."""
    text = HEADLINE_NOTE.format(test=TESTS[kind][1])
    least = statistics.least_p_value(n_families)
    corrected = min(1.0, n_others * least)
    if n_families and n_others and corrected > WORTH_SAYING:
        text += LEAST_P.format(
            n=n_families,
            families="families" if n_families > 1 else "family",
            least=f"{least:.2g}",
            corrected=f"{corrected:.2g}",
            verdict=NEVER if corrected > 0.05 else "",
        )
    return text + (IN_SHARES if by_share else UNITS if shares else "")


def datasets_note(n_seeds: int, shares: bool) -> str:
    """What can be shown of every dataset."""
    text = f"Averages over {n_seeds} seeds." if n_seeds > 1 else "One seed."
    if n_seeds > 1:
        text += (
            " The spread is the standard deviation over seeds, each of which is another order of "
            "the rows and another exploration: a difference of two averages that is smaller than "
            "the spread may be luck."
        )
    else:
        text += " How far another would differ is not known: run more to see the spread."
    if shares:
        text += " Shares are there where a dataset knows its true expected rewards."
    return text


def summary(
    results: Results,
    contenders: list[int],
    rows: list[HeadlineRow],
    tests: list[Test],
    kind: str,
) -> str:
    """Who leads, by how much and how surely, in sentences."""
    name = results.explorers
    row = {row.explorer: row for row in rows}
    leader, others = contenders[0], contenders[1:]
    n_complete = len(results.complete_datasets())
    datasets = f"{n_complete} of {len(results.datasets)} datasets"
    seeds = f"{len(results.seeds)} seed{'s' if len(results.seeds) != 1 else ''}"
    leads = "leads with" if others else "earned"
    text = (
        f"{name[leader]} {leads} a mean reward of {row[leader].reward:.4f}, averaged over "
        f"{datasets} and {seeds}."
    )
    text += runner_up(name, contenders, rows, 4)
    if others:
        wins = np.array(tests[0].wins)
        ahead = sum(bool(wins[leader, i] > wins[i, leader]) for i in others)
        text += (
            f" By {TESTS[kind][1]} {name[leader]} wins more datasets than it loses against "
            f"{ahead} of the {len(others)} other explorers."
            if len(others) > 1
            else f" By {TESTS[kind][1]} {name[leader]} wins {wins[leader, others[0]]} datasets "
            f"and loses {wins[others[0], leader]}."
        )
    for bound in rows:
        if bound.reference and bound.explorer != leader:
            text += (
                f" {name[bound.explorer]} is told the reward of every action, so it is no bandit "
                f"but a bound on what exploration can buy: {bound.reward:.4f}."
            )
    return text


def runner_up(names: list[str], contenders: list[int], rows: list[HeadlineRow], digits: int) -> str:
    """How far the second is behind the leader, and how surely; nothing if there is none."""
    gap = next((row.gap for row in rows if row.explorer in contenders[1:2]), None)
    if gap is None:
        return ""

    def shown(value: float) -> str:
        return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")

    text = f" {names[contenders[1]]} follows, {shown(-gap[0])} behind"
    if not np.isfinite(gap[1:]).all():
        return f"{text}; there are too few datasets for an interval."
    text += f", with a 95 % interval from {shown(-gap[2])} to {shown(-gap[1])}"
    if gap[1] > 0 or gap[2] < 0:
        return f"{text}, which leaves out 0."
    return f"{text}: the data do not tell the two apart."


def facts(results: Results, complete: list[str]) -> list[tuple[str, str]]:
    """The numbers under the title."""
    lengths = [
        results.cell(dataset, results.explorers[0], results.seeds[0]).n_rounds
        for dataset in complete
    ]
    found = [
        (f"{len(complete)} of {len(results.datasets)}", "datasets"),
        (str(len(results.explorers)), "explorers"),
        (str(len(results.seeds)), "seeds" if len(results.seeds) != 1 else "seed"),
    ]
    if lengths:
        between = f"{min(lengths):,} to {max(lengths):,}"
        found.append((f"{int(np.median(lengths)):,}", f"rounds in the median dataset ({between})"))
    return found


def level_check(checks: list[LevelCheck], shares: list[Share]) -> str:
    """How often one of the tests erred, over all explorers."""
    total = Share(sum(share.count for share in shares), sum(share.total for share in shares))
    low, high = total.interval
    identical = sum(check.n_identical for check in checks)
    same = f" In {identical:,} the two runs were the same in every round." if identical else ""
    return (
        f"Every explorer ran twice on the same rows. The test told {total.count:,} of "
        f"{total.total:,} such pairs apart: {total.share:.1%}, where {checks[0].level:.0%} would "
        f"be right (95 % interval {low:.1%} to {high:.1%}).{same} The diagonal "
        "gives the share by explorer."
    )


def about(results: Results) -> list[tuple[str, list[tuple[str, str]]]]:
    """What was run, in sections: extent, time, then whatever the benchmark noted."""
    done = [cell for cell in results if not cell.problem]
    planned = len(results.datasets) * len(results.explorers) * len(results.seeds)
    extent = [
        ("explorers", ", ".join(results.explorers)),
        ("seeds", ", ".join(map(str, results.seeds))),
        ("cells", f"{len(done):,} of {planned:,} have a run"),
        ("rounds", f"{sum(len(cell.rewards) for cell in done):,}"),
    ]
    time = [("all runs together", f"{sum(cell.seconds for cell in done):,.1f} s")]
    if done:
        slowest = max(done, key=lambda cell: cell.seconds)
        where = f"{slowest.explorer} on {slowest.dataset}, seed {slowest.seed}"
        time.append(("longest run", f"{slowest.seconds:,.2f} s: {where}"))
    sections = [("Extent", extent), ("Time in compiled passes", time)]
    loose = [
        (str(key), _worded(value))
        for key, value in results.about.items()
        if not isinstance(value, dict)
    ]
    if loose:
        sections.append(("Benchmark", loose))
    for key, value in results.about.items():
        if isinstance(value, dict):
            pairs = [(str(name), _worded(part)) for name, part in value.items()]
            sections.append((str(key).replace("_", " ").capitalize(), pairs))
    return sections


def _worded(value: Any) -> str:
    """A value for the reader; nested ones on one line."""
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_worded(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_worded(part) for part in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def failures(results: Results) -> list[Failure]:
    """The cells without a run, those of one dataset and one reason together."""
    cells = {(cell.dataset, cell.explorer, cell.seed): cell for cell in results}
    groups: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for dataset in results.datasets:
        for explorer in results.explorers:
            for seed in results.seeds:
                cell = cells.get((dataset, explorer, seed))
                if cell is None:
                    groups[dataset, "not run yet"].append((explorer, seed))
                elif cell.problem:
                    groups[dataset, cell.problem].append((explorer, seed))
    return [
        Failure(dataset, _who(results, missing), reason)
        for (dataset, reason), missing in groups.items()
    ]


def _who(results: Results, missing: Iterable[tuple[str, int]]) -> str:
    """Explorers and seeds in few words."""
    seeds: dict[str, list[int]] = defaultdict(list)
    for explorer, seed in missing:
        seeds[explorer].append(seed)
    if all(seeds[explorer] == results.seeds for explorer in results.explorers):
        return "every explorer and seed"
    return "; ".join(
        f"{explorer}, "
        + ("every seed" if mine == results.seeds else f"seed {', '.join(map(str, mine))}")
        for explorer, mine in seeds.items()
        if mine
    )


def failures_note(results: Results, complete: list[str], found: list[Failure]) -> str:
    """“252 of 253”, and which."""
    if not found:
        return f"None: all {len(results.datasets)} datasets have every run."
    done = set(complete)
    left_out = [name for name in results.datasets if name not in done]
    verb = "is" if len(complete) == 1 else "are"
    return (
        f"{len(complete)} of {len(results.datasets)} datasets {verb} complete. Left out of every "
        f"statistic: {', '.join(left_out)}."
    )
