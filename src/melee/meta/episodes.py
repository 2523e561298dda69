"""Episodes: whole runs of `melee` on tasks of a family, from which its training learns.

A family is a function from a seed to a `Task`. `lifelike` is the one that the shipped policy was
trained on; `package.module:function` names any other that can be imported, so that other processes
and machines find it too. Seeds are below 2⁴², more than 32 bits: `numpy.random.default_rng` takes
them.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from melee import loop
from melee.arrays import Floats, Words
from melee.datasets.lifelike import lifelike
from melee.errors import InputError
from melee.explorers.melee import Melee, MeleeState, Network, own_state
from melee.loop import problem_of
from melee.preparation import N_LABELLED, Prepared, prepare
from melee.rng import stream
from melee.task import Task

Family = Callable[[int], Task]

MAX_WORK = 1.5e8
"""Episodes end when n·K·D² reaches this: the few tasks with many actions *and* many inputs would
take most of the time."""


def _lifelike(seed: int) -> Task:
    return lifelike(seed=seed)


def find_family(name: str) -> Family:
    """The family of that name.

    >>> find_family("lifelike")(3).n_actions >= 2
    True
    """
    if name == "lifelike":
        return _lifelike
    module, colon, function = name.partition(":")
    try:
        found: Family = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(
            f"family '{name}' cannot be imported ({error}); expected 'lifelike', or "
            "'package.module:function' with a function from a seed to a Task"
        ) from None
    if not colon or not callable(found):
        raise InputError(f"family '{name}' is not a function; expected 'package.module:function'")
    return found


def episode(family: str, seed: int, explorer: Melee) -> Prepared:
    """A task of the family, prepared, and no longer than it is worth."""
    task = find_family(family)(seed)
    if not isinstance(task, Task):
        raise InputError(
            f"family '{family}' made {type(task).__name__} of seed {seed}; expected a Task"
        )
    if task.n_rows <= N_LABELLED:
        raise InputError(
            f"family '{family}': the task of seed {seed} has {task.n_rows} rows; "
            f"expected more than the {N_LABELLED} that are set aside for its scaling"
        )
    width = task.n_features + explorer.hidden + 1
    rounds = int(min(max(MAX_WORK / (task.n_actions * width**2), 200), task.n_rows))
    return prepare(task, seed=seed, max_rounds=rounds)


def start(
    explorer: Melee, network: Network, prepared: Prepared, budget: float = np.inf
) -> tuple[Any, MeleeState]:
    """A fresh state for the loop, and the part of it that is `melee`'s own."""
    problem = problem_of(prepared, prepared.n_rounds)
    state = explorer.behind(problem, lambda p: explorer.start_with(network, p, budget))
    return state, own_state(state)


def play_rows(state: Any, prepared: Prepared, first: int, stop: int, rng: Words) -> Floats:
    """Play the rounds after `first` up to `stop`: their rewards. Overwrites the state."""
    rows = prepared.order[first:stop]
    return loop.play_rows(state, prepared.scaling, prepared.task, rows, first, rng).rewards


def run(state: Any, prepared: Prepared, seed: int) -> Floats:
    """Play an episode from its start: the reward of every round. Overwrites the state."""
    return play_rows(state, prepared, 0, prepared.n_rounds, stream(seed, "episode"))


def returns(job: tuple[str, int, Melee, Sequence[Network]]) -> Floats:
    """The mean reward of each network in the episode of that seed, same luck for all."""
    family, seed, explorer, networks = job
    prepared = episode(family, seed, explorer)
    return np.array(
        [run(start(explorer, one, prepared)[0], prepared, seed).mean() for one in networks]
    )
