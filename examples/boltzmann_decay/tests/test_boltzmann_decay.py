"""Melee's checks, and the definition once more to compare with."""

from typing import Any

import numpy as np
import pytest

from melee.arrays import Floats
from melee.explorers import Problem, parse
from melee.learners import correct, predict
from melee.testing import Check, checks_for_explorer


class Definition:
    """exp(f/T) normalised, in NumPy, over one model per action."""

    def __init__(self, explorer: Any, problem: Problem, key: int) -> None:
        self.explorer, self.n_actions = explorer, problem.n_actions
        model = explorer.model(problem.learning_rate)
        self.f = model.start(problem.n_actions, problem.n_inputs)

    def pmf(self, x: Floats, t: int) -> Floats:
        """The probability of every action in round t."""
        f = np.array([predict(self.f, x, a) for a in range(self.n_actions)])
        weights = np.exp(f * t**self.explorer.decay / self.explorer.temperature)
        return np.asarray(weights / weights.sum())

    def learn(self, x: Floats, t: int, action: int, rewards: Floats, probability: float) -> None:
        """Absorb round t."""
        correct(self.f, x, action, rewards[action] - predict(self.f, x, action), 1.0)


@pytest.mark.parametrize("check", checks_for_explorer("boltzmann-decay", Definition), ids=str)
def test_it_is_an_explorer(check: Check) -> None:
    check()


def test_settings() -> None:
    assert parse("boltzmann-decay:decay=0").short_spec == "boltzmann-decay:decay=0.0"
    with pytest.raises(ValueError, match=r"decay is 3\.0; expected a number, at least 0 and"):
        parse("boltzmann-decay:decay=3")
