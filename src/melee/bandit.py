"""An explorer played one row at a time by whoever brings the rows."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats
from melee.checks import RewardRange, check_probability, check_reward, check_reward_range
from melee.compiled import Program, machine_code, program
from melee.errors import InputError, whole_number
from melee.explorers import Explorer, Problem, parse
from melee.loop import act_rows, learn_rows, problem_of, reveal_row, scaling_for
from melee.preparation import Prepared
from melee.rng import check_seed, stream
from melee.scaling import Scaling
from melee.task import LARGEST


class Choice(NamedTuple):
    """An action and the probability with which it was chosen."""

    action: int
    probability: float


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
    reward_range
        The least and the greatest reward there can be; by default rewards are any numbers, and
        their range is found on the way. An explorer that starts warm learns nothing again: declare
        the range where you know it.

    Examples
    --------
    >>> bandit = Bandit("epsilon-greedy", n_features=2, n_actions=3, reward_range=(0, 1))
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
        reward_range: RewardRange = None,
    ) -> None:
        for value, least in [(n_features, 1), (n_actions, 2)]:
            if not isinstance(value, int) or value < least:
                raise InputError(
                    f"a bandit of {n_features} features and {n_actions} actions; "
                    "expected at least 1 feature and 2 actions"
                )
        if n_rounds is not None:
            n_rounds = whole_number("n_rounds", n_rounds, 1)
        declared = check_reward_range(reward_range)
        problem = Problem(n_features, n_actions, n_rounds, reward_range=declared)
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
        self.reward_range = problem.reward_range
        self.seed = check_seed(seed)
        self.n_learned_ = 0
        self._state = self.explorer.begin(problem)
        self._scaling = scaling
        self._rng = stream(seed, "exploration", *names)
        self._rows = np.empty((1, self.n_features))
        self._raw = self._rows[0]
        self._x = np.empty(self.n_features + 1)
        self._pmfs = np.empty((1, self.n_actions))
        self._pmf = self._pmfs[0]
        self._draw, self._action = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._reward, self._probability = np.zeros(1), np.zeros(1)
        shared = (self._state, self._scaling, self._rows, self._x, 1)
        self._act = program(act_rows, *shared, self._draw, 0.0, self._rng, self._pmfs, self._action)
        self._learn = program(
            learn_rows, *shared, self._rng, self._action, self._reward, self._probability
        )

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

    def act(self, x: npt.ArrayLike) -> Choice:
        """Choose an action for a context."""
        self._take(x)
        t = self.n_learned_ + 1
        self._draw[0] = t
        self._act.run(
            self._state,
            self._scaling,
            self._rows,
            self._x,
            t,
            self._draw,
            0.0,
            self._rng,
            self._pmfs,
            self._action,
        )
        action = self._action.item()
        if action < 0:
            raise self._unusable()
        return Choice(action, self._pmf.item(action))

    @property
    def ready(self) -> bool:
        """Whether machine code decides and learns; until then it is interpreted, and slower."""
        return self._act.ready and self._learn.ready

    @property
    def _programs(self) -> list[Program]:
        """What decides and learns."""
        return [self._act, self._learn]

    def wait(self) -> None:
        """Wait until it is ready."""
        for compiled in self._programs:
            compiled.wait()

    def diagnostics(self) -> dict[str, float]:
        """What the explorer has to say about itself, as `Run.diagnostics`."""
        return self.explorer.diagnostics(self._state)

    def pmf(self, x: npt.ArrayLike) -> Floats:
        """The probability of every action in a context; draws nothing, changes nothing."""
        self.act(x)
        pmf: Floats = self._pmf.copy()
        return pmf

    def learn(self, x: npt.ArrayLike, action: int, reward: float, probability: float) -> None:
        """Absorb one round: the action taken for x, its reward, its logged probability."""
        self._check(action, probability)
        reward = check_reward(reward, self.reward_range)
        self._take(x)
        self._action[0], self._reward[0] = action, reward
        self._probability[0] = probability
        if not self._learn.run(
            self._state,
            self._scaling,
            self._rows,
            self._x,
            self.n_learned_,
            self._rng,
            self._action,
            self._reward,
            self._probability,
        ):
            raise self._unusable()
        self.n_learned_ += 1

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
        if table.shape != (self.n_actions,):
            raise InputError(f"rewards are {rewards!r}; expected {self.n_actions} numbers")
        for reward in table.tolist():
            check_reward(reward, self.reward_range)
        self._take(x)
        arguments = (
            self._state,
            self._scaling,
            self._raw,
            self._x,
            self.n_learned_ + 1,
            self._rng,
            int(action),
            table,
            float(probability),
        )
        if not machine_code(reveal_row, *arguments)(*arguments):
            raise self._unusable()
        self.n_learned_ += 1

    def _check(self, action: int, probability: float) -> None:
        is_whole = isinstance(action, int | np.integer) and not isinstance(action, bool)
        if not is_whole or not 0 <= action < self.n_actions:
            raise InputError(
                f"action {action!r} does not exist: "
                f"there are {self.n_actions} actions, 0 to {self.n_actions - 1}"
            )
        check_probability(probability)

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
