"""Small tasks, and what tests do with a bandit again and again."""

import numpy as np

from melee.bandit import Bandit
from melee.compiled.kernels import IMPLEMENTATIONS
from melee.explorers.interface import reveal
from melee.preparation import prepare
from melee.scaling import scale_row
from melee.task import Task


def blobs(n_rows, *, n_actions, n_features, seed, distance=6.0):
    """One round blob per action, centres well apart; reward 1 for the blob's own action."""
    rng = np.random.default_rng(seed)
    if n_features == 1:
        centres = distance * np.arange(n_actions)[:, None]
    else:  # on a circle in the first two, so that one linear model per action is enough
        angles = np.arange(n_actions) * 2 * np.pi / n_actions
        centres = np.zeros((n_actions, n_features))
        centres[:, :2] = distance * np.column_stack([np.cos(angles), np.sin(angles)])
    labels = np.concatenate([np.arange(n_actions), rng.integers(n_actions, size=n_rows)])[:n_rows]
    rng.shuffle(labels)
    contexts = centres[labels] + rng.normal(size=(n_rows, n_features))
    return Task("blobs", contexts, np.eye(n_actions)[labels])


def graded(n_rows, *, n_actions, n_features, seed):
    """Rewards between 0 and 1 from a random linear model, features of very unlike scales."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_features))
    signal = x @ rng.normal(size=(n_features, n_actions)) + rng.normal(size=(n_rows, n_actions))
    return Task("graded", x * 10.0 ** rng.integers(-3, 4, n_features), 1 / (1 + np.exp(-signal)))


def arrays_of(state):
    """All arrays of a state, however deep."""
    if isinstance(state, np.ndarray):
        return [state]
    if isinstance(state, tuple):
        return [array for part in state for array in arrays_of(part)]
    return []


def copies_of(state):
    return [array.copy() for array in arrays_of(state)]


def restore(state, copies):
    for array, copy in zip(arrays_of(state), copies, strict=True):
        array[...] = copy


def sees_every_reward(bandit):
    """Whether this explorer has a way of its own to learn from all actions' rewards."""
    return type(bandit._state) in IMPLEMENTATIONS[reveal]


def absorb(bandit: Bandit, x, action, rewards, probability):
    """One simulated round, through `reveal` only where the explorer looks at all rewards."""
    if sees_every_reward(bandit):
        bandit.reveal(x, action, rewards, probability)
    else:
        bandit.learn(x, action, float(rewards[action]), probability)


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


def not_a_task(seed: int) -> int:
    """A function that is no family."""
    return seed
