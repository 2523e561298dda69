"""What can be chosen: the input of every choice, and the model that it belongs to.

Explorers and policy optimizers speak of choices by their number, `predict(learner, offered, a)`,
and hand on what is offered without looking into it. Its type says what choice `a` is:

- an array is a context. Every action has a model of its own, and all see the same input: choice `a`
  is the context under model `a`;
- `OpenActions` are some of these actions: choice `a` is the context under the model of the a-th of
  them. That is a matter of numbers alone, so it is settled before a learner is asked;
- `Candidates` have inputs of their own and one model in common: choice `a` is input `a` under model
  0. What is known of a candidate itself, on top of what its input says, comes with it.

Numba resolves the functions below by that type, so the first case is the code that it would be
without any of them.

An explorer may keep several models of each choice, one block of them after the other: with n
choices number `a` of block `b` is b·n + a. That is what `row` means here. What it keeps of every
action it finds by `choice(offered, a).model`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints, Scratch
from melee.compiled import generic, implements, interpreted_as
from melee.learners.interface import (
    predict,
    predict_all,
    spread,
    spread_guess,
    spread_guess_all,
)
from melee.learners.linear import dot_row, dot_rows

OFFSET, VARIANCE, WEIGHT, PLAYS = range(4)
"""Places in a row of `own`."""


N_OWN = 24
"""Inputs of a candidate, the last ones before the intercept, that depend on nothing else."""


class Candidates(NamedTuple):
    """Choices that bring their own inputs, for one model that they share.

    A candidate that was chosen before has a record. Its input is then what is left when the
    record's part is taken out, and `own` what the record says: how much to add to the prediction,
    the variance of that in squares of the noise, how much weight a new observation has, and how
    often there was one.
    """

    inputs: Scratch  # (n, D): of the pair, N_OWN of the candidate alone, the intercept
    own: Scratch  # (n, 4)


class OpenActions(NamedTuple):
    """Some of the actions, the others being closed this time."""

    context: Floats  # (D,), the intercept last
    numbers: Ints  # (n,) of the actions
    n_actions: int  # open and closed


@generic
def n_choices(offered: Any, n_models: int) -> int:
    """How many there are to choose from, for a state that has so many models in a block."""
    return n_models


@implements(n_choices, Candidates)
def n_candidates(offered: Candidates, n_models: int) -> int:
    """One for each input."""
    return int(offered.inputs.shape[0])


@implements(n_choices, OpenActions)
def n_open(offered: OpenActions, n_models: int) -> int:
    """Those that are open."""
    return int(offered.numbers.shape[0])


class Chosen(NamedTuple):
    """An input, and the model that it belongs to."""

    x: Floats  # (D,), the intercept last
    model: int


@generic
def choice(offered: Any, row: int) -> Chosen:
    """What a choice's number stands for."""
    return Chosen(offered, row)


@implements(choice, Candidates)
def candidates_choice(offered: Candidates, row: int) -> Chosen:
    """Its own input, and the model of the block."""
    n = offered.inputs.shape[0]
    return Chosen(offered.inputs[row % n], row // n)


@implements(choice, OpenActions)
def open_choice(offered: OpenActions, row: int) -> Chosen:
    """The context, and the action's model in the block."""
    n = offered.numbers.shape[0]
    return Chosen(offered.context, row // n * offered.n_actions + offered.numbers[row % n])


@generic
def differ(offered: Any) -> bool:
    """Whether choices have inputs that differ."""
    return False


@implements(differ, Candidates)
def candidates_differ(offered: Candidates) -> bool:
    """They do."""
    return True


@generic
def raised(offered: Any, row: int, prediction: float) -> float:
    """A model's prediction, and what is known of the choice itself."""
    return prediction


@implements(raised, Candidates)
def candidates_raised(offered: Candidates, row: int, prediction: float) -> float:
    """The record's part is added."""
    return float(prediction + offered.own[row % offered.own.shape[0], OFFSET])


@generic
def left(offered: Any, row: int, target: float) -> float:
    """The part of a reward that a model has to explain."""
    return target


@implements(left, Candidates)
def candidates_left(offered: Candidates, row: int, target: float) -> float:
    """What the record's part leaves."""
    return float(target - offered.own[row % offered.own.shape[0], OFFSET])


@generic
def spread_with(offered: Any, row: int, spread: float) -> float:
    """A model's spread, and what is not known of the choice itself; in units of the noise."""
    return spread


@implements(spread_with, Candidates)
def candidates_spread(offered: Candidates, row: int, spread: float) -> float:
    """Both variances add up."""
    return math.sqrt(spread * spread + offered.own[row % offered.own.shape[0], VARIANCE])


@generic
def weighed(offered: Any, row: int, weight: float) -> float:
    """The weight that an observation of the choice has."""
    return weight


@implements(weighed, Candidates)
def candidates_weighed(offered: Candidates, row: int, weight: float) -> float:
    """Less where there is a record to be shared with."""
    return float(weight * offered.own[row % offered.own.shape[0], WEIGHT])


@generic
def plays_of(offered: Any, a: int, plays: Floats) -> float:
    """How often a choice was played, where a state has counted that of its models."""
    return float(plays[choice(offered, a).model])


@implements(plays_of, Candidates)
def candidates_plays(offered: Candidates, a: int, plays: Floats) -> float:
    """As the record says."""
    return float(offered.own[a, PLAYS])


@generic
def dot_all(offered: Any, weights: Floats, first: int, out: Floats) -> None:
    """Overwrite `out` with w·x of the choices from `first` on, raised."""
    dot_rows(weights, first, offered, out)


@implements(dot_all, Candidates)
def candidates_dot_all(offered: Candidates, weights: Floats, first: int, out: Floats) -> None:
    """Each with its own input."""
    for a in range(out.shape[0]):
        row = first + a
        x, model = choice(offered, row)
        out[a] = raised(offered, row, dot_row(weights, model, x))


# What learners are asked about open actions, whatever the learner: the question about the model.


@implements(predict, OpenActions)
def predict_open(learner: Any, offered: OpenActions, row: int) -> float:
    """As in a context in which all are open."""
    x, model = choice(offered, row)
    return predict(learner, x, model)


@implements(spread, OpenActions)
def spread_open(learner: Any, offered: OpenActions, row: int) -> float:
    """As in a context in which all are open."""
    x, model = choice(offered, row)
    return spread(learner, x, model)


@implements(spread_guess, OpenActions)
def guess_open(learner: Any, offered: OpenActions, row: int) -> float:
    """As in a context in which all are open."""
    x, model = choice(offered, row)
    return spread_guess(learner, x, model)


def _predict_open_at_once(learner: Any, offered: OpenActions, first: int, out: Floats) -> None:
    n, block = len(offered.numbers), first // len(offered.numbers)
    n_blocks = -(-(first + len(out)) // n) - block
    every = np.empty((n_blocks, offered.n_actions))
    predict_all(learner, offered.context, block * offered.n_actions, every.reshape(-1))
    begin = first - block * n
    out[:] = every[:, offered.numbers].reshape(-1)[begin : begin + len(out)]


@implements(predict_all, OpenActions)
@interpreted_as(_predict_open_at_once)
def predict_all_open(learner: Any, offered: OpenActions, first: int, out: Floats) -> None:
    """The same for every choice from `first` on."""
    for a in range(out.shape[0]):
        out[a] = predict(learner, offered, first + a)


@implements(spread_guess_all, OpenActions)
def guess_all_open(learner: Any, offered: OpenActions, first: int, out: Floats) -> None:
    """The same for every choice from `first` on."""
    for a in range(out.shape[0]):
        out[a] = spread_guess(learner, offered, first + a)
