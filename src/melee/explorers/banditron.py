"""Banditron, and BanditronMELEE: the paper's stylized analysis as explorers.

Kakade, Shalev-Shwartz and Tewari (2008): a multiclass perceptron under bandit feedback. With
â = argmax W x and Q(a) the probability of playing a, an update adds

    x·( r·1[a = a_t]/Q(a_t) - 1[a = â] )

to row a of W. Banditron plays â, BanditronMELEE plays what the exploration policy π makes of
W; both mix in uniform exploration of total mass μ (the paper's μ is the mass per action, μ/K
here). Where several actions tie for â they share its subtraction, as they share its mass.
`melee.meta.banditron` computes the mistake bound and the edge of π for a run.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats, Scratch, Words
from melee.compiled import implements
from melee.distributions import greedy, mix_uniform
from melee.explorers.base import Explorer, Problem
from melee.explorers.interface import distribution
from melee.explorers.melee_paper import (
    PaperState,
    load_policy,
    needs_labels,
    new_state,
    policy_hash,
)
from melee.explorers.rescaled import Rescaled
from melee.learners.interface import predict_all
from melee.learners.sgd import Sgd
from melee.policy_optimizers import fit
from melee.settings import number, text


class BanditronUpdate(NamedTuple):
    """The weights W as a learner that only the Banditron rule changes."""

    learner: Any
    choice: Scratch  # (K,)


class BanditronState(NamedTuple):
    """The weights and the mass of uniform exploration."""

    polopt: Any
    mu: float


def _update_rule(problem: Problem) -> BanditronUpdate:
    learner = Sgd.start(problem.n_actions, problem.n_inputs, 1.0, False)
    return BanditronUpdate(learner, np.zeros(problem.n_actions))


@dataclass(frozen=True, kw_only=True)
class Banditron(Explorer):
    """Play the perceptron's prediction with probability 1-μ, else a uniform action.

    Parameters
    ----------
    mu
        Total mass of uniform exploration; it must be positive, as the update divides by it.
    """

    name: ClassVar[str] = "banditron"
    predicts: ClassVar[bool] = False
    mu: float = number(0.1, 0.0, 1.0, above=True)

    def start(self, problem: Problem) -> BanditronState:
        """Weights of zero."""
        return BanditronState(_update_rule(problem), float(self.mu))


@dataclass(frozen=True, kw_only=True)
class BanditronMelee(Explorer):
    """Banditron whose action is picked by the learned exploration policy.

    Parameters
    ----------
    policy
        `paper`, which comes with the package, or the directory of a trained one.
    mu
        Total mass of uniform exploration; positive, as for `banditron`.
    """

    name: ClassVar[str] = "banditron-melee"
    policy: str = text("paper")
    mu: float = number(0.1, 0.0, 1.0, above=True)

    def begin_cold(self, problem: Problem) -> Rescaled:
        """Refused: there is nothing to calibrate on."""
        raise needs_labels(self.name)

    def start(self, problem: Problem) -> PaperState:
        """Weights of zero, under the features and weights of the trained policy."""
        return self.start_with(load_policy(self.policy), problem)

    @property
    def identity(self) -> str:
        """The settings, and the checksum of the policy's weights."""
        return f"{self.spec}#{policy_hash(self.policy)}"

    def start_with(self, weights: Floats, problem: Problem) -> PaperState:
        """The same under given weights of π."""
        return new_state(self.name, _update_rule(problem), weights, self.mu, True, problem)


@implements(fit, BanditronUpdate)
def fit_banditron(
    optimizer: BanditronUpdate,
    x: Floats,
    first: int,
    n: int,
    action: int,
    reward: float,
    p: float,
    w: float,
) -> None:
    """Add x·(r/p) to the played action's row and take x from the predicted one's."""
    weights, choice = optimizer.learner.weights, optimizer.choice
    predict_all(optimizer.learner, x, first, choice)
    greedy(choice)
    for a in range(n):
        amount = (reward / p if a == action else 0.0) - choice[a]
        if amount != 0.0:
            for i in range(x.shape[0]):
                weights[first + a, i] += amount * x[i]


@implements(distribution, BanditronState)
def banditron_distribution(
    state: BanditronState, x: Floats, t: int, rng: Words, pmf: Floats
) -> None:
    """Mass 1-μ on the perceptron's prediction, μ spread evenly."""
    predict_all(state.polopt.learner, x, 0, pmf)
    greedy(pmf)
    mix_uniform(pmf, state.mu)
