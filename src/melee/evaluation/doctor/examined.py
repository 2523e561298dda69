"""A log as the checks look at it: faults included."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from melee.checks import LARGEST_REWARD, RewardRange
from melee.evaluation.doctor.columns import ContextColumn, read_columns
from melee.evaluation.doctor.findings import Symptom
from melee.evaluation.log import SMALLEST, pmf_fault, right_stands_for
from melee.shares import Mask

if TYPE_CHECKING:
    from melee.history import History, Round


class Examined:
    """What the checks look at.

    Attributes
    ----------
    n
        How many rounds there are.
    right_reward, right_probability, right_stands_for
        Where these are as they may be, (n,).
    with_features
        The rounds whose actions have features.
    wrong_pmfs, with_pmf, pmfs
        Rounds whose pmf cannot be right, with the reason; the others that have one, and these.
    """

    def __init__(self, history: "History", reward_range: RewardRange) -> None:
        self.declared = reward_range
        self.range = reward_range or (-LARGEST_REWARD, LARGEST_REWARD)
        self.rounds: list[Round] = list(history)
        self.problems = history.problems
        self.n = len(self.rounds)
        self.left_out = history.left_out
        self.rewards, self.probabilities = history.rewards, history.probabilities
        self.right_stands_for = right_stands_for(history.stands_for)
        self.stands_for = np.where(self.right_stands_for, history.stands_for, 1.0)
        self.right_reward = (self.rewards >= self.range[0]) & (self.rewards <= self.range[1])
        self.right_probability = (self.probabilities >= SMALLEST) & (self.probabilities <= 1.0)
        self.labels = history.actions
        self.contexts = [round_.context for round_ in self.rounds]
        self.with_features = [
            i for i, round_ in enumerate(self.rounds) if round_.features is not None
        ]
        self.wrong_pmfs: dict[int, str] = {}
        self.pmfs: list[tuple[Round, Mapping[object, float]]] = []
        self.with_pmf: list[int] = []
        for i, round_ in enumerate(self.rounds):
            if round_.pmf is None or not self.right_probability[i]:
                continue
            fault = pmf_fault(round_)
            if fault:
                self.wrong_pmfs[i] = fault
            else:
                self.pmfs.append((round_, round_.pmf))
                self.with_pmf.append(i)

    @functools.cached_property
    def columns(self) -> list[ContextColumn]:
        """The columns of the contexts, which have to be of one kind."""
        return read_columns(self.contexts)


def first(wrong: Mask) -> int:
    """The first round in which something is wrong."""
    return int(np.flatnonzero(wrong)[0])


Check: TypeAlias = tuple[Callable[[Examined], Iterator[Symptom]], str]
"""What looks for a fault, and what is said when there is none."""
