"""A model of rewards, learned from a log: what each action would have earned in each round.

One ridge regression per action, on standardized features. It predicts deviations from the mean
reward of all rounds and its penalty includes the intercept, so an action with few rounds is
predicted near that mean, and one without any exactly there.

Predictions are *cross-fitted*: rounds are dealt to folds in turn, and those of a fold are
predicted from the rounds of the others. No round helps to predict itself, which is what keeps the
doubly robust estimate free of bias. Strictly, that needs a log whose probabilities do not depend
on earlier rewards. In a log of an agent that learned, later rounds know a little of earlier ones;
the bias this leaves is small beside the interval (`tests/evaluation` measures it).
"""

import warnings
from collections.abc import Sequence

import numpy as np

from melee.arrays import Floats, Ints
from melee.contexts import Context
from melee.errors import InputError, MeleeWarning
from melee.features import FeatureMap
from melee.standardizing import LIMIT, measure

N_FOLDS = 5
PENALTY = 2.0
"""Rounds at the mean reward of all that an action's own rounds have to outweigh."""
MAX_FEATURES = 300
"""More features than this are replaced by so many random sums of them."""


def predict_rewards(
    contexts: Sequence[Context],
    actions: Ints,
    rewards: Floats,
    n_actions: int,
    sizes: Floats | None = None,
    *,
    n_folds: int = N_FOLDS,
) -> Floats:
    """Cross-fitted predictions of every action's reward, shape (n, K), within [0, 1].

    Parameters
    ----------
    contexts
        One per round.
    actions
        The action of each round, 0 to K - 1.
    rewards
        Within [0, 1], as `melee.evaluation.units` brings them there.
    sizes
        How much each round counts, 1 on average; see `melee.evaluation.estimates`.
    n_folds
        Parts of the log, each predicted from the others; the rounds of a fold are n_folds apart.

    Examples
    --------
    >>> contexts = [{"device": "phone"}, {"device": "desk"}] * 50
    >>> liked = np.tile([1.0, 0.0], 50)
    >>> q = predict_rewards(contexts, np.zeros(100, dtype=int), liked, n_actions=2)
    >>> q[:2].round(1)
    array([[1. , 0.5],
           [0. , 0.5]])
    """
    X = standardized(encoded(contexts))
    fold = np.arange(len(rewards)) % n_folds
    return cross_fitted(X, actions, rewards, n_actions, fold, sizes)


def encoded(contexts: Sequence[Context]) -> Floats:
    """All contexts as rows of features, by one map that has seen them all."""
    features = FeatureMap()
    with warnings.catch_warnings():
        # Many levels are hashed, which is all right here; `melee doctor` tells of them.
        warnings.simplefilter("ignore", MeleeWarning)
        for context in contexts:
            features.learn(context)
    rows = np.empty((len(contexts), features.n_features))
    for row, context in zip(rows, contexts, strict=True):
        features.encode(context, row)
    wrong = ~np.isfinite(rows).all(axis=1)
    if wrong.any():
        raise InputError(
            f"the contexts of {wrong.sum():,} rounds hold NaN or infinite numbers, round "
            f"{np.flatnonzero(wrong)[0]} the first; expected finite ones, or None under a name "
            "where a value is missing"
        )
    return rows


def standardized(rows: Floats) -> Floats:
    """Columns of mean 0 and deviation 1, cut at ±5, without constant ones. At most 300."""
    shift, scale, constant = measure(rows)
    X: Floats = np.clip(((rows - shift) * scale)[:, ~constant], -LIMIT, LIMIT)
    if X.shape[1] > MAX_FEATURES:
        draws = np.random.default_rng(0).normal(size=(X.shape[1], MAX_FEATURES))
        X = X @ (draws / np.sqrt(X.shape[1]))
    return X


def cross_fitted(
    X: Floats,
    actions: Ints,
    rewards: Floats,
    n_actions: int,
    fold: Ints,
    sizes: Floats | None = None,
) -> Floats:
    """Predictions (n, K) for rows X (n, d), each from the rounds of other folds.

    The penalty is that of `PENALTY` rounds for the intercept and d times that for the weights, so
    that it holds back all features together as much as one.
    """
    n, d = X.shape
    X = np.column_stack([X, np.ones(n)])
    penalty = PENALTY * np.diag([float(d)] * d + [1.0])
    q = np.empty((n, n_actions))
    sizes = np.ones(n) if sizes is None else sizes
    of_action = [actions == action for action in range(n_actions)]
    for part in np.unique(fold):
        test, train = fold == part, fold != part
        mean = np.average(rewards[train], weights=sizes[train]) if train.any() else 0.5
        for action in range(n_actions):
            rows = train & of_action[action]
            A, counted = X[rows], X[rows].T * sizes[rows]
            weights = np.linalg.solve(penalty + counted @ A, counted @ (rewards[rows] - mean))
            q[test, action] = mean + X[test] @ weights
    return np.clip(q, 0.0, 1.0)
