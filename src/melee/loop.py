"""The loop: one compiled pass over a task, and the same steps for callers that bring their rows.

`simulate` plays a whole task in one call of `play`. A `Bandit` and an `Agent` play rows whenever
their caller has some, through `act_rows` and `learn_rows`. All go through the same kernels in the
same order with the same random numbers, so they make the same decisions.
"""

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints, Words
from melee.compiled import kernel, machine_code, prefetch_row
from melee.distributions import mix_uniform, sample
from melee.errors import InputError, whole_number
from melee.explorers import Explorer, Problem, parse
from melee.explorers.candidates import Pairs, put_together
from melee.explorers.interface import distribution, learn, reveal
from melee.learners.offers import choice
from melee.preparation import Prepared, prepare
from melee.rng import ACT, LEARN, check_seed, start_round, stream, uniform
from melee.scaling import Scaling, scale_row, usable
from melee.shares import share
from melee.task import Task


@dataclass(frozen=True, eq=False)
class Run:
    """One explorer's way through one task.

    Attributes
    ----------
    explorer, prepared, seed
        What was run: the explorer, the task as prepared, the seed of the explorer's randomness.
    actions, rewards, probabilities
        One entry per round.
    seconds
        Time spent in the compiled pass; compiling is not counted.
    diagnostics
        What the explorer has to say about itself, such as how often `melee`'s guard took over.
    """

    explorer: Explorer
    prepared: Prepared
    seed: int
    actions: Ints
    rewards: Floats
    probabilities: Floats
    seconds: float
    diagnostics: dict[str, float]

    @property
    def mean_reward(self) -> float:
        """The progressive validation return, G in the paper."""
        return float(self.rewards.mean())

    @cached_property
    def curve(self) -> Floats:
        """The learning curve: the mean reward up to each round."""
        return np.cumsum(self.rewards) / np.arange(1, len(self.rewards) + 1)

    @cached_property
    def expected_reward(self) -> float | None:
        """The mean of the expected rewards of what was played: without luck; None if unknown."""
        expected = self.prepared.task.expected
        if expected is None:
            return None
        return float(expected[self.prepared.order[: len(self.actions)], self.actions].mean())

    @cached_property
    def share(self) -> float | None:
        """The share of the way from uniform choice to the best one, by expected rewards.

        None where these are not known, or where no action is better than another.
        """
        task, rows = self.prepared.task, self.prepared.order[: len(self.actions)]
        if task.expected is None:
            return None
        can = None if task.open is None else task.open[rows]
        found = share(task.expected[rows], self.actions, can)
        return None if math.isnan(found) else found


AHEAD = 8
"""How many rounds before its own a row is fetched: random rows miss the processor's caches."""


@kernel
def take(scaling: Scaling, raw: Floats, x: Floats) -> bool:
    """Overwrite x with the inputs of a raw context; False if it is not usable."""
    if not usable(raw):
        return False
    scale_row(scaling, raw, x)
    return True


@kernel
def act(explorer: Any, x: Any, t: int, draw: int, floor: float, rng: Words, pmf: Floats) -> int:
    """Fill pmf and draw an action.

    `draw` says where in the stream the round's random numbers are, and `floor` how much
    uniform exploration to mix in.
    """
    start_round(rng, draw, ACT)
    distribution(explorer, x, t, rng, pmf)
    mix_uniform(pmf, floor)
    return sample(pmf, uniform(rng))


@kernel
def play(
    explorer: Any,
    scaling: Scaling,
    contexts: Floats,
    reward_table: Floats,
    order: Ints,
    first: int,
    rng: Words,
    x: Floats,
    pmf: Floats,
    revealed: Floats,
    actions: Ints,
    rewards: Floats,
    probabilities: Floats,
) -> None:
    """Play the rows named by `order` after `first` rounds played before.

    Overwrites the explorer's state, the scratch x (d + 1), pmf (K) and revealed (K), and the last
    three.
    """
    for i in range(order.shape[0]):
        t = first + i + 1
        row = order[i]
        if i + AHEAD < order.shape[0]:
            prefetch_row(contexts, order[i + AHEAD])
            prefetch_row(reward_table, order[i + AHEAD])
        scale_row(scaling, contexts[row], x)
        for a in range(pmf.shape[0]):
            revealed[a] = reward_table[row, a]
        action = act(explorer, x, t, t, 0.0, rng, pmf)
        actions[i] = action
        rewards[i] = revealed[action]
        probabilities[i] = pmf[action]
        start_round(rng, t, LEARN)
        reveal(explorer, x, t, rng, action, revealed, pmf[action])


@kernel
def act_rows(
    explorer: Any,
    scaling: Scaling,
    raw: Floats,
    x: Any,
    t: int,
    draws: Ints,
    floor: float,
    rng: Words,
    pmfs: Floats,
    actions: Ints,
) -> None:
    """Act on contexts (n, d) without learning in between; fills pmfs (n, K) and actions.

    The action of a context that is not usable is -1. x is the scratch of a context (d + 1), or
    `OpenActions` in it: then K of pmfs is how many are open. Overwrites the scratch.
    """
    for i in range(raw.shape[0]):
        actions[i] = -1
        if take(scaling, raw[i], choice(x, 0).x):  # all choices have it in common
            actions[i] = act(explorer, x, t, draws[i], floor, rng, pmfs[i])


@kernel
def act_pairs(
    explorer: Any, offered: Pairs, t: int, draw: int, floor: float, rng: Words, pmf: Floats
) -> int:
    """Act on candidates; fills pmf (n,) and gives the number of the one drawn, whose pair is left.

    -1, with nothing filled, if a number of the context or of a candidate is not usable.
    """
    fine = usable(offered.context)
    for a in range(pmf.shape[0]):
        fine &= usable(offered.table[a])
    if not fine:
        return -1
    action = act(explorer, offered, t, draw, floor, rng, pmf)
    put_together(offered, action)
    return action


@kernel
def learn_rows(
    explorer: Any,
    scaling: Scaling,
    raw: Floats,
    x: Floats,
    first: int,
    rng: Words,
    actions: Ints,
    rewards: Floats,
    probabilities: Floats,
) -> bool:
    """Absorb rounds, in order, after `first` rounds learned before.

    Stops at a context that is not usable, and is False then. Overwrites the scratch x (d + 1).
    """
    for i in range(raw.shape[0]):
        if not take(scaling, raw[i], x):
            return False
        t = first + i + 1
        start_round(rng, t, LEARN)
        learn(explorer, x, t, rng, actions[i], rewards[i], probabilities[i])
    return True


@kernel
def reveal_row(
    explorer: Any,
    scaling: Scaling,
    raw: Floats,
    x: Floats,
    t: int,
    rng: Words,
    action: int,
    rewards: Floats,
    probability: float,
) -> bool:
    """Absorb one simulated round; False, with nothing changed, if the context is not usable."""
    if not take(scaling, raw, x):
        return False
    start_round(rng, t, LEARN)
    reveal(explorer, x, t, rng, action, rewards, probability)
    return True


class Played(NamedTuple):
    """What was played, one entry per round, and the seconds that the pass took."""

    actions: Ints
    rewards: Floats
    probabilities: Floats
    seconds: float


def play_rows(
    state: Any, scaling: Scaling, task: Task, order: Ints, first: int, rng: Words
) -> Played:
    """Play these rows of a task in one compiled pass; overwrites the state and the stream."""
    n, k = len(order), task.n_actions
    actions = np.empty(n, np.int64)
    rewards, probabilities = np.empty(n), np.empty(n)
    x, pmf, revealed = np.empty(task.n_features + 1), np.empty(k), np.empty(k)
    played = (state, scaling, task.contexts, task.rewards, order, first, rng)
    arguments = (*played, x, pmf, revealed, actions, rewards, probabilities)
    run = machine_code(play, *arguments)
    began = time.perf_counter()
    run(*arguments)
    return Played(actions, rewards, probabilities, time.perf_counter() - began)


def act_on(state: Any, scaling: Scaling, raw: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """Fill pmf for one raw context (d,), as a pass would in its round t."""
    x, action = np.empty(len(raw) + 1), np.empty(1, np.int64)
    head = (state, scaling, raw[None], x, t, np.array([t]), 0.0, rng)
    arguments = (*head, pmf[None], action)
    machine_code(act_rows, *arguments)(*arguments)


def learn_from(
    state: Any, scaling: Scaling, raw: Floats, t: int, rng: Words, action: int, reward: float
) -> None:
    """Absorb one round, of a raw context (d,), whose action was certain."""
    x = np.empty(len(raw) + 1)
    head = (state, scaling, raw[None], x, t - 1, rng)
    arguments = (*head, np.array([action]), np.array([reward]), np.ones(1))
    machine_code(learn_rows, *arguments)(*arguments)


def problem_of(prepared: Prepared, n_rounds: int) -> Problem:
    """What an explorer may know of a prepared task before its first round."""
    task, rows = prepared.task, prepared.labelled
    labelled = (prepared.inputs(rows), task.rewards[rows]) if len(rows) else None
    return Problem(
        task.n_features,
        task.n_actions,
        n_rounds,
        prepared.learning_rate,
        labelled,
        reward_range=task.reward_range,
    )


def scaling_for(explorer: Explorer, prepared: Prepared) -> Scaling:
    """The task's scaling, or none for an explorer that wants contexts as they come."""
    if explorer.scales_itself:
        return Scaling.identity(prepared.task.n_features)
    return prepared.scaling


def simulate(
    task: Task | Prepared,
    explorer: str | Explorer = "melee",
    *,
    seed: int = 0,
    max_rounds: int | None = None,
) -> Run:
    """Play a task from start to end with an explorer.

    Parameters
    ----------
    task
        A task, which is prepared with `seed` first; or a prepared one, so that several
        explorers play the same rows in the same order. Tasks whose actions come and go, or whose
        rewards come late, are for `rehearse`.
    explorer
        An explorer or its SPEC string.
    seed
        Of the explorer's randomness.
    max_rounds
        Stop after this many rounds.

    Examples
    --------
    >>> from melee.datasets import rectangles
    >>> run = simulate(rectangles(n_rows=500, bayes_error=0.0, seed=0), "epsilon-greedy")
    >>> run.mean_reward > 0.9
    True
    """
    chosen = parse(explorer)
    check_seed(seed)
    if max_rounds is not None:
        max_rounds = whole_number("max_rounds", max_rounds, 1)
    prepared = task if isinstance(task, Prepared) else prepare(task, seed=seed)
    if prepared.task.live:
        raise InputError(
            f"task {prepared.task.name}: its actions come and go or have features, or its rewards "
            "come late, and a simulation plays every row with all actions and at once; use "
            "melee.rehearse"
        )
    order = prepared.order[:max_rounds]
    state = chosen.begin(problem_of(prepared, len(order)))
    rng = stream(seed, "exploration", prepared.task.number)
    played = play_rows(state, scaling_for(chosen, prepared), prepared.task, order, 0, rng)
    return Run(chosen, prepared, seed, *played, chosen.diagnostics(state))
