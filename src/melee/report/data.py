"""From results to what the report shows."""

import numpy as np

from melee import statistics
from melee.arrays import Floats
from melee.benchmark.results import CellResult, Results
from melee.errors import InputError
from melee.report import words
from melee.report.curves import learning_curves
from melee.report.shares import shares_by_use, told
from melee.report.values import Cdf, DatasetRow, HeadlineRow, Ranks, ReportData, Shares, Test
from melee.statistics.matrix import Test as Kind

REFERENCES = ("full-information",)
"""Explorers that see more than a bandit does; they are shown, but cannot lead."""

LEVEL, CONFIDENCE = 0.01, 0.95
"""Of the tests on single datasets, which is the paper's, and of intervals."""


def collect(results: Results, a_a: Results | None = None, title: str = "") -> ReportData:
    """Everything that the report shows, computed from results.

    Statistics are over the datasets on which every explorer has a run for every seed; the others
    are listed with what is known about them. Explorers are in the order of their mean reward, or of
    their mean share where all these datasets have one.

    Parameters
    ----------
    results
        The benchmark.
    a_a
        The same plan once more with other exploration seeds, for the A/A check.
    title
        What the page is called; after the suite when left out.
    """
    if not results.explorers:
        raise InputError("there is no result to report yet; run melee bench first")
    complete = results.complete_datasets()
    k, rewards = len(results.explorers), results.mean_rewards()
    shares = shares_by_use(results, complete)
    by_share = shares is not None and len(shares.datasets) == len(complete)
    values = np.array(shares.values) if shares is not None and by_share else rewards
    order = list(range(k))
    if shares is not None and by_share:
        order = shares.order
    elif complete:
        order = [int(i) for i in np.argsort(-rewards.mean(axis=0), kind="stable")]
    bandits = [i for i in order if results.explorers[i].split(":")[0] not in REFERENCES]
    contenders = bandits or order
    comparable = bool(complete) and k > 1
    relative = statistics.relative_rewards(results) if comparable else np.ones((len(complete), k))
    tests = _tests(results, a_a) if comparable else []
    rows: list[HeadlineRow] = []
    if complete:
        seconds = _seconds(results, complete)
        rows = _headline(results, contenders[0], values, relative, tests, seconds, shares)
        rows.sort(key=lambda row: order.index(row.explorer))
    failures = words.failures(results)
    ranks = _ranks(results) if comparable else None
    nothing = words.NOTHING.format(n=len(results.datasets))
    summary = (
        words.summary(results, contenders, rows, tests, _kinds(results)[0]) if complete else nothing
    )
    if shares is not None:  # of uses in different units a mean reward says nothing
        said = told(shares, results.explorers)
        if by_share:
            summary = said + words.runner_up(results.explorers, contenders, rows, 2)
        else:
            summary = f"{summary} {said}"
    return ReportData(
        title=title.strip() or words.TITLE.format(suite=results.about.get("suite", "Benchmark")),
        facts=words.facts(results, complete),
        summary=summary,
        nothing=nothing,
        explorers=list(results.explorers),
        order=order,
        pair=_pair(order, contenders),
        n_planned=len(results.datasets),
        n_complete=len(complete),
        n_seeds=len(results.seeds),
        headline=rows,
        headline_note=words.headline_note(
            n_families=len(_families(results)) if complete else 0,
            n_others=k - 1,
            kind=_kinds(results)[0],
            by_share=by_share,
            shares=shares is not None,
        ),
        by_share=by_share,
        shares=shares,
        tests=tests,
        ranks=ranks,
        ranks_note=words.RANKS_NOTE.format(n=ranks.n_families) if ranks else "",
        ranks_missing=words.RANKS_MISSING,
        cdf=_cdf(relative) if complete else Cdf([], []),
        cdf_note=words.CDF_NOTE,
        cost_note=words.COST_NOTE,
        datasets=_dataset_rows(results, complete, relative),
        datasets_note=words.datasets_note(len(results.seeds), shares is not None),
        curves=learning_curves(results, complete),
        about=words.about(results),
        failures=failures,
        failures_note=words.failures_note(results, complete, failures),
    )


def _pair(order: list[int], contenders: list[int]) -> tuple[int, int]:
    """The two explorers that a scatter shows first: the runner-up across, the leader up."""
    others = [i for i in [*contenders, *order] if i != contenders[0]]
    return (others or order)[0], contenders[0]


def _seconds(results: Results, datasets: list[str]) -> Floats:
    """Seconds per 1000 rounds over some datasets, by explorer."""
    out = np.zeros(len(results.explorers))
    for i, explorer in enumerate(results.explorers):
        mine = [results.cell(d, explorer, s) for d in datasets for s in results.seeds]
        rounds = sum(len(cell.rewards) for cell in mine)
        out[i] = 1000 * sum(cell.seconds for cell in mine) / rounds if rounds else 0.0
    return out


def _dataset_rows(results: Results, complete: list[str], relative: Floats) -> list[DatasetRow]:
    """Every planned dataset, in order; values are partly known where it is incomplete."""
    cells: dict[str, list[CellResult]] = {dataset: [] for dataset in results.datasets}
    for cell in results:
        cells[cell.dataset].append(cell)
    k, nothing = len(results.explorers), [None] * len(results.explorers)
    places = dict(zip(complete, relative.tolist(), strict=True))
    rows = []
    for dataset, of_dataset in cells.items():
        reward: list[float | None] = [None] * k
        seconds: list[float | None] = [None] * k
        spread: list[float | None] = [None] * k
        share: list[float | None] = [None] * k
        share_spread: list[float | None] = [None] * k
        known = [cell for cell in of_dataset if not cell.problem]
        for i, explorer in enumerate(results.explorers):
            mine = [cell for cell in known if cell.explorer == explorer]
            if len(mine) == len(results.seeds):
                means = [cell.mean_reward for cell in mine]
                shares = [cell.share for cell in mine if cell.share is not None]
                reward[i] = float(np.mean(means))
                spread[i] = float(np.std(means, ddof=1)) if len(means) > 1 else None
                if len(shares) == len(mine):
                    share[i] = float(np.mean(shares))
                    share_spread[i] = float(np.std(shares, ddof=1)) if len(shares) > 1 else None
                rounds = sum(len(cell.rewards) for cell in mine)
                seconds[i] = 1000 * sum(cell.seconds for cell in mine) / rounds
        first = next(iter(known or of_dataset), None)  # none where nothing has run yet
        rows.append(
            DatasetRow(
                dataset,
                first.family if first else dataset,
                first.n_rounds if first else 0,
                first.n_features if first else 0,
                first.n_actions if first else 0,
                complete=dataset in places,
                reward=reward,
                spread=spread,
                share=share,
                share_spread=share_spread,
                relative=places.get(dataset, nothing),
                seconds=seconds,
            )
        )
    return rows


def _kinds(results: Results) -> list[Kind]:
    """With two seeds or more the test that holds its level comes first; then the paper's."""
    return ["seeds", "rounds"] if len(results.seeds) > 1 else ["rounds"]


def _tests(results: Results, again: Results | None) -> list[Test]:
    """The tests, of which the first one is shown and counted unless another is asked for."""
    k = len(results.explorers)
    checks, problem = _a_a(results, again)
    tests = []
    for kind in _kinds(results):
        found = statistics.outcomes(results, LEVEL, kind)
        name, _, note = words.TESTS[kind]
        if len(results.seeds) < 2:
            note += words.ONE_SEED
        shares = [check.rounds if kind == "rounds" else check.seeds for check in checks]
        tests.append(
            Test(
                name=name,
                note=note,
                a_a=words.level_check(checks, shares) if checks else problem,
                a_a_rates=[share.share for share in shares] if checks else None,
                wins=(found > 0).sum(axis=0).tolist(),
                signs={
                    f"{i},{j}": "".join("0+-"[sign] for sign in found[:, i, j])
                    for i in range(k)
                    for j in range(i + 1, k)
                },
            )
        )
    return tests


def _a_a(results: Results, again: Results | None) -> tuple[list[statistics.LevelCheck], str]:
    """The check of every explorer, or no check and the reason."""
    if again is None:
        return [], words.NO_CHECK
    try:
        return list(statistics.check_levels(results, again, LEVEL).values()), ""
    except InputError as error:
        return [], f"Not possible: {error}."


def _headline(
    results: Results,
    leader: int,
    values: Floats,
    relative: Floats,
    tests: list[Test],
    seconds: Floats,
    shares: Shares | None,
) -> list[HeadlineRow]:
    """One row per explorer, as planned; by `values` each is compared with the leader."""
    names, k = results.explorers, len(results.explorers)
    rewards = results.mean_rewards().mean(axis=0)
    ranks = statistics.average_ranks(results) if k > 1 else np.ones(1)
    net = np.zeros(k, dtype=np.int64)
    if tests:
        wins = np.array(tests[0].wins)
        net = (wins - wins.T).sum(axis=1)
    best = statistics.cdf(relative, at=[1.0])[0]
    gaps = _gaps(results, leader, values)
    chance = (
        {
            comparison.row: comparison.corrected
            for comparison in statistics.wilcoxon_holm(results, names[leader], values)
        }
        if k > 1
        else {}
    )
    return [
        HeadlineRow(
            explorer=i,
            reward=float(rewards[i]),
            share=None if shares is None else shares.mean[i],
            worst_share=None if shares is None else shares.worst[i],
            gap=gaps.get(i),
            p_value=chance.get(names[i]),
            relative=float(relative[:, i].mean()),
            rank=float(ranks[i]),
            net=int(net[i]),
            share_best=float(best[i]),
            seconds=float(seconds[i]),
            reference=names[i].split(":")[0] in REFERENCES,
        )
        for i in range(k)
    ]


def _gaps(results: Results, leader: int, values: Floats) -> dict[int, tuple[float, float, float]]:
    """Mean difference of every other explorer from the leader, low and high end.

    The ends are NaN where there are too few families for an interval.
    """
    rewards = values.mean(axis=0)
    names = results.explorers
    nan = float("nan")
    gaps = {
        i: (float(rewards[i] - rewards[leader]), nan, nan) for i in range(len(names)) if i != leader
    }
    if len(names) < 2 or len(_families(results)) < 2:
        return gaps
    for difference in statistics.mean_differences(results, 1 - CONFIDENCE, values):
        if difference.column == names[leader]:
            gaps[names.index(difference.row)] = (difference.mean, difference.low, difference.high)
        elif difference.row == names[leader]:
            gaps[names.index(difference.column)] = (
                -difference.mean,
                -difference.high,
                -difference.low,
            )
    return gaps


def _families(results: Results) -> set[str]:
    first, seed = results.explorers[0], results.seeds[0]
    return {results.cell(name, first, seed).family for name in results.complete_datasets()}


def _ranks(results: Results) -> Ranks | None:
    """The rank diagram, where there are families and explorers to rank."""
    if len(results.explorers) < 2 or len(_families(results)) < 2:
        return None
    diagram = statistics.rank_diagram(results, 1 - CONFIDENCE)
    place = {name: i for i, name in enumerate(results.explorers)}
    average = dict(zip(diagram.explorers, diagram.ranks, strict=True))
    return Ranks(
        [average[name] for name in results.explorers],
        diagram.critical_difference,
        [[place[name] for name in clique] for clique in diagram.cliques],
        diagram.n_families,
    )


def _cdf(relative: Floats) -> Cdf:
    x = np.linspace(0.0, 1.0, 101)
    return Cdf([round(float(value), 2) for value in x], statistics.cdf(relative, x).T.tolist())
