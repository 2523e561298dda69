"""Uniform: every action with the same probability, whatever was seen. The floor of any table."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from melee.arrays import Floats, Words
from melee.compiled import implements
from melee.explorers.base import Explorer, Problem
from melee.explorers.interface import distribution, learn


class UniformState(NamedTuple):
    """Nothing to remember; a state needs a field."""

    mass: float


@dataclass(frozen=True, kw_only=True)
class Uniform(Explorer):
    """Play every action with probability 1/K."""

    name: ClassVar[str] = "uniform"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    learns: ClassVar[bool] = False

    def start(self, problem: Problem) -> UniformState:
        """A state whose whole mass is uniform."""
        return UniformState(1.0)


@implements(distribution, UniformState)
def uniform_distribution(state: UniformState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """p_a = 1/K."""
    pmf[:] = state.mass / pmf.shape[0]


@implements(learn, UniformState)
def uniform_learn(
    state: UniformState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Nothing is learned."""
