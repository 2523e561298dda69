"""Uniform: every action with the same probability, whatever was seen. The floor of any table."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from melee.arrays import Floats, Words
from melee.compiled import implements
from melee.explorers.base import Explorer, Problem
from melee.explorers.interface import distribution, learn


class UniformState(NamedTuple):
    """Nothing to remember but the number of actions."""

    n_actions: int


@dataclass(frozen=True, kw_only=True)
class Uniform(Explorer):
    """Play every action with probability 1/K."""

    name: ClassVar[str] = "uniform"

    def start(self, problem: Problem) -> UniformState:
        """A state that knows K."""
        return UniformState(problem.n_actions)


@implements(distribution, UniformState)
def uniform_distribution(state: UniformState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """p_a = 1/K."""
    pmf[:] = 1.0 / state.n_actions


@implements(learn, UniformState)
def uniform_learn(
    state: UniformState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Nothing is learned."""
