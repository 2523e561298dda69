"""EG ε-greedy: a bandit over candidate values of ε, by exponentiated gradient.

Li, Wang, Zhang, Cui, Mao and Jin (2010), "Exploitation and exploration in a performance based
contextual advertising system". Each round a candidate ε_d is drawn with probability q_d and
ε_d-greedy is played; then w_k ← w_k·exp(τ(r·1[k=d] + β)/q_k) and
q_k = (1-κ)·w_k/Σw + κ/m.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats, Scratch, Shares, Words
from melee.compiled import implements
from melee.distributions import greedy, mix_uniform, sample
from melee.explorers.base import LearningExplorer, Problem
from melee.explorers.interface import distribution, learn
from melee.learners.interface import predict_all
from melee.policy_optimizers import fit
from melee.rng import uniform
from melee.settings import number

CANDIDATES = tuple(round(0.05 * i + 0.01, 2) for i in range(1, 11))
"""The candidate values of ε: 0.05·i + 0.01 for i = 1..10 (paper)."""


class EgState(NamedTuple):
    """A policy optimizer, the candidates, their log weights and their probabilities q."""

    polopt: Any
    epsilons: Shares  # (m,)
    log_weights: Floats  # (m,) shifted so that the largest is 0
    q: Shares  # (m,)
    posterior: Scratch  # (m,)
    pmf: Scratch  # (K,)
    tau: float
    beta: float
    kappa: float


@dataclass(frozen=True, kw_only=True)
class EgEpsilonGreedy(LearningExplorer):
    """ε-greedy whose ε is learned from ten candidates.

    Parameters
    ----------
    tau, beta, kappa
        Step size, optimism and uniform share of the exponentiated gradient.
    """

    name: ClassVar[str] = "eg-epsilon-greedy"
    tau: float = number(0.02, 0.0, above=True)
    beta: float = number(0.01, 0.0)
    kappa: float = number(0.05, 0.0, 1.0, above=True)

    def start(self, problem: Problem) -> EgState:
        """A fresh learner and equal weights on all candidates."""
        m = len(CANDIDATES)
        return EgState(
            polopt=self.new_optimizer(problem),
            epsilons=np.array(CANDIDATES),
            log_weights=np.zeros(m),
            q=np.full(m, 1.0 / m),
            posterior=np.zeros(m),
            pmf=np.zeros(problem.n_actions),
            tau=float(self.tau),
            beta=float(self.beta),
            kappa=float(self.kappa),
        )


@implements(distribution, EgState)
def eg_distribution(state: EgState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """The mixture over candidates of ε_d-greedy: greedy with the mean ε under q.

    Drawing the action from this mixture and, when learning, the candidate from its posterior
    given the action is the same as drawing the candidate first; so the logged probability is
    the marginal one.
    """
    predict_all(state.polopt.learner, x, 0, pmf)
    greedy(pmf)
    mean = 0.0
    for k in range(state.q.shape[0]):
        mean += state.q[k] * state.epsilons[k]
    mix_uniform(pmf, mean)


@implements(learn, EgState)
def eg_learn(
    state: EgState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Draw the candidate that played, reward it, and fit f to the round."""
    pmf, q, posterior, log_weights = state.pmf, state.q, state.posterior, state.log_weights
    n_actions = pmf.shape[0]
    m = q.shape[0]
    predict_all(state.polopt.learner, x, 0, pmf)
    greedy(pmf)
    total = 0.0
    for k in range(m):
        epsilon = state.epsilons[k]
        posterior[k] = q[k] * ((1.0 - epsilon) * pmf[action] + epsilon / n_actions)
        total += posterior[k]
    for k in range(m):
        posterior[k] /= total
    played = sample(posterior, uniform(rng))
    largest = -np.inf
    for k in range(m):
        log_weights[k] += state.tau * ((reward if k == played else 0.0) + state.beta) / q[k]
        largest = max(largest, log_weights[k])
    total = 0.0
    for k in range(m):
        log_weights[k] -= largest
        total += math.exp(log_weights[k])
    for k in range(m):
        q[k] = (1.0 - state.kappa) * math.exp(log_weights[k]) / total + state.kappa / m
    fit(state.polopt, x, 0, n_actions, action, reward, p, 1.0)
