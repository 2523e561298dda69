"""What a benchmark has found: one result per dataset, explorer and seed."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melee.arrays import Floats


@dataclass(frozen=True, eq=False)
class CellResult:
    """One explorer's run on one dataset under one seed, or the reason why there is none.

    Attributes
    ----------
    dataset, family
        The dataset, and the group of near-duplicates that it belongs to.
    n_rounds, n_features, n_actions
        Of the run; 0 where the dataset could not be read.
    explorer, seed
        The SPEC with its changed settings, and the seed of order and exploration.
    rewards
        The reward of every round, in the order of play; empty for a failure.
    seconds
        Time in the compiled pass.
    problem
        Why the cell failed; empty where it did not.
    expected_reward, share
        Of the run, where the dataset knows its expected rewards; else None.
    """

    dataset: str
    family: str
    n_rounds: int
    n_features: int
    n_actions: int
    explorer: str
    seed: int
    rewards: Floats
    seconds: float
    problem: str = ""
    expected_reward: float | None = None
    share: float | None = None

    @property
    def mean_reward(self) -> float:
        """The progressive validation return; NaN for a failure."""
        return float(self.rewards.mean()) if len(self.rewards) else float("nan")


@dataclass(frozen=True, eq=False)
class Results:
    """All results of a benchmark, in the order of its plan.

    Attributes
    ----------
    datasets, explorers, seeds
        What was planned, in order.
    about
        What was run, for the reader: versions, suite, settings, time.
    """

    datasets: list[str]
    explorers: list[str]
    seeds: list[int]
    about: dict[str, Any] = field(default_factory=dict)
    _cells: dict[tuple[str, str, int], CellResult] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: Iterable[CellResult], about: dict[str, Any] | None = None) -> "Results":
        """Results from cells; datasets, explorers and seeds are in order of appearance."""
        table = {(cell.dataset, cell.explorer, cell.seed): cell for cell in cells}
        return cls(
            list(dict.fromkeys(cell.dataset for cell in table.values())),
            list(dict.fromkeys(cell.explorer for cell in table.values())),
            sorted({cell.seed for cell in table.values()}),
            about or {},
            table,
        )

    def __iter__(self) -> Iterator[CellResult]:
        for dataset in self.datasets:
            for explorer in self.explorers:
                for seed in self.seeds:
                    if (dataset, explorer, seed) in self._cells:
                        yield self._cells[dataset, explorer, seed]

    def add(self, cell: CellResult) -> None:
        """Put a planned cell's result in."""
        self._cells[cell.dataset, cell.explorer, cell.seed] = cell

    def cell(self, dataset: str, explorer: str, seed: int) -> CellResult:
        """The result of one cell."""
        return self._cells[dataset, explorer, seed]

    def failures(self) -> list[CellResult]:
        """The cells without a run, each with its problem."""
        return [cell for cell in self if cell.problem]

    def complete_datasets(self) -> list[str]:
        """The datasets on which every explorer has a run for every seed; statistics use these."""
        return [
            dataset
            for dataset in self.datasets
            if all(
                (dataset, explorer, seed) in self._cells
                and not self._cells[dataset, explorer, seed].problem
                for explorer in self.explorers
                for seed in self.seeds
            )
        ]

    def fingerprint(self) -> str:
        """One hash over all results: the same however and in whatever order they were run."""
        return fingerprint(self)

    def mean_rewards(self) -> Floats:
        """Mean reward over seeds, shape (complete datasets, explorers)."""
        return np.array(
            [
                [
                    np.mean([self._cells[dataset, explorer, s].mean_reward for s in self.seeds])
                    for explorer in self.explorers
                ]
                for dataset in self.complete_datasets()
            ]
        ).reshape(-1, len(self.explorers))


def fingerprint(cells: Iterable[CellResult]) -> str:
    """One hash over results in the order of their plan, of which it holds one at a time."""
    digest = hashlib.sha256()
    for cell in cells:
        head = (cell.dataset, cell.explorer, cell.seed, cell.n_rounds, cell.problem)
        digest.update(json.dumps(head).encode())
        digest.update(np.ascontiguousarray(cell.rewards, dtype="<f8").data)
    return digest.hexdigest()
