"""CMA-ES: improve a vector of weights by trying variations of it on whole runs.

Hansen (2016), "The CMA Evolution Strategy: A Tutorial", with mirrored sampling: candidates come in
pairs m ± σ·y, which halves the noise of their ranking. The better half moves the mean, and the
covariance and the step size follow the path that the mean takes.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from melee.arrays import Floats
from melee.rng import generator


@dataclass(frozen=True, eq=False)
class Evolution:
    """The state of the search after some generations; `tell` gives the next one."""

    mean: Floats  # (n,)
    step: float
    covariance: Floats  # (n, n)
    path: Floats  # (n,) of the covariance
    step_path: Floats  # (n,) of the step size
    generation: int

    @classmethod
    def start(cls, mean: Floats, step: float) -> Self:
        """Around `mean`, with the same step in every direction."""
        n = len(mean)
        return cls(mean.copy(), step, np.eye(n), np.zeros(n), np.zeros(n), 0)

    def ask(self, n_candidates: int, seed: int) -> Floats:
        """Candidates (n_candidates, n), in mirrored pairs; the same ones for the same seed."""
        rng = generator(seed, "evolution", self.generation)
        half = rng.normal(size=(n_candidates // 2, len(self.mean)))
        basis, sizes = self._axes()
        moves = (np.concatenate([half, -half]) * sizes) @ basis.T
        return np.asarray(self.mean + self.step * moves)

    def tell(self, candidates: Floats, fitness: Floats) -> "Evolution":
        """The search after it has learned how fit the candidates of `ask` are; more is better."""
        n, n_parents = len(self.mean), len(candidates) // 2
        weights = np.log(n_parents + 0.5) - np.log(np.arange(1, n_parents + 1))
        weights /= weights.sum()
        effective = 1.0 / float((weights**2).sum())
        along = (4.0 + effective / n) / (n + 4.0 + 2.0 * effective / n)
        of_step = (effective + 2.0) / (n + effective + 5.0)
        rank_one = 2.0 / ((n + 1.3) ** 2 + effective)
        rank_many = 2.0 * (effective - 2.0 + 1.0 / effective) / ((n + 2.0) ** 2 + effective)
        rank_many = min(1.0 - rank_one, rank_many)
        damping = 1.0 + of_step + 2.0 * max(0.0, np.sqrt((effective - 1.0) / (n + 1.0)) - 1.0)
        typical = np.sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n))

        best = np.argsort(-fitness, kind="stable")[:n_parents]
        moves = (candidates[best] - self.mean) / self.step
        move = weights @ moves
        basis, sizes = self._axes()
        whitened = basis @ ((basis.T @ move) / sizes)
        step_path = (1.0 - of_step) * self.step_path
        step_path = step_path + np.sqrt(of_step * (2.0 - of_step) * effective) * whitened
        length = float(np.linalg.norm(step_path))
        settled = np.sqrt(1.0 - (1.0 - of_step) ** (2 * (self.generation + 1)))
        steady = length / settled < (1.4 + 2.0 / (n + 1.0)) * typical
        path = (1.0 - along) * self.path
        path = path + steady * np.sqrt(along * (2.0 - along) * effective) * move
        covariance = (
            (1.0 - rank_one - rank_many) * self.covariance
            + rank_one * np.outer(path, path)
            + rank_many * (moves.T * weights) @ moves
        )
        return Evolution(
            self.mean + self.step * move,
            float(self.step * np.exp((of_step / damping) * (length / typical - 1.0))),
            covariance,
            path,
            step_path,
            self.generation + 1,
        )

    def _axes(self) -> tuple[Floats, Floats]:
        """The covariance's principal axes, in columns, and the deviation along each."""
        values, basis = np.linalg.eigh(self.covariance)
        # An axis has two directions; fix one of them.
        basis = basis * np.where(basis[np.abs(basis).argmax(axis=0), range(len(values))] < 0, -1, 1)
        return basis, np.sqrt(np.maximum(values, 1e-20))

    def as_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        """From a checkpoint."""
        arrays = {name: np.array(value) for name, value in kept.items() if isinstance(value, list)}
        return cls(step=kept["step"], generation=kept["generation"], **arrays)
