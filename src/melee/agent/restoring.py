"""A model that was written: its arrays and numbers, checked before kernels trust them.

A file is data of others: nothing in it may ask for memory that it does not fill, or have a kernel
reach outside of an array.
"""

import math
from typing import TYPE_CHECKING, Any

from melee import growth
from melee.agent.file import Arrays
from melee.arrays import Within
from melee.checks import read_text
from melee.errors import DataError, shown
from melee.explorers.base import Kind
from melee.explorers.candidates import Paired
from melee.explorers.hidden import Widened
from melee.explorers.rescaled import N_KEPT, Rescaled
from melee.learners.ridge import MAX_EXACT_NUMBERS

if TYPE_CHECKING:
    from melee.agent.model import Model

MOST_ABSENT = 8
"""How much larger a model may be than what its file has of it: it cannot say how large it is."""


def check_shapes(model: "Model", kind: Kind, arrays: Arrays) -> None:
    """Refuse arrays that are not this model's, before any memory is asked for."""
    explorer = model.explorer
    inputs = 3 + (getattr(explorer, "hidden", 0) if kind.hidden else 0)
    if explorer.n_models * (inputs**2 if kind.exact else inputs) > 2 * MAX_EXACT_NUMBERS:
        raise DataError("its explorer needs more memory than an agent may have")
    expected = growth.shapes(
        lambda d, k: model._start(d, k, kind), model.n_features, model.n_actions
    )
    expected["optimism"] = (model.n_actions,)
    for path, array in arrays.items():
        if path not in expected:
            raise DataError(f"an array {shown(path)} that its explorer does not have")
        if array.shape != expected[path]:
            raise DataError(f"{path} is of shape {array.shape} where {expected[path]} belongs")
    size = sum(math.prod(shape) for shape in expected.values())
    if size > MOST_ABSENT * sum(array.size for array in arrays.values()) + 2**17:
        raise DataError("most of its arrays are missing")


def read_settings(model: "Model", fresh: Rescaled, given: dict[str, Any]) -> dict[str, float]:
    """The numbers of a state; refuses those that no state could have.

    All but a few are those of a fresh one: what depended on the size at the start, and what another
    version of the explorer had. The explorer's own parameters are what its SPEC says.
    """
    own = growth.settings(fresh)
    read = {path: float.fromhex(read_text(text)) for path, text in given.items()}
    for path, value in read.items():
        if path not in own:
            raise DataError(f"a setting {shown(path)} that its explorer does not have")
        name = path.rpartition(".")[2]
        same = float(own[path]) == value
        other = type(own[path]) is float and not hasattr(model.explorer, name)
        no_budget = model.some_closed and name == "budget" and value == math.inf
        if not (same or (other and 0.0 < value < 1e6) or no_budget):
            raise DataError(f"{path} is {value}")
    return read


def check_numbers(model: "Model") -> None:
    """Refuse numbers by which kernels would reach outside of arrays, or divide by zero."""
    state = model.state
    n = int(state.kept[0])
    rounds = state.rounds[: n if n < N_KEPT else 0]  # once settled they are not looked at again
    fine = 0 <= int(state.learned[0]) <= n <= N_KEPT
    fine = fine and 0 <= int(state.range.set_by[0]) <= n
    fine = fine and bool((rounds[:, 0] >= 1).all() and (rounds[:, 0] <= model.n_learned).all())
    least, below = model.action_bounds
    fine = fine and bool((rounds[:, 1] >= least).all() and (rounds[:, 1] < below).all())
    fine = fine and bool((state.probabilities[: len(rounds)] > 0.0).all())
    inner: Any = state.inner
    if isinstance(inner, Widened):
        columns, used = inner.units.columns, inner.units.used
        fine = fine and bool((columns >= 0).all() and (columns < model.n_features).all())
        fine = fine and bool((used >= 0).all() and (used < len(columns)).all())
    if isinstance(inner, Paired):
        columns = inner.units.columns
        fine = fine and bool((columns >= -1).all() and (columns < model.n_features).all())
    fine = fine and all(getattr(learner, "is_sound", True) for learner in growth.learners(inner))
    if not fine:
        raise DataError("rounds, actions or columns that do not exist")


def fill(targets: Arrays, arrays: Arrays, bounds: dict[str, Within]) -> None:
    """Move arrays into memory of the same names and shapes; what there is none for stays."""
    for path, target in targets.items():
        source = arrays.get(path)
        if source is None:
            continue
        if source.shape != target.shape or source.dtype != target.dtype:
            raise DataError(f"{path} is of type {source.dtype} where {target.dtype} belongs")
        least, most = bounds.get(path, Within())
        if source.dtype.kind == "f" and not ((source >= least) & (source <= most)).all():
            raise DataError(f"{path} holds numbers that no learning leads to")
        target[...] = source
