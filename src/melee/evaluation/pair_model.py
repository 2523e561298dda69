"""A model of rewards over candidates: what each would have earned in each round, by its features.

One ridge regression over *pairs* of a context and a candidate, on standardized features of both,
squares of the candidate's numbers, and products of one feature of each, or where these are many as
many products of random sums. What it leaves of the rewards of a candidate that recurs goes into an
offset of that candidate, held back by `RECORD` rounds without one: a new candidate is predicted by
its features, an old one by its record, too.

As in `reward_model`, predictions are cross-fitted, the penalty is made up for by a second
regression of the errors, nothing is cut, and every prediction is a sum of rewards.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from melee.arrays import Floats, Ints
from melee.contexts import Context
from melee.evaluation.embeddings import Shelf
from melee.evaluation.reward_model import (
    N_FOLDS,
    Bools,
    Solve,
    encoded,
    regressions,
    standardized,
)
from melee.standardizing import LIMIT, measure

RECORD = 10.0
"""Rounds without an offset that a candidate's own rounds have to outweigh."""
MAX_PRODUCTS = 150
"""Products of a context's and a candidate's features."""
_CELLS = 4_000_000
"""Numbers of pairs that are in memory at a time."""


class _Fold(NamedTuple):
    """One fold: what is predicted, from what, and how; and what holds back each offset."""

    test: Ints
    rows: Bools
    solve: Solve
    held_back: Floats


class PairRewardModel:
    """What a model says of every candidate of every round.

    Attributes
    ----------
    predicted
        The reward of every candidate, (n, S), by place; some are beyond [0, 1].
    """

    def __init__(
        self,
        X: Floats,
        Z: Floats,
        squared: Bools,
        shelf: Shelf,
        actions: Ints,
        rewards: Floats,
        sizes: Floats,
    ) -> None:
        n = len(rewards)
        self._X, self._Z, self._squares = X, Z, (Z * Z)[:, squared] - 1.0
        self._which, self._items = shelf.which, shelf.items
        self._sizes, self._fold = sizes, np.arange(n) % N_FOLDS
        dx, dz = X.shape[1], Z.shape[1]
        self._sums: tuple[Floats, Floats] | None = None
        if dx * dz > MAX_PRODUCTS:
            rng = np.random.default_rng(0)
            A, B = (rng.normal(size=(d, MAX_PRODUCTS)) / np.sqrt(d) for d in (dx, dz))
            self._sums = A, B
        rows = np.arange(n)
        self._chosen = self.pairs(rows, self._which[rows, actions][:, None])[:, 0]
        self._own = self._items[rows, actions]
        self._counts = int(self._items.max()) + 1
        self.predicted = self._cross_fitted(rewards)

    def pairs(self, rows: Ints, which: Ints) -> Floats:
        """Inputs of rounds (m,) and kinds of candidates (m, k), with an intercept: (m, k, D)."""
        X, Z, squares = self._X[rows], self._Z[which], self._squares[which]
        m, k = which.shape
        if self._sums is None:
            products = (X[:, None, :, None] * Z[:, :, None, :]).reshape(m, k, -1)
        else:
            A, B = self._sums
            products = (X @ A)[:, None, :] * (Z @ B)
        here = np.broadcast_to(X[:, None], (m, k, X.shape[1]))
        return np.concatenate([here, Z, squares, products, np.ones((m, k, 1))], axis=2)

    def _all_pairs(self, rows: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Inputs of all candidates of some rounds, by pieces that fit into memory."""
        step = max(1, _CELLS // (self._which.shape[1] * self._chosen.shape[1]))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            yield some, self.pairs(some, self._which[some])

    def _regressions(self) -> Iterator[_Fold]:
        """Of each fold: rounds to predict, rounds to learn from, how to solve, and records."""
        n = len(self._own)
        alike = np.zeros(n, np.int64)
        for test, _, rows, solve in regressions(self._chosen, alike, 1, self._fold, self._sizes):
            total = np.bincount(self._own[rows], self._sizes[rows], self._counts)
            yield _Fold(np.flatnonzero(test), rows, solve, np.asarray(total + RECORD, float))

    def _cross_fitted(self, rewards: Floats) -> Floats:
        q = np.empty(self._which.shape)
        for part in self._regressions():
            rows, sizes = part.rows, self._sizes[part.rows]
            mean = float(np.average(rewards[rows], weights=sizes))
            inputs = self._chosen[rows]
            weights = part.solve(inputs.T @ (sizes * (rewards[rows] - mean)))
            errors = sizes * (rewards[rows] - mean - inputs @ weights)
            offsets = np.bincount(self._own[rows], errors, self._counts) / part.held_back
            for some, pairs in self._all_pairs(part.test):
                q[some] = mean + pairs @ weights + offsets[self._items[some]]
        return np.where(self._items >= 0, q, 0.0)

    def implied_weights(self, chosen: Floats, outside: Floats) -> Floats:
        """What each reward weighs in the mean prediction for a policy's choices, (n,).

        As `reward_model.implied_weights`, which says what it is for.
        """
        sizes = self._sizes
        implied: Floats = sizes * (sizes * outside).mean()
        for part in self._regressions():
            rows, own = part.rows, self._own[part.rows]
            wanted = sizes[part.test, None] * chosen[part.test]
            there = self._items[part.test] >= 0
            items = self._items[part.test][there]
            of_item = np.bincount(items, wanted[there], self._counts) / part.held_back
            by_record = sizes[rows] * of_item[own]
            inputs = self._chosen[rows]
            # An offset is a mean of errors: it takes back what the regression says of its rounds.
            mean_input = -(by_record @ inputs)
            for some, pairs in self._all_pairs(part.test):
                mean_input += np.einsum("ik,ikd->d", sizes[some, None] * chosen[some], pairs)
            of_row = by_record + sizes[rows] * (inputs @ part.solve(mean_input))
            implied[rows] += of_row
            implied[rows] += (wanted.sum() - of_row.sum()) * sizes[rows] / sizes[rows].sum()
        return implied


def model_pairs(
    contexts: Sequence[Context], shelf: Shelf, actions: Ints, rewards: Floats, sizes: Floats
) -> PairRewardModel:
    """Cross-fitted predictions of every candidate's reward; folds are dealt in turn.

    Parameters
    ----------
    contexts
        One per round.
    shelf
        The candidates of every round. One whose features are not known counts as one without any.
    actions
        The place of each round's chosen candidate.
    rewards
        Within [0, 1], as `melee.evaluation.units` brings them there.
    sizes
        How much each round counts, 1 on average.
    """
    X = standardized(encoded(contexts))
    is_named = all(isinstance(features, dict) for features in shelf.features)
    missing: Context = {} if is_named else np.zeros(len(shelf.features[0]))
    raw = encoded([*shelf.features, missing], rare=1)
    # By what was chosen: of a column that never varied there nothing can be learned.
    shift, scale, constant = measure(raw[shelf.which[np.arange(len(actions)), actions]])
    Z = np.clip(((raw - shift) * scale)[:, ~constant], -LIMIT, LIMIT)
    several = np.array([len(np.unique(column)) > 2 for column in raw[:, ~constant].T], bool)
    return PairRewardModel(X, Z, several, shelf, actions, rewards, sizes)
