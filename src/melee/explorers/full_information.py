"""Full information: not a bandit, but what one could reach if exploring cost nothing."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from melee.arrays import Floats, Words
from melee.compiled import implements
from melee.distributions import greedy
from melee.errors import InputError
from melee.explorers.base import LearningExplorer, Problem, learner_choice
from melee.explorers.interface import distribution, reveal
from melee.explorers.rescaled import Rescaled
from melee.learners.interface import correct, predict, predict_all
from melee.settings import choice


class FullInformationState(NamedTuple):
    """A policy optimizer whose learner sees every action's reward in simulation."""

    polopt: Any


@dataclass(frozen=True, kw_only=True)
class FullInformation(LearningExplorer):
    """Act greedily with a learner to which every action's reward is revealed.

    A reference for simulations only. Where just the chosen action's reward can be known, as
    in production, it is the greedy algorithm.
    """

    name: ClassVar[str] = "full-information"
    needs_unit_rewards: ClassVar[bool] = False
    sees_all_rewards: ClassVar[bool] = True
    learner: str = learner_choice("ridge")
    optimizer: str = choice("direct", "direct")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cold or self.rescale:
            raise InputError(
                f"{self.name}: cold and rescale are how bandits learn in production, where rewards "
                "of other actions are unknown; leave them out"
            )

    def begin_cold(self, problem: Problem) -> Rescaled:
        """Refused: what it learns from is known in simulations only."""
        raise InputError(
            f"{self.name}: it learns from the rewards of all actions, which only a simulation "
            "knows; use another explorer, such as melee"
        )

    def start(self, problem: Problem) -> FullInformationState:
        """A fresh learner."""
        return FullInformationState(self.new_optimizer(problem))


@implements(distribution, FullInformationState)
def full_information_distribution(
    state: FullInformationState, x: Floats, t: int, rng: Words, pmf: Floats
) -> None:
    """All mass on the best prediction."""
    predict_all(state.polopt.learner, x, 0, pmf)
    greedy(pmf)


@implements(reveal, FullInformationState)
def full_information_reveal(
    state: FullInformationState,
    x: Floats,
    t: int,
    rng: Words,
    action: int,
    rewards: Floats,
    probability: float,
) -> None:
    """Every action's model learns its own reward."""
    learner = state.polopt.learner
    for a in range(rewards.shape[0]):
        correct(learner, x, a, rewards[a] - predict(learner, x, a), 1.0)
