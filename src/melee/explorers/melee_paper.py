"""MELEE as in the paper: a linear exploration policy over calibrated predictions.

Sharaf and Daumé III (2019), "Meta-Learning for Contextual Bandit Exploration". In every round
f_t is calibrated by Platt scaling on the labelled rows, the features Φ(f_t, x_t, h_{t-1}) are
computed, and π, trained by imitation on synthetic tasks, picks an action; it is played with
probability 1-μ, else a uniform one.

Φ, for each action a:

- of f_t: the calibrated probability of a; the entropy of these probabilities; whether f_t
  predicts a (one-hot);
- of the history: the time step; the share of rounds in which f predicted a ("counts for all
  previous actions predicted so far"), and beside it the share that played a, for policies that
  are trained to use that instead; the average and the empirical variance of the rewards seen
  for a.

It depends neither on x nor on its dimension, except through f_t. π gives every action the score
v·φ_a with one weight per feature, and takes the highest: renaming actions renames the choice,
and the number of actions is free, though the paper's policy was trained on two. What all actions
share (entropy, time step) adds the same to every score of a linear policy, so it cannot sway it.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee import artefact
from melee.arrays import Floats, Scratch, Words
from melee.calibration import logistic, platt, platt_targets
from melee.compiled import implements, kernel, machine_code
from melee.distributions import greedy, mix_uniform
from melee.errors import InputError
from melee.explorers.base import LearningExplorer, Problem
from melee.explorers.interface import distribution, learn
from melee.explorers.rescaled import Rescaled
from melee.learners.interface import predict, predict_all
from melee.policy_optimizers import fit
from melee.settings import number, text

PER_ACTION = (
    "probability",
    "predicted",
    "predicted count",
    "played count",
    "average",
    "variance",
)
SHARED = ("entropy", "time step")
SCHEMA = (*PER_ACTION, *SHARED)
"""The features, in the order of the weights."""
N_PER_ACTION, N_SHARED = len(PER_ACTION), len(SHARED)


class PaperState(NamedTuple):
    """f_t, its calibration, the statistics of the history, and the policy's weights."""

    polopt: Any
    weights: Floats  # (8,) in the order of SCHEMA
    mu: float
    all_rows_move: bool  # whether a round changes every action's model, or the chosen one's only
    labelled: Floats  # (m, D) inputs of the labelled rows
    labelled_rewards: Floats  # (m, K)
    targets: Floats  # (K or 1, m) Platt's targets; for two actions, of the second
    scores: Floats  # (K, m) predictions for the labelled rows
    margins: Scratch  # (m,)
    fits: Floats  # (K or 1, 2) slope and offset of each calibration
    predicted: Floats  # (K,) rounds in which f predicted the action; ties share
    counts: Floats  # (K,) rounds that played it
    sums: Floats  # (K,) of rewards
    squares: Floats  # (K,) of rewards
    features: Floats  # (K, 6) of the latest context, per action
    shared: Floats  # (2,) of the latest context
    predictions: Scratch  # (K,)


@dataclass(frozen=True, kw_only=True)
class MeleePaper(LearningExplorer):
    """Explore by a policy that learned it by imitation on synthetic tasks (the paper's MELEE).

    It needs labelled rows for its calibration: `prepare` sets them aside.

    Parameters
    ----------
    policy
        `paper`, which comes with the package, or the directory of a trained one.
    mu
        Probability of a uniform action on top of the policy's choices; 0 is the paper's setting.
    """

    name: ClassVar[str] = "melee-paper"
    policy: str = text("paper")
    mu: float = number(0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cold:
            raise InputError(
                f"{self.name}: it calibrates its predictions on labelled rows and a cold start has "
                "none; leave cold out, or use melee:cold=true"
            )

    def begin_cold(self, problem: Problem) -> Rescaled:
        """Refused: there is nothing to calibrate on."""
        raise needs_labels(self.name)

    def start(self, problem: Problem) -> PaperState:
        """A fresh learner, calibrated once, under the weights of the trained policy."""
        return self.start_with(load_policy(self.policy), problem)

    @property
    def identity(self) -> str:
        """The settings, and the checksum of the policy's weights."""
        return f"{self.spec}#{policy_hash(self.policy)}"

    def start_with(self, weights: Floats, problem: Problem) -> PaperState:
        """The same under given weights, as training needs it."""
        all_rows = self.optimizer in ("ips", "dr")
        return new_state(
            self.name, self.new_optimizer(problem), weights, self.mu, all_rows, problem
        )


def needs_labels(name: str) -> InputError:
    """The refusal to start without labelled rows, as in production."""
    return InputError(
        f"{name}: it calibrates its predictions on labelled rows, and an agent starts without any; "
        "use melee, which needs none"
    )


def new_state(
    name: str, polopt: Any, weights: Floats, mu: float, all_rows_move: bool, problem: Problem
) -> PaperState:
    """A state before its first round, over any policy optimizer."""
    if problem.labelled is None:
        raise InputError(
            f"{name}: it calibrates its predictions on labelled rows and there are none; "
            "play a task prepared with n_labelled=30, or another explorer"
        )
    inputs, rewards = problem.labelled
    k, m = problem.n_actions, len(inputs)
    best = (rewards == rewards.max(axis=1, keepdims=True)).astype(np.float64)
    columns = [1] if k == 2 else list(range(k))
    state = PaperState(
        polopt=polopt,
        weights=np.ascontiguousarray(weights, dtype=np.float64),
        mu=float(mu),
        all_rows_move=all_rows_move,
        labelled=np.ascontiguousarray(inputs),
        labelled_rewards=np.array(rewards),
        targets=np.array([platt_targets(best[:, a]) for a in columns]),
        scores=np.zeros((k, m)),
        margins=np.zeros(m),
        fits=np.zeros((len(columns), 2)),
        predicted=np.zeros(k),
        counts=np.zeros(k),
        sums=np.zeros(k),
        squares=np.zeros(k),
        features=np.zeros((k, len(PER_ACTION))),
        shared=np.zeros(len(SHARED)),
        predictions=np.zeros(k),
    )
    machine_code(calibrate, state)(state)
    return state


@lru_cache(maxsize=32)
def _load(path: str, modified: int) -> Floats:
    policy = artefact.load(
        path, kind="melee-paper", schema=SCHEMA, shapes={"weights": (len(SCHEMA),)}
    )
    weights = policy.arrays["weights"]
    inputs = policy.reference.get("features", np.zeros((0, 1, len(SCHEMA))))
    if inputs.ndim != 3 or inputs.shape[2] != len(SCHEMA):
        raise InputError(f"{path}: reference features of shape {inputs.shape}; copy it again")
    artefact.check_reference(policy, inputs @ weights, path)
    return weights


def load_policy(name: str) -> Floats:
    """The weights of a policy by its name or directory; read once as long as it is unchanged."""
    path = artefact.locate(name)
    manifest = path / artefact.MANIFEST
    modified = manifest.stat().st_mtime_ns if manifest.exists() else 0
    return _load(str(path), modified)


def policy_hash(name: str) -> str:
    """SHA-256 of a policy's weights, by its name or directory."""
    return hashlib.sha256(load_policy(name).tobytes()).hexdigest()


@kernel
def margin(predictions: Floats, a: int) -> float:
    """How far a's prediction is ahead of the best other one."""
    best = -math.inf
    for b in range(predictions.shape[0]):
        if b != a and predictions[b] > best:
            best = predictions[b]
    return float(predictions[a] - best)


@kernel
def calibrate(state: PaperState) -> None:
    """Fit Platt scaling to the scores of the labelled rows, from where the last fit ended.

    One against the rest for every action; with two actions one fit serves both.
    """
    n_actions = state.scores.shape[0]
    for j in range(state.fits.shape[0]):
        a = 1 if n_actions == 2 else j
        for i in range(state.margins.shape[0]):
            state.margins[i] = margin(state.scores[:, i], a)
        slope, offset = platt(state.margins, state.targets[j], state.fits[j, 0], state.fits[j, 1])
        state.fits[j, 0] = slope
        state.fits[j, 1] = offset


@kernel
def calibrated(state: PaperState, predictions: Floats, a: int) -> float:
    """The calibrated probability of action a, before normalizing over more than two."""
    if predictions.shape[0] == 2:
        z = state.fits[0, 0] * margin(predictions, 1) + state.fits[0, 1]
        return logistic(z if a == 1 else -z)
    return logistic(state.fits[a, 0] * margin(predictions, a) + state.fits[a, 1])


@kernel
def describe(state: PaperState, x: Floats, t: int) -> None:
    """Overwrite `features` and `shared` with Φ(f_t, x_t, h_{t-1})."""
    features, predictions = state.features, state.predictions
    n_actions = predictions.shape[0]
    predict_all(state.polopt.learner, x, 0, predictions)
    total = 0.0
    for a in range(n_actions):
        features[a, 0] = calibrated(state, predictions, a)
        total += features[a, 0]
    entropy = 0.0
    for a in range(n_actions):
        p = features[a, 0] / total if total > 0.0 else 1.0 / n_actions
        features[a, 0] = p
        entropy -= p * math.log(p) if p > 0.0 else 0.0
    greedy(predictions)
    for a in range(n_actions):
        features[a, 1] = predictions[a]
        features[a, 2] = state.predicted[a] / (t - 1) if t > 1 else 0.0
        features[a, 3] = state.counts[a] / (t - 1) if t > 1 else 0.0
        mean = state.sums[a] / state.counts[a] if state.counts[a] > 0.0 else 0.0
        square = state.squares[a] / state.counts[a] if state.counts[a] > 0.0 else 0.0
        features[a, 4] = mean
        features[a, 5] = max(square - mean * mean, 0.0)
    state.shared[0] = entropy
    state.shared[1] = t


@implements(distribution, PaperState)
def paper_distribution(state: PaperState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """Mass 1-μ on the action that π picks, μ spread evenly."""
    describe(state, x, t)
    shared = 0.0
    for j in range(N_SHARED):
        shared += state.weights[N_PER_ACTION + j] * state.shared[j]
    for a in range(pmf.shape[0]):
        score = 0.0
        for j in range(N_PER_ACTION):
            score += state.weights[j] * state.features[a, j]
        pmf[a] = score + shared
    greedy(pmf)
    mix_uniform(pmf, state.mu)


@implements(learn, PaperState)
def paper_learn(
    state: PaperState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Fit f to the round, keep the statistics of the history, and calibrate again."""
    learner = state.polopt.learner
    n_actions = state.counts.shape[0]
    predict_all(learner, x, 0, state.predictions)
    greedy(state.predictions)
    for a in range(n_actions):
        state.predicted[a] += state.predictions[a]
    fit(state.polopt, x, 0, n_actions, action, reward, p, 1.0)
    state.counts[action] += 1.0
    state.sums[action] += reward
    state.squares[action] += reward * reward
    for a in range(n_actions):
        if a == action or state.all_rows_move:
            for i in range(state.labelled.shape[0]):
                state.scores[a, i] = predict(learner, state.labelled[i], a)
    calibrate(state)
