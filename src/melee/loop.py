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
from melee.compiled import kernel
from melee.distributions import sample
from melee.errors import InputError
from melee.explorers import Explorer, Problem, parse
from melee.explorers.base import DEFAULT_LEARNING_RATE
from melee.explorers.interface import distribution, learn, reveal
from melee.preparation import Prepared, Scaling, all_finite, prepare, scale_row
from melee.rng import ACT, LEARN, check_seed, start_round, stream, uniform
from melee.task import Task


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
    """

    explorer: Explorer
    prepared: Prepared
    seed: int
    actions: Ints
    rewards: Floats
    probabilities: Floats
    seconds: float

    @property
    def mean_reward(self) -> float:
        """The progressive validation return, G in the paper."""
        return float(self.rewards.mean())

    @cached_property
    def curve(self) -> Floats:
        """The learning curve: the mean reward up to each round."""
        return np.cumsum(self.rewards) / np.arange(1, len(self.rewards) + 1)


@kernel
def play(
    explorer: Any,
    scaling: Scaling,
    contexts: Floats,
    reward_table: Floats,
    order: Ints,
    rng: Words,
    actions: Ints,
    rewards: Floats,
    probabilities: Floats,
) -> None:
    """Play the rows named by `order`; overwrites the explorer's state and the last three."""
    pmf = np.empty(reward_table.shape[1])
    x = np.empty(contexts.shape[1] + 1)
    for i in range(order.shape[0]):
        t = i + 1
        row = order[i]
        scale_row(scaling, contexts[row], x)
        start_round(rng, t, ACT)
        distribution(explorer, x, t, rng, pmf)
        action = sample(pmf, uniform(rng))
        actions[i] = action
        rewards[i] = reward_table[row, action]
        probabilities[i] = pmf[action]
        start_round(rng, t, LEARN)
        reveal(explorer, x, t, rng, action, reward_table[row], pmf[action])


@kernel
def act_row(explorer: Any, scaling: Scaling, raw: Floats, t: int, rng: Words, pmf: Floats) -> int:
    """Fill pmf and draw an action for one raw context; -1 if it is not finite."""
    if not all_finite(raw):
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
    """Absorb one round; False, with nothing changed, if the context is not finite."""
    if not all_finite(raw):
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
    """Absorb one simulated round; False, with nothing changed, if the context is not finite."""
    if not all_finite(raw):
        return False
    x = np.empty(raw.shape[0] + 1)
    scale_row(scaling, raw, x)
    start_round(rng, t, LEARN)
    reveal(explorer, x, t, rng, action, rewards, probability)
    return True


def simulate(
    task: Task | Prepared,
    explorer: str | Explorer,
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
    prepared = task if isinstance(task, Prepared) else prepare(task, seed=seed)
    order = prepared.order[:max_rounds]
    problem = Problem(
        n_features=prepared.task.n_features,
        n_actions=prepared.task.n_actions,
        n_rounds=len(order),
        learning_rate=prepared.learning_rate,
    )
    state = chosen.start(problem)
    actions = np.empty(len(order), np.int64)
    rewards, probabilities = np.empty(len(order)), np.empty(len(order))
    began = time.perf_counter()
    play(
        state,
        prepared.scaling,
        prepared.task.contexts,
        prepared.task.rewards,
        order,
        stream(seed, "exploration"),
        actions,
        rewards,
        probabilities,
    )
    seconds = time.perf_counter() - began
    return Run(chosen, prepared, seed, actions, rewards, probabilities, seconds)


class Bandit:
    """An explorer played one row at a time: `act`, then `learn`.

    Numbers in, numbers out, as fast as Python allows. Not for concurrent callers.

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
    scaling, learning_rate
        From a preparation; by default features are used as they come.

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
        explorer: str | Explorer,
        *,
        n_features: int,
        n_actions: int,
        seed: int = 0,
        n_rounds: int | None = None,
        scaling: Scaling | None = None,
        learning_rate: float = DEFAULT_LEARNING_RATE,
    ) -> None:
        if n_features < 1 or n_actions < 2:
            raise InputError(
                f"a bandit of {n_features} features and {n_actions} actions; "
                "expected at least 1 feature and 2 actions"
            )
        self.explorer = parse(explorer)
        self.n_features = n_features
        self.n_actions = n_actions
        self.seed = check_seed(seed)
        self.n_learned = 0
        problem = Problem(n_features, n_actions, n_rounds, learning_rate)
        self._state = self.explorer.start(problem)
        self._scaling = Scaling.identity(n_features) if scaling is None else scaling
        self._rng = stream(seed, "exploration")
        self._raw = np.empty(n_features)
        self._pmf = np.empty(n_actions)

    @classmethod
    def for_prepared(
        cls, prepared: Prepared, explorer: str | Explorer, *, seed: int = 0
    ) -> "Bandit":
        """A bandit that stands where `simulate` would start; it takes the task's raw contexts."""
        return cls(
            explorer,
            n_features=prepared.task.n_features,
            n_actions=prepared.task.n_actions,
            seed=seed,
            n_rounds=prepared.n_rounds,
            scaling=prepared.scaling,
            learning_rate=prepared.learning_rate,
        )

    def act(self, x: npt.ArrayLike) -> Decision:
        """Choose an action for a context."""
        self._take(x)
        action = act_row(
            self._state, self._scaling, self._raw, self.n_learned + 1, self._rng, self._pmf
        )
        if action < 0:
            raise self._not_finite()
        return Decision(action, float(self._pmf[action]))

    def pmf(self, x: npt.ArrayLike) -> Floats:
        """The probability of every action in a context; draws nothing, changes nothing."""
        self.act(x)
        return self._pmf.copy()

    def learn(self, x: npt.ArrayLike, action: int, reward: float, probability: float) -> None:
        """Absorb one round: the action taken for x, its reward, its logged probability."""
        self._check(action, probability)
        if not 0.0 <= reward <= 1.0:
            raise InputError(f"reward is {reward!r}; expected a number in [0, 1]: scale it first")
        self._take(x)
        if not learn_row(
            self._state,
            self._scaling,
            self._raw,
            self.n_learned + 1,
            self._rng,
            action,
            float(reward),
            float(probability),
        ):
            raise self._not_finite()
        self.n_learned += 1

    def reveal(
        self, x: npt.ArrayLike, action: int, rewards: npt.ArrayLike, probability: float
    ) -> None:
        """Absorb one simulated round, for which the reward of every action is known.

        Bandits look at the chosen action's alone; `full-information` learns from all.
        """
        self._check(action, probability)
        table = np.array(rewards, dtype=np.float64)
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
            raise self._not_finite()
        self.n_learned += 1

    def _check(self, action: int, probability: float) -> None:
        if not isinstance(action, int | np.integer) or not 0 <= action < self.n_actions:
            raise InputError(
                f"action {action!r} does not exist: "
                f"there are {self.n_actions} actions, 0 to {self.n_actions - 1}"
            )
        if not 0.0 < probability <= 1.0:
            raise InputError(
                f"probability is {probability!r}; expected a number in (0, 1], "
                "the one that was logged when the action was chosen"
            )

    def _take(self, x: npt.ArrayLike) -> None:
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

    def _not_finite(self) -> InputError:
        index = int(np.flatnonzero(~np.isfinite(self._raw))[0])
        return InputError(
            f"the context holds {self._raw[index]} at position {index}; "
            "expected finite numbers: fill missing values first"
        )
