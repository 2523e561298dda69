"""Episodes: whole runs of `melee` on tasks of a family, from which its training learns.

A family is a function from a seed to a `Task`. `both` is the one that the shipped policy was
trained on: of two seeds one gives a task of `lifelike`, tables of labels, and one a task of
`production`, uses with noisy rewards. `package.module:function` names any other that can be
imported, so that other processes and machines find it too. Seeds are below 2⁴², more than 32 bits:
`numpy.random.default_rng` takes them.

An episode counts by its share, from uniform choice (0) to the best (1), so that every task counts
alike, whatever its rewards and its length.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from melee import loop
from melee.arrays import Floats, Ints, Words
from melee.datasets.lifelike import lifelike
from melee.datasets.production import production
from melee.errors import InputError
from melee.explorers.melee import Melee, MeleeState, Policy, own_state
from melee.loop import problem_of, scaling_for
from melee.preparation import N_LABELLED, Prepared, prepare
from melee.rng import stream
from melee.shares import share
from melee.task import Task

Family = Callable[[int], Task]

LONGEST = 40_000
"""Rows of the longest noisy tasks: what pays within 3,000 rounds is not what pays later."""
MAX_WORK = 2.4e8
"""Episodes end when n·(5·D² + 4·K·D) reaches this: the few tasks with many actions *and* many
inputs would take most of the time."""


def _lifelike(seed: int) -> Task:
    return lifelike(seed=seed)


def _production(seed: int) -> Task:
    return production(seed=seed, max_rows=LONGEST)


def _both(seed: int) -> Task:
    return _production(seed // 2) if seed % 2 else _lifelike(seed // 2)


FAMILIES: dict[str, Family] = {"both": _both, "lifelike": _lifelike, "production": _production}


def find_family(name: str) -> Family:
    """The family of that name.

    >>> find_family("lifelike")(3).n_actions >= 2
    True
    """
    if name in FAMILIES:
        return FAMILIES[name]
    module, colon, function = name.partition(":")
    try:
        found: Family = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(
            f"family '{name}' cannot be imported ({error}); expected {', '.join(FAMILIES)}, or "
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
    work = 5 * width**2 + 4 * task.n_actions * width
    return prepare(task, seed=seed, max_rounds=int(min(max(MAX_WORK / work, 200), task.n_rows)))


def start(
    explorer: Melee, policy: Policy, prepared: Prepared, budget: float = np.inf
) -> tuple[Any, MeleeState]:
    """A fresh state for the loop, and the part of it that is `melee`'s own."""
    problem = problem_of(prepared, prepared.n_rounds)
    state = explorer.behind(problem, lambda p: explorer.start_with(policy, p, budget))
    return state, own_state(state)


def play_rows(
    state: Any, explorer: Melee, prepared: Prepared, first: int, stop: int, rng: Words
) -> Ints:
    """Play the rounds after `first` up to `stop`: their actions. Overwrites the state."""
    rows = prepared.order[first:stop]
    scaling = scaling_for(explorer, prepared)
    return loop.play_rows(state, scaling, prepared.task, rows, first, rng).actions


def run(state: Any, explorer: Melee, prepared: Prepared, seed: int) -> float:
    """Play an episode from its start: its share. Overwrites the state.

    Without expected rewards those of the rows take their place.
    """
    actions = play_rows(state, explorer, prepared, 0, prepared.n_rounds, stream(seed, "episode"))
    task = prepared.task
    rewards = task.rewards if task.expected is None else task.expected
    value = share(rewards[prepared.order], actions)
    return 0.0 if np.isnan(value) else value


def shares(job: tuple[str, int, Melee, Sequence[Policy]]) -> Floats:
    """The share of each policy in the episode of that seed, same luck for all."""
    family, seed, explorer, policies = job
    prepared = episode(family, seed, explorer)
    return np.array(
        [run(start(explorer, policy, prepared)[0], explorer, prepared, seed) for policy in policies]
    )
