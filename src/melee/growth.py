"""Growing a state: more features, or other actions, for any explorer.

Nobody has to say which axes of a state's arrays run over features and which over actions: a state
for one feature more, and one for one action more, tell by their shapes. An axis over inputs holds
the features first and whatever follows them (hidden units, the intercept) after; an axis over
actions holds them once or in several blocks, one block per model.

A ridge takes in new features exactly. The inverse of its information matrix gets rows and columns
that are those of a fresh one, its weights get zeros: the model that had always had these features,
and had always seen zeros there.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

from melee.arrays import SCRATCH, Ints, Within
from melee.explorers.base import Kind
from melee.explorers.hidden import Widened
from melee.explorers.rescaled import Rescaled
from melee.learners.interface import LearnerState, n_rows

Start = Callable[[int, int], Rescaled]
"""Makes a fresh state for a number of features and one of actions."""

PRIOR_ROUNDS = 5.0
"""How many rounds an action's optimism weighs."""


class Axis(NamedTuple):
    """How an axis grows: by how much with one feature more, and with one action more."""

    per_feature: int
    per_action: int


Axes = list[tuple[Axis, ...]]
"""The axes of a state's arrays, depth first."""


def named(state: Any, *, lasting: bool = False) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """The arrays that make up a state, by where they are, such as `inner.polopt.learner.weights`.

    A rescaling's copies of its inner state are left out, and with `lasting` all scratch.
    """
    for path, part in _leaves(state, lasting=lasting):
        if isinstance(part, np.ndarray):
            yield path, part


def arrays(state: Any, *, lasting: bool = False) -> Iterator[npt.NDArray[Any]]:
    """The same without their names."""
    for _, array in named(state, lasting=lasting):
        yield array


def _leaves(part: Any, path: str = "", *, lasting: bool) -> Iterator[tuple[str, Any]]:
    """The arrays and numbers in a state, depth first."""
    if not isinstance(part, tuple):
        yield path, part
        return
    left_out = {"block", "initial"} if isinstance(part, Rescaled) else set()
    if lasting:
        left_out |= {field for field, said in _said_of(type(part)).items() if said == SCRATCH}
    for field, inner in zip(part._fields, part, strict=True):  # type: ignore[attr-defined]
        if field not in left_out:
            yield from _leaves(inner, f"{path}.{field}" if path else field, lasting=lasting)


@cache
def _said_of(kind: type) -> dict[str, Any]:
    """What a kind of state says of its arrays: that they are scratch, or what they may hold."""
    hints = get_type_hints(kind, include_extras=True)
    return {field: getattr(hint, "__metadata__", (None,))[0] for field, hint in hints.items()}


def bounds(state: Any, path: str = "") -> dict[str, Within]:
    """The numbers that a state's arrays can hold, by name, where it says so."""
    found: dict[str, Within] = {}
    if isinstance(state, tuple):
        said = _said_of(type(state))
        for field, part in zip(state._fields, state, strict=True):  # type: ignore[attr-defined]
            here = f"{path}.{field}" if path else field
            found |= bounds(part, here)
            within = said.get(field)
            if isinstance(within, Within):
                found[here] = within
    return found


def latest(state: Any) -> list[npt.NDArray[Any]]:
    """What a state notes of its latest decision for the reward to come."""
    return [array for path, array in named(state) if path.endswith(".latest")]


def axes_of(start: Start, n_features: int, n_actions: int) -> Axes:
    """How the arrays of such states grow."""
    base = start(n_features, n_actions)
    wider, longer = start(n_features + 1, n_actions), start(n_features, n_actions + 1)
    shapes = [[array.shape for array in arrays(state)] for state in (base, wider, longer)]
    return [
        tuple(Axis(w - b, a - b) for b, w, a in zip(*three, strict=True))
        for three in zip(*shapes, strict=True)
    ]


def shapes(start: Start, n_features: int, n_actions: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the lasting arrays of such a state by name, found on small ones."""
    small, wider, longer = (
        dict(named(state, lasting=True)) for state in (start(1, 1), start(2, 1), start(1, 2))
    )

    def shape(path: str) -> tuple[int, ...]:
        three = (small[path].shape, wider[path].shape, longer[path].shape)
        return tuple(
            base + (wide - base) * (n_features - 1) + (long - base) * (n_actions - 1)
            for base, wide, long in zip(*three, strict=True)
        )

    return {path: shape(path) for path in small}


def kind_of(state: Any) -> Kind:
    """What was decided about a state by its size at the start."""
    exact = any(getattr(learner, "exact", False) for learner in learners(state))
    return Kind(exact=exact, hidden=Widened in set(_types(state)))


def _types(state: Any) -> Iterator[type]:
    if isinstance(state, tuple):
        yield type(state)
        for part in state:
            yield from _types(part)


def transfer(
    old: Rescaled, new: Rescaled, axes: Axes, n_features: tuple[int, int], kept: Ints, K: int
) -> Rescaled:
    """Everything that an old state has learned, in the memory of a larger or smaller fresh one.

    Parameters
    ----------
    old, new
        The state, and a fresh one of the new size, whose arrays are overwritten.
    axes
        How the arrays grow.
    n_features
        Before and after.
    kept
        Where each old action is now; -1 for those that are gone.
    K
        The number of actions now.
    """
    before, after = n_features
    actions = np.flatnonzero(kept >= 0)
    for source, target, kinds in zip(arrays(old), arrays(new), axes, strict=True):
        takes, puts = [], []
        for axis, length in zip(kinds, source.shape, strict=True):
            take = put = np.arange(length)
            if axis.per_action:
                blocks = np.arange(axis.per_action)[:, None]
                take = (blocks * len(kept) + actions).ravel()
                put = (blocks * K + kept[actions]).ravel()
            elif axis.per_feature:
                put = np.where(take < before, take, take + after - before)
            takes.append(take)
            puts.append(put)
        target[np.ix_(*puts)] = source[np.ix_(*takes)]
    for learner in learners(new):
        if hasattr(learner, "renumber"):
            blocks = np.arange(n_rows(learner) // K)[:, None]
            learner.renumber(np.where(kept < 0, -1, blocks * K + kept).ravel())
    grown: Rescaled = _with_settings(old, new)
    return grown


def _with_settings(old: Any, new: Any) -> Any:
    """The arrays of one state with the numbers of the other: factors that its past was seen by."""
    if isinstance(new, np.ndarray):
        return new
    if isinstance(new, tuple):
        return type(new)(*(_with_settings(o, n) for o, n in zip(old, new, strict=True)))
    return old


def encourage(state: Any, rows: Sequence[int], n_actions: int, value: float) -> None:
    """Have all models of these actions predict `value`, as if a few rounds had shown it.

    An action that joins late competes with others that are known to be good: predicting 0 for
    it, as for an unknown action at the start, would keep it from ever being tried.
    """
    for learner in learners(state):
        for first in range(0, n_rows(learner), n_actions):
            for row in rows:
                learner.encourage(first + row, value, PRIOR_ROUNDS)


def learners(state: Any) -> Iterator[Any]:
    """The learners in a state, depth first: that of its policy optimizer before any other."""
    if isinstance(state, LearnerState):
        yield state
    elif isinstance(state, tuple):
        for part in state:
            yield from learners(part)


def settings(state: Any) -> dict[str, Any]:
    """The numbers in a state by name: true or false, whole or not."""
    leaves = _leaves(state, lasting=False)
    return {path: part for path, part in leaves if not isinstance(part, np.ndarray)}


def with_settings(state: Any, values: dict[str, float], path: str = "") -> Any:
    """The state with other numbers, by name; those without a value stay."""
    if isinstance(state, tuple):
        fields = state._fields  # type: ignore[attr-defined]
        parts = zip(fields, state, strict=True)
        return type(state)(*(with_settings(part, values, f"{path}.{name}") for name, part in parts))
    if isinstance(state, np.ndarray):
        return state
    return type(state)(values.get(path.removeprefix("."), state))
