"""The report's tables as CSV, for spreadsheets and programs."""

from collections.abc import Iterable

from melee.benchmark.results import Results
from melee.report.values import ReportData
from melee.sheets import csv_text

RESULTS = (
    "dataset,n_rounds,n_features,n_actions,explorer,seed,mean_reward,seconds,expected_reward,share"
)
"""The columns of `melee results`."""


def tables(data: ReportData, results: Results) -> dict[str, bytes | None]:
    """Every table by file name, with all the digits there are."""
    names = data.explorers
    return {
        "headline.csv": _csv(
            "explorer,mean_reward,mean_share,worst_share,against_leader,low,high,p_value,"
            "mean_relative_reward,"
            "average_rank,net_significant_wins,share_best,seconds_per_1000_rounds,difference_of",
            (
                (
                    names[row.explorer],
                    row.reward,
                    row.share,
                    row.worst_share,
                    *(row.gap or ("", "", "")),
                    row.p_value,
                    row.relative,
                    row.rank,
                    row.net,
                    row.share_best,
                    row.seconds,
                    "share" if data.by_share else "reward",
                )
                for row in data.headline
            ),
        ),
        "shares.csv": None
        if data.shares is None
        else _csv(
            "dataset,explorer,share",
            (
                (dataset, names[i], row[i])
                for dataset, row in [
                    *zip(data.shares.datasets, data.shares.values, strict=True),
                    ("mean", data.shares.mean),
                    ("worst", data.shares.worst),
                ]
                for i in data.shares.order
            ),
        ),
        "wins.csv": _csv(
            "test,row,column,wins,losses",
            (
                (test.name, names[i], names[j], test.wins[i][j], test.wins[j][i])
                for test in data.tests
                for i in data.order
                for j in data.order
                if i != j
            ),
        ),
        "a-a.csv": _csv(
            "test,explorer,share_told_from_itself",
            (
                (test.name, names[i], test.a_a_rates[i])
                for test in data.tests
                if test.a_a_rates is not None
                for i in data.order
            ),
        ),
        "datasets.csv": _csv(
            "dataset,family,complete,explorer,mean_reward,spread_over_seeds,share,relative_reward,"
            "seconds_per_1000_rounds,spread_of_share",
            (
                (
                    dataset.name,
                    dataset.family,
                    dataset.complete,
                    names[i],
                    dataset.reward[i],
                    dataset.spread[i],
                    dataset.share[i],
                    dataset.relative[i],
                    dataset.seconds[i],
                    dataset.share_spread[i],
                )
                for dataset in data.datasets
                for i in range(len(names))
            ),
        ),
        "results.csv": _csv(
            RESULTS,
            (
                [getattr(cell, column) for column in RESULTS.split(",")]
                for cell in results
                if not cell.problem
            ),
        ),
        "cdf.csv": _csv(
            "explorer,relative_reward,share_of_datasets",
            (
                (names[i], x, y)
                for i in (data.order if data.n_complete else [])
                for x, y in zip(data.cdf.x, data.cdf.y[i], strict=True)
            ),
        ),
        "learning-curves.csv": _csv(
            "dataset,explorer,x,mean,standard_error",
            (
                (
                    curves.name,
                    names[i],
                    x,
                    curves.mean[i][k],
                    None if curves.band is None else curves.band[i][k],
                )
                for curves in data.curves
                for i in data.order
                for k, x in enumerate(curves.x)
            ),
        ),
        "failures.csv": _csv(
            "dataset,cells,reason",
            ((failure.dataset, failure.who, failure.reason) for failure in data.failures),
        ),
    }


def _csv(header: str, rows: Iterable[Iterable[object]]) -> bytes:
    return csv_text(header.split(","), rows).encode("utf-8", "backslashreplace")
