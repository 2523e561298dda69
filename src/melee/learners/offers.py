"""What can be chosen: the input of every choice, and the model that it belongs to.

Explorers and policy optimizers speak of choices by their number, `predict(learner, offered, a)`,
and hand on what is offered without looking into it. Its type says what choice `a` is:

- an array is a context. Every action has a model of its own, and all see the same input: choice `a`
  is the context under model `a`;
- `Candidates` have inputs of their own and one model in common: choice `a` is input `a` under model
  0. What is known of a candidate itself, on top of what its input says, comes with it.

Numba resolves the functions below by that type, so the first case is the code that it would be
without any of them.

An explorer may keep several models of each choice, one block of them after the other: with n
choices number `a` of block `b` is b·n + a. That is what `row` means here.
"""

import math
from typing import Any, NamedTuple

from melee.arrays import Floats, Scratch
from melee.compiled import generic, implements
from melee.learners.linear import dot_row, dot_rows

OFFSET, VARIANCE, WEIGHT, PLAYS = range(4)
"""Places in a row of `own`."""


class Candidates(NamedTuple):
    """Choices that bring their own inputs, for one model that they share.

    A candidate that was chosen before has a record. Its input is then what is left when the
    record's part is taken out, and `own` what the record says: how much to add to the prediction,
    the variance of that in squares of the noise, how much weight a new observation has, and how
    often there was one.
    """

    inputs: Scratch  # (n, D), the intercept last
    own: Scratch  # (n, 4)


@generic
def n_choices(offered: Any, n_models: int) -> int:
    """How many there are to choose from, for a state that has so many models in a block."""
    return n_models


@implements(n_choices, Candidates)
def n_candidates(offered: Candidates, n_models: int) -> int:
    """One for each input."""
    return int(offered.inputs.shape[0])


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
    return float(plays[a])


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
