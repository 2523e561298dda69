"""The loop: one compiled pass over a task, and the same steps one row at a time.

`simulate` plays a whole task in one call of `play`. `Bandit` plays a row whenever its caller
has one, through `act_row` and `learn_row`. Both go through the same kernels in the same order
with the same random numbers, so they make the same decisions.
"""

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats, Ints, Words
from melee.compiled import kernel, prefetch_row, resolved
from melee.distributions import sample
from melee.errors import InputError, whole_number
from melee.explorers import Explorer, Problem, parse
from melee.explorers.interface import distribution, learn, reveal
from melee.preparation import Prepared, prepare
from melee.rng import ACT, LEARN, check_seed, start_round, stream, uniform
from melee.scaling import Scaling, scale_row, usable
from melee.task import LARGEST, Task


class Decision(NamedTuple):
    """An action and the probability with which it was chosen."""

    action: int
    probability: float


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
        Time spent in the compiled pass.
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


AHEAD = 8
"""How many rounds before its own a row is fetched: random rows miss the processor's caches."""


@kernel
def play(
    explorer: Any,
    scaling: Scaling,
    contexts: Floats,
    reward_table: Floats,
    order: Ints,
    first: int,
    rng: Words,
    actions: Ints,
    rewards: Floats,
    probabilities: Floats,
) -> None:
    """Play the rows named by `order` after `first` rounds played before.

    Overwrites the explorer's state and the last three.
    """
    pmf = np.empty(reward_table.shape[1])
    revealed = np.empty(reward_table.shape[1])
    x = np.empty(contexts.shape[1] + 1)
    for i in range(order.shape[0]):
        t = first + i + 1
        row = order[i]
        if i + AHEAD < order.shape[0]:
            prefetch_row(contexts, order[i + AHEAD])
            prefetch_row(reward_table, order[i + AHEAD])
        scale_row(scaling, contexts[row], x)
        for a in range(pmf.shape[0]):
            revealed[a] = reward_table[row, a]
        start_round(rng, t, ACT)
        distribution(explorer, x, t, rng, pmf)
        action = sample(pmf, uniform(rng))
        actions[i] = action
        rewards[i] = revealed[action]
        probabilities[i] = pmf[action]
        start_round(rng, t, LEARN)
        reveal(explorer, x, t, rng, action, revealed, pmf[action])


@kernel
def act_row(explorer: Any, scaling: Scaling, raw: Floats, t: int, rng: Words, pmf: Floats) -> int:
    """Fill pmf and draw an action for one raw context; -1 if it is not usable."""
    if not usable(raw):
        return -1
    x = np.empty(raw.shape[0] + 1)
    scale_row(scaling, raw, x)
    start_round(rng, t, ACT)
    distribution(explorer, x, t, rng, pmf)
    return sample(pmf, uniform(rng))


@kernel
def learn_row(
    explorer: Any,
    scaling: Scaling,
    raw: Floats,
    t: int,
    rng: Words,
    action: int,
    reward: float,
    probability: float,
) -> bool:
    """Absorb one round; False, with nothing changed, if the context is not usable."""
    if not usable(raw):
        return False
    x = np.empty(raw.shape[0] + 1)
    scale_row(scaling, raw, x)
    start_round(rng, t, LEARN)
    learn(explorer, x, t, rng, action, reward, probability)
    return True


@kernel
def reveal_row(
    explorer: Any,
    scaling: Scaling,
    raw: Floats,
    t: int,
    rng: Words,
    action: int,
    rewards: Floats,
    probability: float,
) -> bool:
    """Absorb one simulated round; False, with nothing changed, if the context is not usable."""
    if not usable(raw):
        return False
    x = np.empty(raw.shape[0] + 1)
    scale_row(scaling, raw, x)
    start_round(rng, t, LEARN)
    reveal(explorer, x, t, rng, action, rewards, probability)
    return True


def problem_of(prepared: Prepared, n_rounds: int) -> Problem:
    """What an explorer may know of a prepared task before its first round."""
    task, rows = prepared.task, prepared.labelled
    labelled = (prepared.inputs(rows), task.rewards[rows]) if len(rows) else None
    return Problem(task.n_features, task.n_actions, n_rounds, prepared.learning_rate, labelled)


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
        explorers play the same rows in the same order.
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
    order = prepared.order[:max_rounds]
    state = chosen.begin(problem_of(prepared, len(order)))
    actions = np.empty(len(order), np.int64)
    rewards, probabilities = np.empty(len(order)), np.empty(len(order))
    began = time.perf_counter()
    play(
        state,
        scaling_for(chosen, prepared),
        prepared.task.contexts,
        prepared.task.rewards,
        order,
        0,
        stream(seed, "exploration", prepared.task.number),
        actions,
        rewards,
        probabilities,
    )
    seconds = time.perf_counter() - began
    said = chosen.diagnostics(state)
    return Run(chosen, prepared, seed, actions, rewards, probabilities, seconds, said)


class Bandit:
    """An explorer played one row at a time: `act`, then `learn`.

    Numbers in, numbers out, as fast as Python allows; features are used as they come, and
    `for_prepared` takes a task's scaling. Not for concurrent callers.

    Parameters
    ----------
    explorer
        An explorer or its SPEC string.
    n_features, n_actions
        The numbers in a context, and the actions, 0 to n_actions - 1.
    seed
        Of the explorer's randomness.
    n_rounds
        The number of rounds to come, for explorers that plan by it.

    Examples
    --------
    >>> bandit = Bandit("epsilon-greedy", n_features=2, n_actions=3)
    >>> action, probability = bandit.act([0.5, -1.0])
    >>> bandit.learn([0.5, -1.0], action, reward=1.0, probability=probability)
    >>> bandit.act([0.5, -1.0]) == (action, 1.0)
    True
    """

    def __init__(
        self,
        explorer: str | Explorer = "melee:cold=true",
        *,
        n_features: int,
        n_actions: int,
        seed: int = 0,
        n_rounds: int | None = None,
    ) -> None:
        for value, least in [(n_features, 1), (n_actions, 2)]:
            if not isinstance(value, int) or value < least:
                raise InputError(
                    f"a bandit of {n_features} features and {n_actions} actions; "
                    "expected at least 1 feature and 2 actions"
                )
        if n_rounds is not None:
            n_rounds = whole_number("n_rounds", n_rounds, 1)
        problem = Problem(n_features, n_actions, n_rounds)
        self._start(explorer, problem, Scaling.identity(n_features), seed)

    def _start(
        self,
        explorer: str | Explorer,
        problem: Problem,
        scaling: Scaling,
        seed: int,
        *names: int,
    ) -> None:
        self.explorer = parse(explorer)
        self.n_features, self.n_actions = problem.n_features, problem.n_actions
        self.seed = check_seed(seed)
        self.n_learned = 0
        self._state = self.explorer.begin(problem)
        self._scaling = scaling
        self._rng = stream(seed, "exploration", *names)
        self._raw = np.empty(self.n_features)
        self._pmf = np.empty(self.n_actions)
        shared = (self._state, self._scaling, self._raw, 1, self._rng)
        self._act_row = resolved(act_row, *shared, self._pmf)
        self._learn_row = resolved(learn_row, *shared, 0, 1.0, 1.0)

    @classmethod
    def for_prepared(
        cls, prepared: Prepared, explorer: str | Explorer = "melee", *, seed: int = 0
    ) -> "Bandit":
        """A bandit that stands where `simulate` would start; it takes the task's raw contexts."""
        bandit = cls.__new__(cls)
        problem = problem_of(prepared, prepared.n_rounds)
        chosen = parse(explorer)
        scaling = scaling_for(chosen, prepared)
        bandit._start(chosen, problem, scaling, seed, prepared.task.number)
        return bandit

    def act(self, x: npt.ArrayLike) -> Decision:
        """Choose an action for a context."""
        self._take(x)
        action = self._act_row(
            self._state, self._scaling, self._raw, self.n_learned + 1, self._rng, self._pmf
        )
        if action < 0:
            raise self._unusable()
        return Decision(action, self._pmf.item(action))

    @property
    def diagnostics(self) -> dict[str, float]:
        """What the explorer has to say about itself, as `Run.diagnostics`."""
        return self.explorer.diagnostics(self._state)

    def pmf(self, x: npt.ArrayLike) -> Floats:
        """The probability of every action in a context; draws nothing, changes nothing."""
        self.act(x)
        return self._pmf.copy()

    def learn(self, x: npt.ArrayLike, action: int, reward: float, probability: float) -> None:
        """Absorb one round: the action taken for x, its reward, its logged probability."""
        self._check(action, probability)
        if not _within_unit(reward):
            raise InputError(f"reward is {reward!r}; expected a number in [0, 1]: scale it first")
        self._take(x)
        if not self._learn_row(
            self._state,
            self._scaling,
            self._raw,
            self.n_learned + 1,
            self._rng,
            int(action),
            float(reward),
            float(probability),
        ):
            raise self._unusable()
        self.n_learned += 1

    def reveal(
        self, x: npt.ArrayLike, action: int, rewards: npt.ArrayLike, probability: float
    ) -> None:
        """Absorb one simulated round, for which the reward of every action is known.

        Bandits look at the chosen action's alone; `full-information` learns from all.
        """
        self._check(action, probability)
        try:
            table = np.array(rewards, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.array(np.nan)
        if table.shape != (self.n_actions,) or not ((table >= 0.0) & (table <= 1.0)).all():
            raise InputError(
                f"rewards are {rewards!r}; expected {self.n_actions} numbers in [0, 1]"
            )
        self._take(x)
        if not reveal_row(
            self._state,
            self._scaling,
            self._raw,
            self.n_learned + 1,
            self._rng,
            action,
            table,
            float(probability),
        ):
            raise self._unusable()
        self.n_learned += 1

    def _check(self, action: int, probability: float) -> None:
        is_whole = isinstance(action, int | np.integer) and not isinstance(action, bool)
        if not is_whole or not 0 <= action < self.n_actions:
            raise InputError(
                f"action {action!r} does not exist: "
                f"there are {self.n_actions} actions, 0 to {self.n_actions - 1}"
            )
        if not _within_unit(probability) or probability == 0.0:
            raise InputError(
                f"probability is {probability!r}; expected a number in (0, 1], "
                "the one that was logged when the action was chosen"
            )

    def _take(self, x: npt.ArrayLike) -> None:
        if type(x) is np.ndarray and x.dtype == np.float64 and x.shape == self._raw.shape:
            self._raw[:] = x
            return
        try:
            row = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError):
            row = None
        if row is None or row.shape != (self.n_features,):
            shape = "not numbers" if row is None else f"of shape {row.shape}"
            raise InputError(
                f"the context is {shape}; expected {self.n_features} numbers in one dimension"
            )
        self._raw[:] = row

    def _unusable(self) -> InputError:
        index = int(np.flatnonzero(~(np.abs(self._raw) <= LARGEST))[0])
        return InputError(
            f"the context holds {self._raw[index]} at position {index}; expected finite numbers: "
            "fill missing values, and keep within ±1e100"
        )


def _within_unit(value: Any) -> bool:
    """Whether a value is a number in [0, 1]."""
    try:
        return 0.0 <= float(value) <= 1.0 and not isinstance(value, str)
    except (TypeError, ValueError):
        return False
