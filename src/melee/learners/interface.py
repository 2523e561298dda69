"""What every learner can do; kernels call these names and Numba picks by the state's type.

A learner holds independent linear models, one per row of its weights: one per action, or one that
all candidates share; more where an explorer keeps several of each. Explorers speak of what can be
chosen by its number: `x` is what is offered, and `row` the number of a choice in it, which
`choice(x, row)` resolves to an input and a model (see `melee.learners.offers`). Contexts arrive
with their intercept, a 1 in the last place.

Beside these a learner's state has methods that only Python calls: see `LearnerState`.
"""

from typing import Any, Protocol, runtime_checkable

from melee.arrays import Floats
from melee.compiled import generic


@runtime_checkable
class LearnerState(Protocol):
    """What tells a learner's state from other parts of an explorer's.

    One that keeps whole matrices, n_inputs² numbers a model, also has a property `exact`, true. One
    that notes models by number has a method `renumber(models)`: models[i] is what i is called now,
    -1 if it is gone. And one with numbers by which kernels find their way has a property
    `is_sound`: whether all that they name exists.
    """

    def encourage(self, row: int, value: float, rounds: float) -> None:
        """Have a fresh model predict `value`, as if that many rounds had shown it."""


@generic
def n_rows(learner: Any) -> int:
    """How many models it holds."""
    return int(learner.weights.shape[0])


@generic
def predict(learner: Any, x: Any, row: int) -> float:
    """The predicted reward of a choice."""
    raise TypeError("not a learner")


@generic
def spread(learner: Any, x: Any, row: int) -> float:
    """How uncertain that prediction is: sqrt(x' A^-1 x), A the model's information so far.

    A learner that estimates its noise gives it in units of reward, noise·sqrt(x' A^-1 x).
    """
    raise TypeError("this learner has no predictive spread")


@generic
def noise(learner: Any) -> float:
    """The standard deviation of rewards around its predictions; 1 where it does not estimate it."""
    return 1.0


@generic
def gain(learner: Any, x: Floats, row: int, weight: float) -> None:
    """Of a ridge: count x, and overwrite its scratch with what an error of 1 adds to weights."""
    raise TypeError("not a ridge")


@generic
def note_diagonal(ridge: Any, diagonal: Floats, row: int) -> None:
    """Of a ridge: overwrite diagonal[row] with the diagonal of the inverse of its information."""
    raise TypeError("not a ridge")


@generic
def fade(ridge: Any, row: int, share: float, most: float) -> None:
    """Of a ridge: keep its weights, and trust them as if a share of the rounds had been seen.

    The variance of a weight, in units of the noise, grows no further than to `most`.
    """
    raise TypeError("not a ridge")


@generic
def spread_guess(learner: Any, x: Any, row: int) -> float:
    """About as large as the spread, and sooner known where there is a way."""
    return spread(learner, x, row)


@generic
def spread_guess_all(learner: Any, x: Any, first: int, out: Floats) -> None:
    """Overwrite `out` with these guesses for the models from row `first` on."""
    for a in range(out.shape[0]):
        out[a] = spread_guess(learner, x, first + a)


@generic
def correct(learner: Any, x: Any, row: int, error: float, weight: float) -> None:
    """Learn that the prediction for x was too low by `error`, an observation of this weight."""
    raise TypeError("not a learner")


@generic
def observe(learner: Any, x: Any, row: int, target: float, weight: float) -> None:
    """Learn that the reward of x was `target`, an observation of this weight."""
    correct(learner, x, row, target - predict(learner, x, row), weight)


@generic
def correct_all(learner: Any, x: Any, first: int, errors: Floats) -> None:
    """The same for the models from row `first` on, each with an error of its own and weight 1."""
    for a in range(errors.shape[0]):
        correct(learner, x, first + a, errors[a], 1.0)


@generic
def predict_all(learner: Any, x: Any, first: int, out: Floats) -> None:
    """Overwrite `out` with the predictions of the models from row `first` on."""
    for a in range(out.shape[0]):
        out[a] = predict(learner, x, first + a)
