"""The rows that are played: a seeded synthetic task, and covtype where its file is at hand."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from melee.preparation import N_LABELLED, Prepared, prepare
from melee.task import Task

COVTYPE_SHAPE = (581_012, 54, 7)
"""Rows, features and classes of covtype."""
SHARPNESS = 6.0
"""Standard deviation of the linear scores, against Gumbel noise of scale 1."""


@dataclass(frozen=True)
class Labelled:
    """A classification problem before it becomes a task, so that it can be cut and saved."""

    name: str
    contexts: npt.NDArray[np.float64]
    labels: npt.NDArray[Any]

    def task(self, n_rounds: int) -> Task:
        """The first rows: as many as leave `n_rounds` to play."""
        rows = slice(n_rounds + N_LABELLED)
        return Task.from_labels(self.name, self.contexts[rows], self.labels[rows])


def linear(n_rows: int, n_features: int, n_actions: int, *, seed: int = 0) -> Labelled:
    """Labels drawn from a softmax of linear scores: a linear learner does well, none perfectly.

    Every class occurs, in the first rows already, so that each cut of it has K actions.
    """
    rng = np.random.default_rng([seed, n_features, n_actions])
    contexts = rng.normal(size=(n_rows, n_features))
    weights = rng.normal(size=(n_features, n_actions)) * SHARPNESS / np.sqrt(n_features)
    scores = contexts @ weights
    # In blocks: a matrix of noise as large as all the scores is not needed at once.
    for start in range(0, n_rows, 10_000):
        block = scores[start : start + 10_000]
        block += rng.gumbel(size=block.shape)
    labels = scores.argmax(axis=1)
    labels[:n_actions] = np.arange(n_actions)
    return Labelled(f"linear-{n_features}-{n_actions}", contexts, labels)


def synthetic(n_rounds: int, n_features: int, n_actions: int) -> Prepared:
    """A prepared synthetic task of that shape."""
    rows = linear(n_rounds + N_LABELLED, n_features, n_actions)
    return prepare(rows.task(n_rounds), seed=0)


def covtype(path: Path | None, n_rows: int) -> Labelled:
    """At most that many rows of covtype, or as many of a synthetic task of its shape."""
    if path is None:
        _, n_features, n_actions = COVTYPE_SHAPE
        rows = linear(n_rows, n_features, n_actions)
        return Labelled("synthetic rows in covtype's shape", rows.contexts, rows.labels)
    # The file is sorted in places, so a cut of it is taken at random.
    table = pd.read_csv(path).sample(frac=1.0, random_state=0).iloc[:n_rows]
    target = table.columns[-1]
    contexts = table.drop(columns=target).to_numpy(np.float64)
    return Labelled("covtype", contexts, table[target].to_numpy())
