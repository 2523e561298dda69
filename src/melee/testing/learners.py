"""The checks of a learner, each a function that takes one and raises where it does not hold."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from melee.arrays import Floats
from melee.learners import registry
from melee.learners.base import Learner
from melee.learners.interface import (
    LearnerState,
    correct,
    correct_all,
    n_rows,
    observe,
    predict,
    predict_all,
    spread,
)
from melee.states import arrays_of
from melee.testing.checks import Check, refuses, require, require_close, select
from melee.testing.explorers import checks_for_explorer

D, ROW, N_ROWS = 5, 1, 3
"""Inputs, and the model that learns among others, which stay as they are where it learns alone."""


class ModelTwin(Protocol):
    """One model's definition once more, slowly; with a `spread(x)` where the learner has one."""

    def predict(self, x: Floats) -> float:
        """The prediction for x."""

    def learn(self, x: Floats, target: float, weight: float) -> None:
        """Learn a target, an observation of this weight."""


MakesModelTwin = Callable[[Any, int], ModelTwin]
"""Makes the twin of one model from the learner and the number of inputs."""
MakesModelTwins = Callable[[Any, int, int], Sequence[ModelTwin]]
"""Makes the twins of all models, of a learner whose models learn from one another (`alone` is
false): from the learner, the number of inputs and that of models."""


def check_learner(
    learner: str | Learner,
    twin: MakesModelTwin | MakesModelTwins | None = None,
    *,
    leave_out: Collection[str] = (),
) -> None:
    """Run all checks on a learner; the first that does not hold raises an AssertionError.

    Its own come first; then those of `epsilon-greedy` over it.

    Parameters
    ----------
    learner
        A learner, or its text as in a SPEC string; it must be registered.
    twin
        Makes the slow twin of one of its models from the learner and the number of inputs; of a
        learner that is not `alone`, those of all its models, whose number comes third.
    leave_out
        Names of checks that do not apply.
    """
    for check in checks_for_learner(learner, twin, leave_out=leave_out):
        check()


def checks_for_learner(
    learner: str | Learner,
    twin: MakesModelTwin | MakesModelTwins | None = None,
    *,
    leave_out: Collection[str] = (),
) -> list[Check]:
    """The checks that apply to a learner, in order; see `check_learner`.

    >>> print(checks_for_learner("ridge")[0])
    settings_are_written_and_read_again
    """
    chosen = learner if isinstance(learner, Learner) else registry.parse(learner)
    functions: list[Callable[[Any], None]] = [*ALWAYS]
    if chosen.alone:
        functions.append(one_model_learns_and_the_others_stay)
    if chosen.has_spread:
        functions.append(its_spread_shrinks_where_it_learns)
    if twin is not None:
        compare: Any = partial(_compare, twin=twin)
        compare.__name__ = "predictions_agree_with_its_twin"
        functions.append(compare)
    own = [
        Check(function.__name__, chosen.short_spec, partial(function, chosen))
        for function in functions
    ]
    names = {check.name for check in own}
    explorers = [
        check for check in checks_for_explorer(_explorer(chosen)) if check.name not in names
    ]
    return select([*own, *explorers], leave_out)


def _explorer(learner: Learner) -> str:
    """ε-greedy over it: settings that it has keys for are given as such."""
    settings = learner.short_spec.split("/")[1:]
    shared = ("ridge", "exact", "loss", "steps", "learning_rate")
    keys = [setting for setting in settings if setting.partition("=")[0] in shared]
    own = [setting for setting in settings if setting not in keys]
    text = "/".join([learner.name, *own])
    return ":".join(["epsilon-greedy", "epsilon=0.1", f"learner={text}", *keys])


def settings_are_written_and_read_again(learner: Learner) -> None:
    """A text makes the learner that wrote it, and settings of a wrong type get a sentence."""
    kind = type(learner)
    known = not refuses(lambda: registry.REGISTRY.find(learner.name))
    require(
        known and registry.REGISTRY.find(learner.name) is kind,
        f"{kind.__name__} is not registered as '{learner.name}'; call melee.register, or give its "
        "package an entry point",
    )
    for text in (learner.spec, learner.short_spec):
        require(registry.parse(text) == learner, f"{text} does not make {learner} again")
    for field in dataclasses.fields(learner):
        values: Any = {field.name: object()}
        refused = refuses(partial(dataclasses.replace, learner, **values))
        require(refused, f"an object() for {field.name} is not refused")
    require((kind.__doc__ or "").strip(), f"{kind.__name__} has no docstring to be listed with")


def it_has_as_many_models_as_were_asked_for(learner: Learner) -> None:
    """And smaller ones where it does not fit, which fit everywhere."""
    for kind in (learner, learner.smaller()):
        state = kind.start(N_ROWS, D)
        require(isinstance(state, LearnerState), f"{type(state).__name__} has no encourage(...)")
        require(n_rows(state) == N_ROWS, f"{n_rows(state)} models where {N_ROWS} were asked for")
        contiguous = all(array.flags.c_contiguous for array in arrays_of(state))
        require(contiguous, "its arrays are not contiguous, and cannot be saved as one block")
    smallest = learner.smaller()
    require(smallest.smaller() == smallest, "the learner that takes its place has another one")
    require(smallest.fits(10**6, 10**6), "the learner that takes its place has limits of its own")


def one_model_learns_and_the_others_stay(learner: Learner) -> None:
    """Models are independent of each other."""
    state, contexts = learner.start(N_ROWS, D), [round_.x for round_ in _rounds(10, seed=1)]
    before = [[predict(state, x, row) for x in contexts] for row in range(N_ROWS)]
    for x, target, weight in _rounds(20):
        _learn(state, x, target, weight)
    after = [[predict(state, x, row) for x in contexts] for row in range(N_ROWS)]
    for row in range(N_ROWS):
        same = before[row] == after[row]
        require(same == (row != ROW), f"model {row} {'did not learn' if same else 'changed too'}")


def all_models_at_once_do_as_one_by_one(learner: Learner) -> None:
    """To the bit, whichever of the two a kernel calls."""
    alone, other = learner.start(N_ROWS, D), learner.start(N_ROWS, D)
    found, errors = np.empty(N_ROWS), np.empty(N_ROWS)
    for x, target, _ in _rounds(30):
        predict_all(other, x, 0, found)
        for row in range(N_ROWS):
            expected = predict(alone, x, row)
            require(found[row] == expected, f"{found[row]} at once, {expected} one by one")
            errors[row] = target * (row + 1) / N_ROWS - expected
        with np.errstate(over="ignore"):  # words of random numbers do
            for row in range(N_ROWS):
                correct(alone, x, row, errors[row], 1.0)
            correct_all(other, x, 0, errors)


def predictions_come_close_to_the_targets(learner: Learner) -> None:
    """A linear function with some noise is learned from a few hundred observations."""
    state, errors, untrained = learner.start(N_ROWS, D), [], []
    for x, target, _ in _rounds(600):
        errors.append(abs(predict(state, x, ROW) - target))
        untrained.append(abs(predict(state, x, 0) - target))
        _learn(state, x, target)
    last, never = np.mean(errors[-200:]), np.mean(untrained[-200:])
    require(last < 0.15 and last < 0.6 * never, f"its error is {last:.3f}; untrained {never:.3f}")


def predictions_stay_finite(learner: Learner) -> None:
    """Whatever the size of the inputs."""
    for size in (1e-170, 1e-8, 1e8, 1e150):
        state = learner.start(N_ROWS, D)
        for x, target, weight in _rounds(30):
            _learn(state, np.append(x[:-1] * size, 1.0), target, weight)
            _learn(state, x, target, weight)
        fine = all(np.isfinite(array).all() for array in arrays_of(state))
        for x, *_ in _rounds(5, seed=1):
            for context in (x, np.append(x[:-1] * size, 1.0)):
                fine = fine and np.isfinite(predict(state, context, ROW))
        require(fine, f"inputs of size {size} leave numbers that are not finite")


def memory_does_not_grow(learner: Learner) -> None:
    """Arrays are changed in place; none is replaced."""
    state = learner.start(N_ROWS, D)
    before = [(id(a), a.shape) for a in arrays_of(state)]
    for x, target, weight in _rounds(100):
        _learn(state, x, target, weight)
    require([(id(a), a.shape) for a in arrays_of(state)] == before, "its arrays changed")


def a_model_is_encouraged(learner: Learner) -> None:
    """It predicts what it was told, goes on learning, and the others stay as they are."""
    state, x = learner.start(N_ROWS, D), np.append(np.zeros(D - 1), 1.0)
    others = predict(state, x, 0)
    state.encourage(ROW, 0.7, 5.0)
    require_close(predict(state, x, ROW), 0.7, "it was encouraged to predict 0.7")
    require(predict(state, x, 0) == others, "another model was encouraged too")
    for _ in range(500):
        _learn(state, x, 0.2)
    found = predict(state, x, ROW)
    require(abs(found - 0.2) < 0.1, f"it predicts {found:.3f} after 500 targets of 0.2")


def its_spread_shrinks_where_it_learns(learner: Learner) -> None:
    """Positive, and smaller with each observation of the same context."""
    state = learner.start(N_ROWS, D)
    x = _rounds(1, seed=3)[0].x
    spreads = []
    for _ in range(10):
        spreads.append(spread(state, x, ROW))
        _learn(state, x, 0.5)
    require(min(spreads) > 0 and np.isfinite(spreads).all(), f"spreads of {spreads}")
    require((np.diff(spreads) < 0).all(), f"it does not shrink: {spreads}")
    unchanged = spread(state, x, 0) == spreads[0]
    require(unchanged or not learner.alone, "another model's spread changed too")


ALWAYS: tuple[Callable[[Any], None], ...] = (
    settings_are_written_and_read_again,
    it_has_as_many_models_as_were_asked_for,
    all_models_at_once_do_as_one_by_one,
    predictions_come_close_to_the_targets,
    predictions_stay_finite,
    memory_does_not_grow,
    a_model_is_encouraged,
)


def _compare(learner: Learner, twin: Any) -> None:
    """Observation by observation, of unlike weights; all models where they learn from another."""
    state = learner.start(N_ROWS, D)
    others = {ROW: twin(learner, D)} if learner.alone else dict(enumerate(twin(learner, D, N_ROWS)))
    for number, (x, target, weight) in enumerate(_rounds(80)):
        for row, other in others.items():
            require_close(predict(state, x, row), other.predict(x), "a prediction")
            if learner.has_spread:
                expected = other.spread(x)
                require_close(spread(state, x, row), expected, "a spread", 1e-8 * expected)
        row = [*others][number * number % len(others)]  # some of them rarely
        _learn(state, x, target, weight, row)
        others[row].learn(x, target, weight)


class Observation(NamedTuple):
    """A context, its target and its weight."""

    x: Floats
    target: float
    weight: float


def _rounds(n: int, seed: int = 0) -> list[Observation]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[rng.random((n, D)) < 0.1] = 0.0
    X[:, -1] = 1.0
    targets = np.clip(0.5 + 0.2 * X[:, 0] - 0.1 * X[:, 1] + 0.1 * rng.normal(size=n), 0, 1)
    weights = rng.choice([0.5, 1.0, 1.0, 3.0], n)
    triples = zip(X, targets.tolist(), weights.tolist(), strict=True)
    return [Observation(*triple) for triple in triples]


def _learn(state: Any, x: Floats, target: float, weight: float = 1.0, row: int = ROW) -> None:
    with np.errstate(over="ignore"):  # words of random numbers do
        observe(state, x, row, target, weight)
