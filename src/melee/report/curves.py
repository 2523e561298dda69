"""Learning curves at a few points, spaced evenly on a logarithmic axis."""

import numpy as np

from melee.arrays import Floats
from melee.benchmark.results import Results
from melee.report.values import Curves

N_POINTS = 30
FIRST_ROUND = 10
"""Where curves begin: a mean over fewer rounds is mostly noise."""


def learning_curves(results: Results, complete: list[str]) -> list[Curves]:
    """The mean over all datasets, the same against the average explorer, then every dataset."""
    share = np.geomspace(0.01, 1.0, N_POINTS)
    n_seeds, k = len(results.seeds), len(results.explorers)
    alone, together = [], np.zeros((len(complete), k, N_POINTS))
    for d, dataset in enumerate(complete):
        n = len(results.cell(dataset, results.explorers[0], results.seeds[0]).rewards)
        points = np.unique(np.geomspace(min(FIRST_ROUND, n), n, N_POINTS).round().astype(np.int64))
        shared = np.clip(np.ceil(share * n).astype(np.int64), 1, n)
        mean, band, bounded = [], [], True
        for i, explorer in enumerate(results.explorers):
            runs = np.stack([results.cell(dataset, explorer, s).rewards for s in results.seeds])
            bounded = bounded and bool(runs.min() >= 0.0 and runs.max() <= 1.0)
            total = np.cumsum(runs, axis=1)
            at_points = total[:, points - 1] / points
            mean.append(at_points.mean(axis=0).tolist())
            if n_seeds > 1:
                band.append((at_points.std(axis=0, ddof=1) / np.sqrt(n_seeds)).tolist())
            together[d, i] = (total[:, shared - 1] / shared).mean(axis=0)
        alone.append(
            Curves(
                name=dataset,
                dataset=dataset,
                note="Mean reward so far. "
                + (
                    f"The band is one standard error over {n_seeds} seeds either way."
                    if n_seeds > 1
                    else "With one seed there is no band."
                ),
                x_label="round (logarithmic)",
                y_label="mean reward so far",
                bounded=bounded,
                x=points.tolist(),
                mean=mean,
                band=band or None,
            )
        )
    if len(complete) < 2:
        return alone
    band_note = f"The band is one standard error over the {len(complete)} datasets either way."
    centred = together - together.mean(axis=1, keepdims=True)
    return [
        _over_datasets(
            together,
            share,
            "Mean over all datasets",
            f"Mean reward so far, by the share of a dataset’s rounds played. {band_note} It is "
            "wide because datasets differ in difficulty, which all explorers share.",
            "mean reward so far",
        ),
        _over_datasets(
            centred,
            share,
            "Mean over all datasets, against the average explorer",
            "Mean reward so far minus the average of all explorers on the same dataset, which "
            f"takes the datasets’ difficulty out. {band_note}",
            "mean reward so far, minus the average",
        ),
        *alone,
    ]


def _over_datasets(values: Floats, share: Floats, name: str, note: str, y: str) -> Curves:
    """Curves of shape (datasets, explorers, points), averaged over datasets."""
    return Curves(
        name=name,
        dataset=None,
        note=note,
        x_label="rounds played, % (logarithmic)",
        y_label=y,
        bounded=bool(values.min() >= 0.0 and values.max() <= 1.0),
        x=[float(f"{100 * fraction:.3g}") for fraction in share],
        mean=values.mean(axis=0).tolist(),
        band=(values.std(axis=0, ddof=1) / np.sqrt(len(values))).tolist(),
    )
