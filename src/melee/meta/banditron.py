"""The mistake bound of Banditron and BanditronMELEE, and the edge of π, for a run.

Theorem 3 of the paper: with ‖x‖ ≤ 1, any W* of complexity D = 2‖W*‖² and cumulative hinge loss
L, and μ the exploration mass *per action*,

    E M ≤ L + KμT + 3·max(DΓ/μ, √(DTKΓμ)) + √(DLΓ/μ),

where Γ = mean over t of 1/(1 + K·γ_t), and γ_t is the edge of π: the chance that π's action is
right minus the chance that f's is. With γ_t = 0, as when π returns f's prediction, Γ = 1 and this
is Banditron's own bound. Inputs of another length are brought to 1 by scaling W* up.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from melee.arrays import Floats, Ints, Words
from melee.compiled import entry
from melee.distributions import greedy, sample
from melee.errors import InputError
from melee.explorers import Explorer
from melee.explorers.interface import distribution, learn
from melee.learners.interface import predict_all
from melee.loop import problem_of
from melee.preparation import Prepared
from melee.rng import ACT, LEARN, start_round, stream, uniform


@dataclass(frozen=True, eq=False)
class Trace:
    """A run of Banditron or BanditronMELEE with what is needed for the theorem."""

    mistakes: Floats  # (T,) 1 where the played action earned nothing
    edges: Floats  # (T,) reward of π's action minus reward of f's, in expectation over ties


def trace(prepared: Prepared, explorer: Explorer, *, seed: int = 0) -> Trace:
    """Play a task and note, in every round, what π and f would have earned."""
    rows, task = prepared.order, prepared.task
    state = explorer.start(problem_of(prepared, len(rows)))
    if not hasattr(state.polopt, "choice"):
        raise InputError(f"{explorer.name}: the bound is for banditron and banditron-melee")
    inputs = prepared.inputs(rows)
    rng = stream(seed, "exploration", task.number)
    pmf, predicted = np.empty(task.n_actions), np.empty(task.n_actions)
    mistakes, edges = np.empty(len(rows)), np.empty(len(rows))
    play_and_note(state, inputs, task.rewards[rows], rng, pmf, predicted, mistakes, edges)
    return Trace(mistakes, edges)


@entry
def play_and_note(
    state: Any,
    inputs: Floats,
    reward_table: Floats,
    rng: Words,
    pmf: Floats,
    predicted: Floats,
    mistakes: Floats,
    edges: Floats,
) -> None:
    """Play all rows (n, D). Overwrites the state, the scratch pmf and predicted, the last two."""
    k, mass = pmf.shape[0], state.mu
    for i in range(inputs.shape[0]):
        t, x = i + 1, inputs[i]
        predict_all(state.polopt.learner, x, 0, predicted)
        greedy(predicted)
        start_round(rng, t, ACT)
        distribution(state, x, t, rng, pmf)
        edge = 0.0
        for a in range(k):
            policy = (pmf[a] - mass / k) / (1.0 - mass) if mass < 1.0 else predicted[a]
            edge += (policy - predicted[a]) * reward_table[i, a]
        action = sample(pmf, uniform(rng))
        mistakes[i] = 1.0 - reward_table[i, action]
        edges[i] = edge
        start_round(rng, t, LEARN)
        learn(state, x, t, rng, action, reward_table[i, action], pmf[action])


def gamma(edges: Floats, n_actions: int) -> float:
    """Γ from the edges of several runs, shape (runs, T): their mean over runs stands for γ_t.

    The theorem assumes that edges are not negative in expectation; negative means count as 0.

    >>> gamma(np.zeros((3, 10)), n_actions=2)
    1.0
    """
    expected = np.maximum(np.atleast_2d(edges).mean(axis=0), 0.0)
    return float(np.mean(1.0 / (1.0 + n_actions * expected)))


def hinge_losses(weights: Floats, inputs: Floats, labels: Ints) -> Floats:
    """The multiclass hinge loss of W on every example.

    >>> hinge_losses(np.array([[2.0], [0.0]]), np.array([[1.0], [0.25]]), np.array([0, 0]))
    array([0. , 0.5])
    """
    scores = inputs @ weights.T
    rows = np.arange(len(labels))
    own = scores[rows, labels]
    scores[rows, labels] = -np.inf
    losses: Floats = np.maximum(0.0, 1.0 - own + scores.max(axis=1))
    return losses


def mistake_bound(
    weights: Floats, inputs: Floats, labels: Ints, *, mu: float, gamma: float = 1.0
) -> Floats:
    """The bound on E M after 1, 2, … T rounds for a competitor W*.

    Parameters
    ----------
    weights
        W*, shape (K, D); any will do, the best one gives the tightest bound.
    inputs, labels
        The examples in the order of play, inputs as the learner sees them.
    mu
        Total mass of uniform exploration; the theorem's is this over K.
    gamma
        Γ; 1 for Banditron itself.
    """
    k, per_action = len(weights), mu / len(weights)
    length = float(np.sqrt((inputs**2).sum(axis=1)).max())
    complexity = 2.0 * float((weights**2).sum()) * length**2 * gamma
    loss = np.cumsum(hinge_losses(weights, inputs, labels))
    t = np.arange(1, len(labels) + 1)
    middle = np.maximum(complexity / per_action, np.sqrt(complexity * t * k * per_action))
    bound: Floats = (
        loss + k * per_action * t + 3.0 * middle + np.sqrt(complexity * loss / per_action)
    )
    return bound


def separable_task(
    n_rows: int, *, n_features: int = 5, n_actions: int = 3, margin: float = 0.2, seed: int = 0
) -> tuple[Floats, Ints, Floats]:
    """Inputs in the unit ball, labels and a W* that separates them with margin 1.

    W* is a random matrix scaled so that every kept example's right action leads by at least
    `margin` before scaling; so W*'s hinge loss is 0 and its complexity is known.
    """
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(n_actions, n_features))
    directions /= math.sqrt((directions**2).sum())
    kept: list[Floats] = []
    labels: list[int] = []
    while len(kept) < n_rows:
        x = rng.normal(size=n_features)
        x *= rng.random() ** (1.0 / n_features) / math.sqrt(float(x @ x))
        ranked = np.sort(directions @ x)
        if ranked[-1] - ranked[-2] >= margin:
            kept.append(x)
            labels.append(int(np.argmax(directions @ x)))
    return np.array(kept), np.array(labels), directions / margin
