"""Online Cover and Cover-NU: policies trained to differ where it pays.

Agarwal, Hsu, Kale, Langford, Li and Schapire (2014); the non-uniform form is from Bietti,
Agarwal and Langford (2018). With N policies and m_t = min(1/K, 1/√(K·t)):

- policy 1 is the base learner, fitted by the policy optimizer;
- policy i ≥ 2 is fitted to the doubly robust estimate of every action's reward plus the bonus
  ψ·m_t / max(q_a, m_t), where q_a is the mass that policies 1..i-1 put on a (1/N each): what
  the earlier ones neglect looks better to the later ones;
- play the mass of all policies, with at least m_t on every action. Cover-NU leaves actions
  alone that no policy chose.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats, Scratch, Words
from melee.compiled import implements, interpreted_as, kernel
from melee.distributions import raise_to_floor, vote
from melee.explorers.base import LearningExplorer, Problem
from melee.explorers.interface import distribution, learn
from melee.learners.interface import correct_all, predict_all
from melee.policy_optimizers import fit
from melee.settings import count, number


class CoverState(NamedTuple):
    """The base policy, the others in blocks of K rows, and room for one round."""

    polopt: Any
    others: Any
    scores: Scratch  # (K,)
    estimates: Scratch  # (K,)
    errors: Scratch  # ((N - 1)·K,)
    mass: Scratch  # (K,)
    policies: int
    psi: float
    everywhere: bool


@dataclass(frozen=True, kw_only=True)
class Cover(LearningExplorer):
    """Explore by the disagreement of policies that were paid to disagree.

    Parameters
    ----------
    policies
        N, the number of policies; 16 is the paper's setting.
    psi
        ψ, the size of the bonus for what others neglect; 0.1 is the paper's setting.
    """

    name: ClassVar[str] = "cover"
    needs_unit_rewards: ClassVar[bool] = False
    everywhere: ClassVar[bool] = True
    policies: int = count(16, 1, 1024)
    psi: float = number(0.1, 0.0)

    @property
    def n_models(self) -> int:
        """One per policy."""
        return self.policies

    def start(self, problem: Problem) -> CoverState:
        """N fresh policies."""
        k = problem.n_actions
        return CoverState(
            polopt=self.new_optimizer(problem),
            others=self.new_learner(problem, self.policies - 1),
            scores=np.zeros(k),
            estimates=np.zeros(k),
            errors=np.zeros((self.policies - 1) * k),
            mass=np.zeros(k),
            policies=self.policies,
            psi=float(self.psi),
            everywhere=self.everywhere,
        )


@dataclass(frozen=True, kw_only=True)
class CoverNu(Cover):
    """Cover without extra exploration beyond the actions that some policy chose.

    Parameters
    ----------
    policies, psi
        As for `cover`.
    """

    name: ClassVar[str] = "cover-nu"
    everywhere: ClassVar[bool] = False


@kernel
def smallest_mass(n_actions: int, t: int) -> float:
    """m_t = min(1/K, 1/√(K·t))."""
    return min(1.0 / n_actions, 1.0 / math.sqrt(n_actions * t))


@implements(distribution, CoverState)
def cover_distribution(state: CoverState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """The mass of the policies' choices, raised to the floor."""
    n_actions = pmf.shape[0]
    scores, share = state.scores[:n_actions], 1.0 / state.policies
    pmf[:] = 0.0
    predict_all(state.polopt.learner, x, 0, scores)
    vote(scores, share, pmf)
    for i in range(state.policies - 1):
        predict_all(state.others, x, i * n_actions, scores)
        vote(scores, share, pmf)
    raise_to_floor(pmf, smallest_mass(n_actions, t), state.everywhere)


def _disagree_at_once(state: CoverState, floor: float) -> None:
    scores, mass = state.scores, state.mass
    for block in state.errors.reshape(state.policies - 1, len(scores)):
        scores[:] = block
        block[:] = (state.estimates + state.psi * floor / np.maximum(mass, floor)) - scores
        vote(scores, 1.0 / state.policies, mass)


@interpreted_as(_disagree_at_once)
def disagree(state: CoverState, floor: float) -> None:
    """Turn the predictions of policies 2..N, in `errors`, into how far each is from its target.

    The targets are the estimates plus a bonus for what the policies before have neglected.
    Overwrites scores, mass and errors.
    """
    scores, mass, errors = state.scores, state.mass, state.errors
    n_actions = scores.shape[0]
    for i in range(state.policies - 1):
        for a in range(n_actions):
            scores[a] = errors[i * n_actions + a]
            target = state.estimates[a] + state.psi * floor / max(mass[a], floor)
            errors[i * n_actions + a] = target - scores[a]
        vote(scores, 1.0 / state.policies, mass)


@implements(learn, CoverState)
def cover_learn(
    state: CoverState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Fit policies 2..N to estimate plus bonus, in order, then the base policy to the round."""
    estimates, mass, errors = state.estimates, state.mass, state.errors
    n_actions = estimates.shape[0]
    predict_all(state.polopt.learner, x, 0, estimates)
    mass[:] = 0.0
    vote(estimates, 1.0 / state.policies, mass)
    estimates[action] += (reward - estimates[action]) / p
    predict_all(state.others, x, 0, errors)
    disagree(state, smallest_mass(n_actions, t))
    correct_all(state.others, x, 0, errors)
    fit(state.polopt, x, 0, n_actions, action, reward, p, 1.0)
