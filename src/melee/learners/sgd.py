"""Linear models fitted by one stochastic gradient step per observation.

Squared loss predicts w·x; logistic loss predicts 1/(1 + exp(-w·x)). For both the gradient of
the loss is (prediction - target)·x, so one update serves both.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Amounts, Floats
from melee.compiled import implements, interpreted_as, kernel
from melee.learners.base import Learner
from melee.learners.interface import correct, correct_all, predict, predict_all
from melee.learners.linear import dot, dot_row
from melee.learners.offers import choice, dot_all, raised, weighed
from melee.settings import choice as one_of
from melee.settings import number

DEFAULT_LEARNING_RATE = 0.1
"""For callers that bring no labelled rows to choose a learning rate by."""


@dataclass(frozen=True, kw_only=True)
class SgdLearner(Learner):
    """Linear models fitted by one gradient step per observation.

    Parameters
    ----------
    loss
        `squared`, or `logistic` for targets in [0, 1].
    steps
        `plain`, for contexts that are scaled already, or `adaptive`, for contexts as they come.
    learning_rate
        Of the first step; explorers pass on the preparation's.
    """

    name: ClassVar[str] = "sgd"
    takes_candidates: ClassVar[bool] = True
    loss: str = one_of("squared", "squared", "logistic")
    steps: str = one_of("plain", "plain", "adaptive")
    learning_rate: float = number(DEFAULT_LEARNING_RATE, 0.0, above=True)

    def start(self, n_rows: int, n_inputs: int) -> Any:
        """Models that predict 0 (squared loss) or 1/2 (logistic loss) everywhere."""
        kind = Sgd if self.steps == "plain" else AdaptiveSgd
        return kind.start(n_rows, n_inputs, float(self.learning_rate), self.loss == "logistic")


class Sgd(NamedTuple):
    """Plain steps for contexts that are scaled already.

    A model's n-th step has the rate learning_rate / n^(1/4), scikit-learn's schedule for
    regression: constant steps would never settle.
    """

    weights: Floats  # (rows, D)
    counts: Amounts  # (rows,) steps so far
    learning_rate: float
    logistic: bool

    @classmethod
    def start(cls, n_rows: int, n_inputs: int, learning_rate: float, logistic: bool) -> "Sgd":
        """Models that predict 0 (squared loss) or 1/2 (logistic loss) everywhere."""
        return cls(np.zeros((n_rows, n_inputs)), np.zeros(n_rows), learning_rate, logistic)

    def encourage(self, row: int, value: float, rounds: float) -> None:
        """Move the intercept; a step has no memory of how many rounds there were."""
        self.weights[row, -1] = _intercept(value, self.logistic)


class AdaptiveSgd(NamedTuple):
    """Steps that adapt to each feature's gradients and scale; for contexts as they come.

    Normalized adaptive gradient (Ross, Mineiro and Langford, 2013): multiplying a feature by
    any constant leaves the predictions as they were.
    """

    weights: Floats  # (rows, D)
    squares: Amounts  # (rows, D) sums of squared gradients
    scales: Amounts  # (rows, D) largest |x| so far
    norms: Amounts  # (rows, 2) observations, and the sum of their normalized squared lengths
    learning_rate: float
    logistic: bool

    @classmethod
    def start(
        cls, n_rows: int, n_inputs: int, learning_rate: float, logistic: bool
    ) -> "AdaptiveSgd":
        """Models that predict 0 (squared loss) or 1/2 (logistic loss) everywhere."""
        shape = (n_rows, n_inputs)
        return cls(
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros((n_rows, 2)),
            learning_rate,
            logistic,
        )

    def encourage(self, row: int, value: float, rounds: float) -> None:
        """Move the intercept, as by that many squared gradients of 1."""
        self.weights[row, -1] = _intercept(value, self.logistic)
        self.scales[row, -1] = 1.0
        self.norms[row] = 1.0
        self.squares[row, -1] = rounds


def _intercept(value: float, logistic: bool) -> float:
    return float(np.log(value / (1.0 - value))) if logistic else value


@kernel
def sigmoid(z: float) -> float:
    """The logistic function, of a number that is cut at ±30."""
    return 1.0 / (1.0 + math.exp(-min(max(z, -30.0), 30.0)))


@implements(predict, Sgd, AdaptiveSgd)
def sgd_predict(learner: Sgd, x: Floats, row: int) -> float:
    """w·x, through the logistic function for logistic loss."""
    own, model = choice(x, row)
    z = raised(x, row, dot_row(learner.weights, model, own))
    return sigmoid(z) if learner.logistic else z


def _step_at_once(learner: Sgd, x: Floats, row: int, error: float, weight: float) -> None:
    learner.counts[row] += 1.0
    rate = learner.learning_rate / math.sqrt(math.sqrt(learner.counts[row]))
    learner.weights[row] += min(rate * weight, 1.0 / dot(x, x)) * error * x


@interpreted_as(_step_at_once)
def sgd_step(learner: Sgd, x: Floats, row: int, error: float, weight: float) -> None:
    """Add step·error·x to w, the step cut where it would carry the prediction past its target."""
    weights = learner.weights
    learner.counts[row] += 1.0
    rate = learner.learning_rate / math.sqrt(math.sqrt(learner.counts[row]))
    step = min(rate * weight, 1.0 / dot(x, x)) * error
    for i in range(x.shape[0]):
        weights[row, i] += step * x[i]


@implements(correct, Sgd)
def sgd_correct(learner: Sgd, x: Floats, row: int, error: float, weight: float) -> None:
    """One step."""
    own, model = choice(x, row)
    sgd_step(learner, own, model, error, weighed(x, row, weight))


def _correct_all_at_once(learner: Sgd, x: Floats, first: int, errors: Floats) -> None:
    rows = slice(first, first + len(errors))
    learner.counts[rows] += 1.0
    rates = learner.learning_rate / np.sqrt(np.sqrt(learner.counts[rows]))
    steps = np.minimum(rates, 1.0 / dot(x, x)) * errors
    learner.weights[rows] += steps[:, None] * x


@implements(correct_all, Sgd)
@interpreted_as(_correct_all_at_once)
def sgd_correct_all(learner: Sgd, x: Floats, first: int, errors: Floats) -> None:
    """One step of each model."""
    for a in range(errors.shape[0]):
        correct(learner, x, first + a, errors[a], 1.0)


@implements(predict_all, Sgd)
def sgd_predict_all(learner: Sgd, x: Floats, first: int, out: Floats) -> None:
    """w·x of each model, through the logistic function for logistic loss."""
    dot_all(x, learner.weights, first, out)
    if learner.logistic:
        for a in range(out.shape[0]):
            out[a] = sigmoid(out[a])


@implements(correct, AdaptiveSgd)
def adaptive_correct(
    learner: AdaptiveSgd, offered: Any, row: int, error: float, weight: float
) -> None:
    """One normalized adaptive step; Algorithm 2 of Ross, Mineiro and Langford."""
    x, model = choice(offered, row)
    w, squares, scales = learner.weights[model], learner.squares[model], learner.scales[model]
    norms, weight = learner.norms[model], weighed(offered, row, weight)
    norms[0] += 1.0
    target = predict(learner, offered, row) + error
    for i in range(x.shape[0]):
        size = abs(x[i])
        if size > scales[i]:
            w[i] *= scales[i] / size
            scales[i] = size
    error = target - predict(learner, offered, row)  # new scales change what was predicted
    for i in range(x.shape[0]):
        if x[i] != 0.0:
            share, gradient = x[i] / scales[i], weight * error * x[i]
            norms[1] += share * share
            squares[i] += gradient * gradient
    if error == 0.0 or norms[1] == 0.0:
        return
    rate = learner.learning_rate * math.sqrt(norms[0] / norms[1])
    # The step along x changes the prediction by `reach` times the error: never past the target.
    reach = 0.0
    for i in range(x.shape[0]):
        if squares[i] > 0.0:
            reach += rate * weight * x[i] * x[i] / (scales[i] * math.sqrt(squares[i]))
    rate *= weight * error * (min(1.0, 1.0 / reach) if reach > 0.0 else 0.0)
    for i in range(x.shape[0]):
        if squares[i] > 0.0:
            w[i] += rate * x[i] / (scales[i] * math.sqrt(squares[i]))
