"""What every learner can do; kernels call these names and Numba picks by the state's type.

A learner holds independent linear models, one per *row* of its weights: one row per action,
or more where an explorer keeps several models of each. Contexts arrive with their intercept,
a 1 in the last place.
"""

from typing import Any

from melee.arrays import Floats
from melee.compiled import generic


@generic
def predict(learner: Any, x: Floats, row: int) -> float:
    """The predicted reward of context x under model `row`."""
    raise TypeError("not a learner")


@generic
def spread(learner: Any, x: Floats, row: int) -> float:
    """How uncertain that prediction is: sqrt(x' A^-1 x), A the model's information so far."""
    raise TypeError("this learner has no predictive spread")


@generic
def correct(learner: Any, x: Floats, row: int, error: float, weight: float) -> None:
    """Learn that the prediction for x was too low by `error`, an observation of this weight."""
    raise TypeError("not a learner")


@generic
def correct_all(learner: Any, x: Floats, first: int, errors: Floats) -> None:
    """The same for the models from row `first` on, each with an error of its own and weight 1."""
    for a in range(errors.shape[0]):
        correct(learner, x, first + a, errors[a], 1.0)


@generic
def predict_all(learner: Any, x: Floats, first: int, out: Floats) -> None:
    """Overwrite `out` with the predictions of the models from row `first` on."""
    for a in range(out.shape[0]):
        out[a] = predict(learner, x, first + a)
