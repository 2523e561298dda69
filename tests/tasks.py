"""Small tasks, and what tests do with a bandit again and again."""

import numpy as np

from melee.bandit import Bandit
from melee.preparation import prepare
from melee.scaling import scale_row
from melee.states import arrays_of
from melee.task import Task
from melee.testing.checks import blobs, graded
from melee.testing.explorers import absorb

__all__ = ["absorb", "arrays_of", "blobs", "graded"]


def copies_of(state):
    return [array.copy() for array in arrays_of(state)]


def restore(state, copies):
    for array, copy in zip(arrays_of(state), copies, strict=True):
        array[...] = copy


def trained(spec, *, n_rounds=40, n_actions=4, n_features=3, seed=0):
    """A bandit that has been through some rounds of a task, and a context to ask it about."""
    task = graded(n_rounds + 31, n_actions=n_actions, n_features=n_features, seed=seed)
    prepared = prepare(task, seed=seed)
    bandit = Bandit.for_prepared(prepared, spec, seed=seed)
    for row in prepared.order[:n_rounds]:
        x = task.contexts[row]
        action, probability = bandit.act(x)
        absorb(bandit, x, action, task.rewards[row], probability)
    return bandit, task.contexts[prepared.order[-1]]


def inputs(bandit: Bandit, x):
    """What the bandit's learner sees of a context."""
    scaled = np.empty(len(x) + 1)
    scale_row(bandit._scaling, np.array(x), scaled)
    return scaled


def small_task(seed: int) -> Task:
    """A family of small tasks of two to four actions, to train on."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    contexts = rng.normal(size=(90, 3))
    labels = np.argmax(contexts @ rng.normal(size=(3, k)), axis=1)
    return Task(f"small-{seed}", contexts, np.eye(k)[labels])


def too_short(seed: int) -> Task:
    """A family whose tasks have fewer rows than are set aside."""
    task = small_task(seed)
    return Task(task.name, task.contexts[:20], task.rewards[:20])


def not_a_task(seed: int) -> int:
    """A function that is no family."""
    return seed
