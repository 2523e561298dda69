"""Ridge regression that is exact after every observation, with its predictive spread."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats, Positive, Scratch
from melee.compiled import implements, interpreted_as
from melee.learners.base import Learner
from melee.learners.interface import (
    correct,
    fade,
    gain,
    note_diagonal,
    predict,
    predict_all,
    spread,
)
from melee.learners.linear import add_to_row, dot, dot_row, quadratic_form
from melee.learners.offers import choice, dot_all, raised, spread_with, weighed
from melee.settings import count, number

MAX_EXACT_FEATURES = 150
"""Above this many features a round in O(d²) gets slow and the diagonal takes over (paper)."""
MAX_EXACT_NUMBERS = 2**24
"""Numbers in the exact models of all actions together, 128 MiB; beyond them the diagonal, too."""


@dataclass(frozen=True, kw_only=True)
class DiagonalLearner(Learner):
    """Ridge regression by the diagonal of its information matrix, for many features.

    Parameters
    ----------
    ridge
        Strength of the L2 penalty.
    """

    name: ClassVar[str] = "diagonal"
    takes_candidates: ClassVar[bool] = True
    has_spread: ClassVar[bool] = True
    ridge: float = number(0.1, 0.0, above=True)

    def start(self, n_rows: int, n_inputs: int) -> Any:
        """Models that predict 0 everywhere."""
        return DiagonalRidge.start(n_rows, n_inputs, float(self.ridge))


@dataclass(frozen=True, kw_only=True)
class RidgeLearner(Learner):
    """Ridge regression that is exact after every observation; the diagonal where that is too much.

    Parameters
    ----------
    ridge
        Strength of the L2 penalty.
    exact
        Features up to which it is exact; 128 MiB of models is the limit too.
    """

    name: ClassVar[str] = "ridge"
    takes_candidates: ClassVar[bool] = True
    has_spread: ClassVar[bool] = True
    ridge: float = number(0.1, 0.0, above=True)
    exact: int = count(MAX_EXACT_FEATURES, 0)

    def start(self, n_rows: int, n_inputs: int) -> Any:
        """Models that predict 0 everywhere."""
        return Ridge.start(n_rows, n_inputs, float(self.ridge))

    def fits(self, n_rows: int, n_inputs: int) -> bool:
        """Whether exact models of this size are within the limits of time and memory."""
        return n_inputs - 1 <= self.exact and n_rows * n_inputs**2 <= MAX_EXACT_NUMBERS

    def smaller(self) -> Learner:
        """The diagonal, under the same penalty."""
        return DiagonalLearner(ridge=self.ridge)


class Ridge(NamedTuple):
    """Exactly the least-squares fit with an L2 penalty, updated in O(D²)."""

    weights: Floats  # (rows, D)
    inverse: Floats  # (rows, D, D), the inverse of ridge·I + sum of weight·x x'
    scratch: Scratch  # (D,)

    @classmethod
    def start(cls, n_rows: int, n_inputs: int, ridge: float) -> "Ridge":
        """Models that predict 0 everywhere."""
        inverse = np.zeros((n_rows, n_inputs, n_inputs))
        inverse[:, np.arange(n_inputs), np.arange(n_inputs)] = 1.0 / ridge
        return cls(np.zeros((n_rows, n_inputs)), inverse, np.zeros(n_inputs))

    @property
    def exact(self) -> bool:
        """It keeps whole matrices."""
        return True

    def encourage(self, row: int, value: float, rounds: float) -> None:
        """Move the intercept and count the rounds into its information."""
        self.weights[row, -1] = value
        penalty = 1.0 / self.inverse[row, -1, -1]
        self.inverse[row, -1, -1] = 1.0 / (penalty + rounds)


class DiagonalRidge(NamedTuple):
    """Keeps only the diagonal of the information matrix: O(D) a round, for many features.

    The spread ignores correlations between features, and the weights follow the error along
    x scaled by that diagonal instead of solving for the joint minimum.
    """

    weights: Floats  # (rows, D)
    information: Positive  # (rows, D), the diagonal of ridge·I + sum of weight·x x'
    scratch: Scratch  # (D,)

    @classmethod
    def start(cls, n_rows: int, n_inputs: int, ridge: float) -> "DiagonalRidge":
        """Models that predict 0 everywhere."""
        information = np.full((n_rows, n_inputs), ridge)
        return cls(np.zeros((n_rows, n_inputs)), information, np.zeros(n_inputs))

    def encourage(self, row: int, value: float, rounds: float) -> None:
        """Move the intercept and count the rounds into its information."""
        self.weights[row, -1] = value
        self.information[row, -1] += rounds


@implements(predict, Ridge, DiagonalRidge)
def ridge_predict(learner: Ridge, x: Floats, row: int) -> float:
    """w·x."""
    own, model = choice(x, row)
    return raised(x, row, dot_row(learner.weights, model, own))


@implements(predict_all, Ridge, DiagonalRidge)
def ridge_predict_all(learner: Ridge, x: Floats, first: int, out: Floats) -> None:
    """w·x for every row."""
    dot_all(x, learner.weights, first, out)


@implements(spread, Ridge)
def ridge_spread(learner: Ridge, x: Floats, row: int) -> float:
    """sqrt(x' A^-1 x)."""
    own, model = choice(x, row)
    return spread_with(x, row, math.sqrt(max(quadratic_form(learner.inverse, model, own), 0.0)))


def _gain_at_once(learner: Ridge, x: Floats, row: int, weight: float) -> None:
    inverse = learner.inverse[row]
    ax = np.add.accumulate(inverse * x[:, None], axis=0)[-1] + 0.0
    gain = 1.0 / (1.0 / weight + dot(x, ax)) * ax
    inverse -= gain[:, None] * ax
    learner.scratch[:] = gain


@implements(gain, Ridge)
@interpreted_as(_gain_at_once)
def ridge_gain(learner: Ridge, x: Floats, row: int, weight: float) -> None:
    """Sherman-Morrison: g = A^-1 x / (1/weight + x' A^-1 x), and A^-1 -= g (A^-1 x)'.

    No round ever solves a linear system. Overwrites the inverse of this row, and the scratch
    with g.
    """
    n = x.shape[0]
    inverse, ax = learner.inverse, learner.scratch
    ax[:] = 0.0
    for quarter in range(n // 4):
        j = 4 * quarter
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        if x0 == 0.0 and x1 == 0.0 and x2 == 0.0 and x3 == 0.0:
            continue  # as in many places of a pair, and in units that wait
        for i in range(n):
            first = (ax[i] + inverse[row, j, i] * x0) + inverse[row, j + 1, i] * x1
            ax[i] = (first + inverse[row, j + 2, i] * x2) + inverse[row, j + 3, i] * x3
    for j in range(n - n % 4, n):
        for i in range(n):
            ax[i] += inverse[row, j, i] * x[j]
    scale = 1.0 / (1.0 / weight + dot(x, ax))
    for j in range(n):
        step = scale * ax[j]
        if step != 0.0:
            for i in range(n):
                inverse[row, j, i] -= step * ax[i]
    for j in range(n):
        ax[j] = scale * ax[j]


@implements(note_diagonal, Ridge)
def ridge_diagonal(ridge: Ridge, diagonal: Floats, row: int) -> None:
    """As it is in the inverse."""
    for i in range(diagonal.shape[1]):
        diagonal[row, i] = ridge.inverse[row, i, i]


def _fade_at_once(ridge: Ridge, row: int, share: float, most: float) -> None:
    inverse = ridge.inverse[row]
    room = np.maximum(most / inverse.diagonal(), 1.0)
    factors = np.sqrt(np.minimum(1.0 / share, room))
    inverse *= factors[:, None] * factors
    ridge.scratch[:] = factors


@implements(fade, Ridge)
@interpreted_as(_fade_at_once)
def ridge_fade(ridge: Ridge, row: int, share: float, most: float) -> None:
    """Deviations of weights grow by a factor each; how they hang together stays.

    Overwrites the scratch.
    """
    inverse, factors = ridge.inverse, ridge.scratch
    for i in range(factors.shape[0]):
        factors[i] = math.sqrt(min(1.0 / share, max(most / inverse[row, i, i], 1.0)))
    for j in range(factors.shape[0]):
        for i in range(factors.shape[0]):
            inverse[row, j, i] *= factors[j] * factors[i]


@implements(fade, DiagonalRidge)
def diagonal_fade(ridge: DiagonalRidge, row: int, share: float, most: float) -> None:
    """The information shrinks to its share, or to one over the most."""
    information = ridge.information
    for i in range(information.shape[1]):
        least = min(information[row, i], 1.0 / most)
        information[row, i] = max(share * information[row, i], least)


@implements(correct, Ridge, DiagonalRidge)
def ridge_correct(learner: Ridge, x: Floats, row: int, error: float, weight: float) -> None:
    """The error times the gain joins the weights of this row."""
    own, model = choice(x, row)
    gain(learner, own, model, weighed(x, row, weight))
    add_to_row(learner.weights, model, learner.scratch, error)


@implements(spread, DiagonalRidge)
def diagonal_spread(learner: DiagonalRidge, x: Floats, row: int) -> float:
    """sqrt(sum of x_i² / A_ii)."""
    information = learner.information
    own, model = choice(x, row)
    total = 0.0
    for i in range(own.shape[0]):
        total += own[i] * own[i] / information[model, i]
    return spread_with(x, row, math.sqrt(total))


@implements(gain, DiagonalRidge)
def diagonal_gain(learner: DiagonalRidge, x: Floats, row: int, weight: float) -> None:
    """A step along x / diag(A), cut so that it cannot pass the target; then A grows."""
    information, step = learner.information, learner.scratch
    reach = 1.0 / weight
    for i in range(x.shape[0]):
        reach += x[i] * x[i] / information[row, i]
    for i in range(x.shape[0]):
        step[i] = x[i] / information[row, i] / reach
        information[row, i] += weight * x[i] * x[i]


@implements(note_diagonal, DiagonalRidge)
def diagonal_diagonal(ridge: DiagonalRidge, diagonal: Floats, row: int) -> None:
    """One over each number."""
    for i in range(diagonal.shape[1]):
        diagonal[row, i] = 1.0 / ridge.information[row, i]
