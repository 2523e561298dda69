"""A model of rewards, learned from a log: what each action would have earned in each round.

One ridge regression per action, on standardized features. It predicts deviations from the mean
reward of all rounds and its penalty includes the intercept, so an action with few rounds is
predicted near that mean, and one without any exactly there.

Predictions are *cross-fitted*: rounds are dealt to folds in turn, and those of a fold are
predicted from the rounds of the others. No round helps to predict itself, which is what keeps the
doubly robust estimate free of bias. Strictly, that needs a log whose probabilities do not depend
on earlier rewards. In a log of an agent that learned, later rounds know a little of earlier ones;
the bias this leaves is small beside the interval (`tests/evaluation` measures it).

A penalty holds back a part of the truth, too. So the errors of the first regression are regressed
once more, and added (Tukey's twicing): of what the penalty kept back, a share s, only s² remains.
A mean of predictions, the direct method, is then nearly free of bias where rewards are linear.

Predictions are not cut to the range of rewards. Where rewards are rare, half of what a regression
says lies below 0, and cutting only that half would raise the mean of all. What keeps a model sane
that has seen little is the penalty, which knows no direction.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats, Ints
from melee.contexts import Context
from melee.errors import InputError, MeleeWarning
from melee.features import FeatureMap
from melee.standardizing import LIMIT, measure

Bools: TypeAlias = npt.NDArray[np.bool_]
Solve: TypeAlias = Callable[[Floats], Floats]

N_FOLDS = 5
PENALTY = 2.0
"""Rounds at the mean reward of all that an action's own rounds have to outweigh."""
MAX_FEATURES = 300
"""More features than this are replaced by so many random sums of them."""


class RewardModel(NamedTuple):
    """What a model says of every round: the features it saw, and what it predicts.

    Attributes
    ----------
    features, actions, fold
        Of each round: the model's inputs, (n, d), the action, and the fold it was predicted in.
    predicted
        The reward of every action, (n, K); some are beyond [0, 1].
    sizes
        How much each round counts, 1 on average; see `melee.evaluation.estimates`.
    """

    features: Floats
    actions: Ints
    fold: Ints
    predicted: Floats
    sizes: Floats

    def implied_weights(self, chosen: Floats, outside: Floats) -> Floats:
        """What each reward weighs in the mean prediction for a policy's choices, (n,)."""
        return implied_weights(self.features, self.actions, chosen, outside, self.fold, self.sizes)


def model_rewards(
    contexts: Sequence[Context],
    actions: Ints,
    rewards: Floats,
    n_actions: int,
    sizes: Floats | None = None,
) -> RewardModel:
    """Cross-fitted predictions of every action's reward; folds are dealt in turn.

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

    Examples
    --------
    >>> contexts = [{"device": "phone"}, {"device": "desk"}] * 50
    >>> liked = np.tile([1.0, 0.0], 50)
    >>> model = model_rewards(contexts, np.zeros(100, dtype=int), liked, n_actions=2)
    >>> abs(model.predicted[:2].round(1))
    array([[1. , 0.5],
           [0. , 0.5]])
    """
    X = standardized(encoded(contexts))
    sizes = np.ones(len(rewards)) if sizes is None else sizes
    fold = np.arange(len(rewards)) % N_FOLDS
    q = cross_fitted(X, actions, rewards, n_actions, fold, sizes)
    return RewardModel(X, actions, fold, q, sizes)


def encoded(contexts: Sequence[Context], rare: int = 3) -> Floats:
    """All contexts as rows of features, by one map that has seen them all."""
    features = FeatureMap(rare=rare)
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
    """Predictions (n, K) for rows X (n, d), each from the rounds of other folds."""
    X1 = np.column_stack([X, np.ones(len(X))])
    sizes = np.ones(len(X)) if sizes is None else sizes
    q = np.empty((len(X), n_actions))
    for test, action, rows, solve in regressions(X1, actions, n_actions, fold, sizes):
        mean = 0.5 if test.all() else np.average(rewards[~test], weights=sizes[~test])
        counted = sizes[rows] * (rewards[rows] - mean)
        q[test, action] = mean + X1[test] @ solve(X1[rows].T @ counted)
    return q


def implied_weights(
    X: Floats,
    actions: Ints,
    chosen: Floats,
    outside: Floats,
    fold: Ints,
    sizes: Floats | None = None,
) -> Floats:
    """What each round's reward weighs in the mean prediction for a policy's choices, (n,).

    Cross-fitted predictions are sums of rewards, so their mean is one too: mean(weight · reward),
    as IPS has it, with weights that the regressions imply. They may be negative. They tell how
    far the luck of rewards moves the direct method.

    Parameters
    ----------
    chosen, outside
        The policy's probabilities of the K actions, (n, K), and of actions that the log does not
        know, (n,), which are taken to earn the mean of all rounds.
    sizes
        How much each round counts, 1 on average.
    """
    n, n_actions = chosen.shape
    X1 = np.column_stack([X, np.ones(n)])
    sizes = np.ones(n) if sizes is None else sizes
    implied: Floats = sizes * (sizes * outside).mean()
    for test, action, rows, solve in regressions(X1, actions, n_actions, fold, sizes):
        wanted = sizes[test] * chosen[test, action]
        of_row = sizes[rows] * (X1[rows] @ solve(X1[test].T @ wanted))
        implied[rows] += of_row
        # The mean of the other folds, which the regression's deviations are from.
        if not test.all():
            others = sizes[~test]
            implied[~test] += (wanted.sum() - of_row.sum()) * others / others.sum()
    return implied


def regressions(
    X1: Floats, actions: Ints, n_actions: int, fold: Ints, sizes: Floats
) -> Iterator[tuple[Bools, int, Bools, Solve]]:
    """Of each fold and action: rows to predict, the action, rows to learn from, how to solve.

    The penalty is that of `PENALTY` rounds for the intercept, the last column of `X1`, and d times
    that for the weights, so that it holds back all features together as much as one. Solved is the
    ridge regression and then, added to it, that of its errors: (G⁻¹ + G⁻¹PG⁻¹) b for a penalty P
    and G = P + X'SX, in which a round counts as often as its size says.
    """
    d = X1.shape[1] - 1
    penalty = PENALTY * np.append(np.full(d, float(d)), 1.0)
    of_action = [actions == action for action in range(n_actions)]
    for part in np.unique(fold):
        test = fold == part
        for action in range(n_actions):
            rows = ~test & of_action[action]
            A = X1[rows]
            inverse = np.linalg.inv(np.diag(penalty) + (A.T * sizes[rows]) @ A)

            def solve(b: Floats, inverse: Floats = inverse) -> Floats:
                return inverse @ (b + penalty * (inverse @ b))

            yield test, action, rows, solve
