"""A history as arrays: what can be computed with, checked.

Rows are rounds. Columns are the actions of the log; or, where these are candidates with features,
which come and go, the *places* of a round's candidates, in the order that the round names them. All
that is computed goes row by row, so the same code serves both.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats, Ints
from melee.checks import LARGEST_REWARD, RewardRange, check_reward_range
from melee.errors import InputError
from melee.evaluation.embeddings import Embedding, Shelf, alike
from melee.evaluation.pair_model import PairRewardModel, model_pairs
from melee.evaluation.reward_model import RewardModel, model_rewards
from melee.evaluation.units import unit_of
from melee.history import MOST_STOOD_FOR, check_round
from melee.labels import Label

if TYPE_CHECKING:
    from melee.history import History, Round

MIN_ROUNDS = 20
SMALLEST = 1e-12
"""A probability below this is none: nobody draws by it, and its inverse is no weight."""
_EXPLORE = (
    "let the logging policy explore, as Agent(floor=0.02) does, or ask the model alone with "
    'estimators=("dm",)'
)


class EvaluatedLog:
    """A history as arrays, checked: what is in here can be computed with.

    Attributes
    ----------
    labels
        Every action that was played or could have been, in the order of appearance.
    places
        Of each round, the column of every action that could be chosen.
    played, actions
        The chosen ones, and their columns, (n,).
    chances
        Logged probabilities of all actions, (n, K); rows of NaN where only one was logged.
    untried
        Where a column's action was never played in the whole log, and for all that is known could
        not be, (n, K).
    shelf
        The candidates of all rounds and their features; None where actions have none.
    rewards, unit, units
        Rewards as they came, how low and high they can be, and the same between 0 and 1.
    stands_for, sizes
        How many rounds each stands for, and the same over their mean: 1 where none was dropped.
    """

    def __init__(
        self,
        history: "History",
        reward_range: RewardRange = None,
        embedding: Embedding = None,
    ) -> None:
        rounds = list(history)
        if len(rounds) < MIN_ROUNDS:
            raise InputError(
                f"the log has {len(rounds)} rounds; expected at least {MIN_ROUNDS}: log more "
                "before you evaluate a policy on it"
            )
        self.contexts = [round_.context for round_ in rounds]
        self.played = [round_.action for round_ in rounds]
        self.pmfs = [round_.pmf for round_ in rounds]
        wrong = ((i, pmf_fault(round_)) for i, round_ in enumerate(rounds))
        self.wrong_pmf = next((f"round {i}: {fault}" for i, fault in wrong if fault), None)
        self.rewards = _numbers(round_.reward for round_ in rounds)
        self.probabilities = _numbers(round_.probability for round_ in rounds)
        self.stands_for = _numbers(round_.stands_for for round_ in rounds)
        _check_stands_for(self.stands_for)
        self.sizes = self.stands_for / self.stands_for.mean()
        self.reward_range = check_reward_range(reward_range)
        _check_rewards(self.rewards, self.reward_range)
        self.unit = unit_of(self.rewards, self.reward_range)
        self.units = self.unit.of(self.rewards)
        index: dict[Label, int] = {}
        for round_ in rounds:
            index.setdefault(round_.action, len(index))
        self.n_played = len(index)  # the first ones of `labels`
        for round_ in rounds:
            for label in round_.pmf or ():
                index.setdefault(label, len(index))
        self.index, self.labels = index, list(index)
        self.embedding = embedding
        self.shelf: Shelf | None = None
        self.places: list[Mapping[Label, int]] = [index] * len(rounds)
        if any(round_.features is not None for round_ in rounds):
            self.shelf = Shelf(rounds, index)
            self.places = self.shelf.places
        self.actions: Ints = np.array(
            [places[round_.action] for places, round_ in zip(self.places, rounds, strict=True)]
        )
        shape = len(rounds), max(map(len, self.places))
        self.chances = np.full(shape, np.nan)
        for row, pmf, places in zip(self.chances, self.pmfs, self.places, strict=True):
            if pmf is not None:
                row[:] = 0.0
                for label, chance in pmf.items():
                    row[places[label]] = chance
        self.untried = np.broadcast_to(np.arange(shape[1]) >= self.n_played, shape)
        if self.shelf is not None:
            self.untried = (self.shelf.items >= self.n_played) & np.isnan(self.chances)
        self.n_rounds = len(rounds)

    @functools.cached_property
    def model(self) -> RewardModel | PairRewardModel:
        """What each action would have earned in each round, in units."""
        if self.shelf is not None:
            return model_pairs(self.contexts, self.shelf, self.actions, self.units, self.sizes)
        n_actions = len(self.labels)
        return model_rewards(self.contexts, self.actions, self.units, n_actions, self.sizes)

    @functools.cached_property
    def alike(self) -> Ints:
        """Of each round and column, the first column whose candidate has the same embedding."""
        if self.shelf is None:
            raise InputError(
                "mips goes by features of actions, and this log has none; expected rounds with "
                "them (Round.features), as agents without actions of their own log them"
            )
        if np.isnan(self.chances).any():
            first = int(np.flatnonzero(np.isnan(self.chances).any(axis=1))[0])
            raise InputError(
                f"mips needs the probabilities of all actions, and round {first} has only that of "
                "the chosen one; log the pmf of every round, as Agent(log=...) does"
            )
        self.shelf.check_complete("mips")
        return alike(self.shelf, self.embedding)

    def mean(self, values: Floats) -> float:
        """The mean over all rounds, those that were dropped included."""
        return float((self.sizes * values).mean())

    def without_support(self) -> str | None:
        """Why no policy at all could be evaluated by weights, if none can."""
        given = self.probabilities
        wrong = ~((given >= SMALLEST) & (given <= 1.0))
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            shown = "missing" if np.isnan(given[first]) else f"{given[first]:g}"
            return (
                f"{wrong.sum():,} of {self.n_rounds:,} rounds have no usable probability, number "
                f"{first} the first ({shown}); expected the chance, above 0 and at most 1, that "
                "the logged action had when it was chosen: log it with every round, as "
                "Agent.act does"
            )
        if (given == 1.0).all():
            return (
                "every round was logged with probability 1, so nothing but the chosen action was "
                f"ever tried, and only a model could answer; {_EXPLORE}"
            )
        return self.wrong_pmf


def pmf_fault(round_: "Round") -> str | None:
    """What is wrong with a round's probabilities of all actions."""
    if round_.pmf is None:
        return None
    try:
        check_round(dataclasses.replace(round_, reward=0.0, time=None, stands_for=1.0))
    except InputError as error:
        return str(error)
    return None


def _numbers(given: Iterable[Any]) -> Floats:
    """Rewards or probabilities, NaN for missing ones."""
    return np.array([np.nan if number is None else float(number) for number in given])


def right_stands_for(given: Floats) -> npt.NDArray[np.bool_]:
    """Where rounds stand for a number of rounds that can be."""
    return (given >= 1.0) & (given <= MOST_STOOD_FOR)


def _check_stands_for(given: Floats) -> None:
    wrong = ~right_stands_for(given)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{wrong.sum():,} of {len(given):,} rounds stand for a number of rounds that cannot "
            f"be, round {first} the first ({given[first]:g}); expected from 1 to "
            f"{MOST_STOOD_FOR:,.0f}: mend them, or leave them out"
        )


def _check_rewards(rewards: Floats, reward_range: RewardRange) -> None:
    """Refuse what cannot be computed with, and what is outside of the declared range."""
    low, high = reward_range or (-LARGEST_REWARD, LARGEST_REWARD)
    wrong = ~((rewards >= low) & (rewards <= high))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        shown = "missing" if np.isnan(rewards[first]) else f"{rewards[first]:g}"
        expected = "finite numbers" if reward_range is None else f"numbers from {low:g} to {high:g}"
        raise InputError(
            f"{wrong.sum():,} of {len(rewards):,} rewards cannot be used, that of round "
            f"{first} the first ({shown}); expected {expected}: mend them, and leave out rounds "
            "whose reward is unknown; `melee doctor` lists what is wrong with a log"
        )
