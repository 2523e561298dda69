"""MELEE: optimism whose size, action by action and round by round, was learned.

score_a = mean_a + size_a·spread_a + due_a, and the highest score is played. Mean and spread are
those of a learner that knows its noise (`melee.learners.adaptive`). The size is a mixture of two
rules,

    size_a = gate·exp(bold·ψ_a) + (1 - gate)·exp(careful·ψ_a),    gate = σ(g·ψ),

in units of the rewards' range, with the spread in units of the noise. The *bold* rule starts close
to that of `gated-ucb`, for rewards that can be predicted: explore while nothing good is known, then
stop. It grows as an action falls behind its share of the rounds. The *careful* one starts as a
third of the noise, for rewards that are mostly luck. At first the gate
opens to the bold one where rewards look like those of labels, and stays open as variance is
explained; where nothing is, it closes in time.

What comes to an action is never nothing, or one that was dropped by bad luck would not come back:

    due_a = (1 - gate)·exp(due·ψ)·noise·√(v·log(1 + v·(n + K)/K)),

n being the rounds so far and v the variance of the action's average reward in units of the noise,
about one over its plays. That is an upper confidence bound of the averages, whose width is by how
far an action is behind its share of the rounds: all that there is to explore without a context.
With more actions than can be tried nothing is due, and the careful rule is smaller. Of candidates v
is the variance of what their own features say, so that what is due comes to values of these, and is
never too much.
All weights, and how the learner mixes its members, were trained on synthetic tasks of both kinds
(`melee.meta`).

The inputs ψ_a mean the same on every task, whatever its features, number of actions, and unit of
reward:

- shared by all actions: how far the best mean is from the highest reward seen; the noise in units
  of the rewards' range; the unexplained share of their variance; the rounds so far, the numbers of
  actions and of inputs, the average reward; by how much the first rewards were rarer, or more
  plentiful, than with labels, where one action of K pays in every round; and the share of rewards
  that are neither the least nor the greatest seen, which with labels is none;
- of the action: how far its mean is behind the best, its spread, how often it was played.

Renaming actions renames the choice, and their number is free. No labelled row is needed. Where
there are many actions, spreads are guessed in O(D) first, and only the highest scores are
computed in full.

A guard watches over the policy. Inputs are held within the range met in training; where one that
all actions share is far outside (by more than the range is wide) a bonus of one standard deviation
takes over for the round. And the rounds in which another than the predicted action was played are
compared with what the predicted one was expected to earn: when that comes to more than a budget
c·deviation·√(K·t), the predicted action is played until the budget has grown again.
"""

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee import artefact
from melee.arrays import Amounts, Floats, Scratch, Words
from melee.compiled import implements, kernel
from melee.distributions import greedy, largest, mix_uniform
from melee.errors import DataError, InputError
from melee.explorers.base import Problem, RidgeExplorer, learner_choice
from melee.explorers.interface import distribution, learn
from melee.learners.adaptive import (
    DEVIATION,
    GRADED,
    HOW,
    LOW,
    NOISE,
    RARE,
    ROUNDS,
    SPAN,
    SUM,
    AdaptiveDiagonalLearner,
    AdaptiveLearner,
    logistic,
    mix,
    own_variance,
)
from melee.learners.interface import predict_all, spread, spread_guess_all
from melee.learners.offers import choice, differ, n_choices, plays_of
from melee.policy_optimizers import fit
from melee.settings import count, flag, number, text

SHARED = (
    "one",
    "best",
    "noise",
    "unexplained",
    "rounds",
    "actions",
    "average",
    "inputs",
    "rare",
    "plenty",
    "graded",
)
PER_ACTION = ("gap", "spread", "plays")
SCHEMA = (*SHARED, *PER_ACTION)
"""The inputs of the policy, in the order of its weights."""
N_SHARED, N_INPUTS = len(SHARED), len(SCHEMA)
ACTIONS = SHARED.index("actions")

LOWEST, HIGHEST = -12.0, 4.0
"""Limits of the exponents: from no bonus at all to fifty times the range."""
IN_FULL, IN_FULL_SHARED = 4, 2
"""How many of the highest scores are computed in full, at least, where that can matter; and of
candidates, whose guesses are by one model that all rounds have checked."""
OFF = 2.0
"""Times its size that a guessed bonus is taken to be off at the most: an action that is behind all
the same needs no spread in full."""
MANY = 128
"""With more actions, which training has not seen, they cannot all be tried: nothing is due, and the
careful rule is divided by the cube root of how many times more there are."""
TIED = 1e-9
"""Means that differ by less, in units of the rewards' range, are equal but for rounding: as long as
all rewards are, every action is the predicted one."""
CAREFUL = 10.0
"""Rounds before the guard trusts what it knows of the predicted actions' rewards."""


class Policy(NamedTuple):
    """The weights of the policy, and the range of its inputs in training."""

    how: Floats  # (11,) how the learner mixes its members and where they pull to
    gate: Floats  # (shared inputs,)
    bold: Floats  # (inputs,)
    careful: Floats  # (inputs,)
    due: Floats  # (shared inputs,)
    low: Floats  # (inputs,)
    high: Floats  # (inputs,)

    @classmethod
    def rule(cls) -> "Policy":
        """The policy that training starts from."""
        everything = np.full(N_INPUTS, 1e6)
        return cls(
            how=HOW.copy(),
            gate=_weights(
                SHARED,
                one=4.0,
                unexplained=-20.0,
                rounds=-8.0,
                rare=-40.0,
                plenty=-12.0,
                graded=-20.0,
            ),
            bold=_weights(
                SCHEMA,
                one=0.9,
                best=8.0,
                noise=1.0,
                rounds=-0.8,
                average=0.8,
                spread=1.0,
                plays=-0.8,
            ),
            careful=_weights(SCHEMA, one=math.log(0.3), noise=2.0),
            due=_weights(SHARED, one=math.log(0.7)),
            low=-everything,
            high=everything,
        )


def _weights(names: tuple[str, ...], **values: float) -> Floats:
    return np.array([values.get(name, 0.0) for name in names])


class Guard(NamedTuple):
    """What the guard allows, and what it has seen."""

    awake: bool
    budget: float  # c
    seen: Floats  # (3,) cost of exploring; rounds and total surprise of predicted actions
    latest: Floats  # (1,) the fallback of the latest decision, 0 for none; -1: no decision
    fallbacks: Amounts  # (3,) rounds decided and learned; of these, unfamiliar; over budget


class MeleeState(NamedTuple):
    """The learner, the policy, the statistics of the history, and the guard."""

    polopt: Any
    policy: Policy
    guard: Guard
    mu: float
    plays: Amounts  # (K,)
    features: Scratch  # (K, inputs) of the latest context
    means: Scratch  # (K,)
    spreads: Scratch  # (K,)
    dues: Scratch  # (K,) of which a part, the same for all, is added to the scores
    common: Scratch  # (4,) the gate; what all actions share of the two exponents; that part


@dataclass(frozen=True, kw_only=True)
class Melee(RidgeExplorer):
    """Explore by a policy that learned how, for any number of actions, any reward, without tuning.

    Parameters
    ----------
    learner
        `adaptive` (exact where that is feasible, else by diagonals) or `adaptive-diagonal`.
    policy
        `melee`, which comes with the package, or the directory of a trained one.
    guard
        Whether to fall back where the policy is out of its depth.
    mu
        Probability of a uniform action on top of the policy's choices.
    """

    name: ClassVar[str] = "melee"
    takes_candidates: ClassVar[bool] = True
    needs_unit_rewards: ClassVar[bool] = False
    learner: str = learner_choice("adaptive", spread=True)
    ridge: float = number(0.2, 0.0, above=True)
    exact: int = count(500, 0)
    hidden: int = count(32, 0, 1024)
    rescale: bool = flag(True)
    policy: str = text("melee")
    guard: bool = flag(True)
    mu: float = number(0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model(), AdaptiveLearner | AdaptiveDiagonalLearner):
            raise InputError(
                f"melee: its policy needs a learner that estimates its noise, and {self.learner} "
                "does not; use adaptive or adaptive-diagonal"
            )

    def start(self, problem: Problem) -> MeleeState:
        """A fresh learner under the trained policy."""
        trained = load_policy(self.policy)
        return self.start_with(trained.policy, problem, trained.budget)

    @property
    def identity(self) -> str:
        """The settings, and the checksum of the policy's weights."""
        return f"{self.spec}#{load_policy(self.policy).sha256}"

    def start_with(self, policy: Policy, problem: Problem, budget: float = math.inf) -> MeleeState:
        """The same under a given policy, as training needs it."""
        k = problem.n_actions
        polopt = self.new_optimizer(problem)
        polopt.learner.how[:] = policy.how
        mix(polopt.learner)
        return MeleeState(
            polopt=polopt,
            policy=policy,
            guard=Guard(bool(self.guard), float(budget), np.zeros(3), -np.ones(1), np.zeros(3)),
            mu=float(self.mu),
            plays=np.zeros(k),
            features=np.ones((k, N_INPUTS)),
            means=np.zeros(k),
            spreads=np.zeros(k),
            dues=np.zeros(k),
            common=np.zeros(4),
        )

    def with_floor(self, floor: float) -> tuple["Melee", float]:
        """The floor joins μ, so that the guard can tell its draws from the policy's choices."""
        return dataclasses.replace(self, mu=1.0 - (1.0 - self.mu) * (1.0 - floor)), 0.0

    def among_some(self, state: Any) -> Any:
        """The guard keeps no account: the best of all actions may not have been open."""
        if isinstance(state, MeleeState):
            return state._replace(guard=state.guard._replace(budget=math.inf))
        return state._replace(inner=self.among_some(state.inner))

    def bonuses(self, state: MeleeState, x: Floats, t: int) -> Floats:
        """By the spreads that it looks at, most of which are guessed where actions are many.

        Where the guard plays the predicted action there is none.
        """
        n_actions = n_choices(x, len(state.plays))
        melee_distribution(state, x, t, np.zeros(0, np.uint64), np.empty(n_actions))
        fallback = state.guard.latest[0]
        if fallback == 2.0:
            return np.zeros(n_actions)
        if fallback == 1.0:
            return state.spreads[:n_actions].copy()
        return np.array([bonus(state, a) for a in range(n_actions)])

    def diagnostics(self, state: Any) -> dict[str, float]:
        """How often the guard took over, as shares of the rounds that were decided and learned.

        Counting begins anew when contexts are rescaled, up to the 256th round.
        """
        rounds, unfamiliar, over = (float(n) for n in own_state(state).guard.fallbacks)
        return {
            "guard: unfamiliar": unfamiliar / max(rounds, 1.0),
            "guard: over budget": over / max(rounds, 1.0),
        }


def own_state(state: Any) -> MeleeState:
    """The explorer's own state, from behind what readies its contexts."""
    while not isinstance(state, MeleeState):
        state = state.inner
    return state


class Trained(NamedTuple):
    """A trained policy as the explorer uses it."""

    policy: Policy
    budget: float
    sha256: str


@lru_cache(maxsize=32)
def _load(path: str, modified: int) -> Trained:
    shapes = {"how": HOW.shape, "gate": (N_SHARED,), "due": (N_SHARED,)}
    every = dict.fromkeys(("bold", "careful", "low", "high"), (N_INPUTS,))
    kept = artefact.load(
        path, kind="melee", schema=SCHEMA, shapes={**shapes, **every, "budget": (1,)}
    )
    arrays = kept.arrays
    policy = Policy(*(np.ascontiguousarray(arrays[name]) for name in Policy._fields))
    budget = float(arrays["budget"][0])
    if (policy.low > policy.high).any() or budget <= 0.0:
        raise DataError(f"{path}: its range is empty or its budget not positive; train it again")
    inputs = kept.reference.get("features", np.zeros(0))
    if inputs.ndim != 2 or inputs.shape[1] != N_INPUTS or "scores" not in kept.reference:
        raise DataError(f"{path}: its reference decisions are missing; copy the policy again")
    artefact.check_reference(kept, sizes(policy, inputs), path)
    return Trained(policy, budget, kept.sha256)


def load_policy(name: str) -> Trained:
    """A policy by its name or directory; read once as long as it is unchanged."""
    path = artefact.locate(name)
    manifest = path / artefact.MANIFEST
    modified = manifest.stat().st_mtime_ns if manifest.exists() else 0
    return _load(str(path), modified)


def sizes(policy: Policy, features: Floats) -> Floats:
    """The logarithms of the sizes for many inputs (n, N_INPUTS), and of what dues are taken by.

    Outside of any loop; (n, 2).
    """
    held = np.clip(features, policy.low, policy.high)
    shared = held[:, :N_SHARED]
    gate = 1.0 / (1.0 + np.exp(-shared @ policy.gate))
    fewer = np.minimum(math.log(MANY) / 3.0 - features[:, ACTIONS], 0.0)
    bold, careful, due = (
        np.exp(np.clip(exponents, LOWEST, HIGHEST))
        for exponents in (held @ policy.bold, held @ policy.careful + fewer, shared @ policy.due)
    )
    both = np.stack([gate * bold + (1.0 - gate) * careful, (1.0 - gate) * due], axis=1)
    return np.asarray(np.log(np.maximum(both, 1e-30)))


@kernel
def describe(state: MeleeState, x: Floats, n_actions: int, n_inputs: int) -> float:
    """Overwrite the means, and what all actions share of the features; the best of the means."""
    learner, shared, means = state.polopt.learner, state.features[0], state.means[:n_actions]
    predict_all(learner, x, 0, means)
    best = largest(means)
    now, totals = learner.now, learner.totals
    low, span, n = now[LOW], now[SPAN], totals[ROUNDS]
    # As if two rounds of each action had been seen before, of which one of K paid.
    average = ((totals[SUM] - n * low) / span + 2.0) / (n + 2.0 * n_actions)
    average = min(max(average, 0.001), 0.999)
    shared[0] = 1.0
    shared[1] = math.log(1.02 - min(max((best - low) / span, 0.0), 1.0)) / 2.0
    shared[2] = math.log(now[NOISE] / span) / 2.0
    shared[3] = 2.0 * math.log(min(now[NOISE] / now[DEVIATION], 1.5))
    shared[4] = math.log(n + 1.0) / 8.0
    shared[5] = math.log(n_actions) / 3.0
    shared[6] = math.log(average / (1.0 - average)) / 4.0
    shared[7] = math.log(n_inputs) / 4.0
    shared[8] = max(now[RARE], 0.0) / 4.0
    shared[9] = max(-now[RARE], 0.0) / 4.0
    shared[10] = now[GRADED]
    return best


@kernel
def describe_action(state: MeleeState, x: Floats, a: int, n_actions: int, best: float) -> None:
    """Overwrite the features and the due that are the action's own, by its mean and spread."""
    now, row = state.polopt.learner.now, state.features[a]
    rounds = state.polopt.learner.totals[ROUNDS]
    row[N_SHARED] = min((best - state.means[a]) / now[NOISE], 5.0) / 2.0
    row[N_SHARED + 1] = math.log(max(state.spreads[a] / now[NOISE], 1e-9)) / 2.0
    share = (rounds + n_actions) / n_actions
    row[N_SHARED + 2] = math.log((plays_of(x, a, state.plays) + 1.0) / share) / 3.0
    state.dues[a] = 0.0
    if n_actions <= MANY or differ(x):
        variance = own_variance(state.polopt.learner, x, a)
        state.dues[a] = now[NOISE] * math.sqrt(variance * math.log(1.0 + variance * share))


@kernel
def strange(policy: Policy, value: float, j: int) -> bool:
    """Whether a feature is farther outside of its range in training than that is wide."""
    low, high = policy.low[j], policy.high[j]
    width = high - low
    return bool(value < low - width or value > high + width)


@kernel
def held(policy: Policy, value: float, j: int) -> float:
    """A feature within its range in training."""
    return float(min(max(value, policy.low[j]), policy.high[j]))


@kernel
def weigh_shared(state: MeleeState) -> bool:
    """Overwrite `common` with what all actions share; False if they are far from familiar."""
    policy, shared, common = state.policy, state.features[0], state.common
    gate = bold = careful = due = 0.0
    familiar = True
    for j in range(N_SHARED):
        familiar = familiar and not strange(policy, shared[j], j)
        value = held(policy, shared[j], j)
        gate += policy.gate[j] * value
        bold += policy.bold[j] * value
        careful += policy.careful[j] * value
        due += policy.due[j] * value
    common[0] = logistic(gate)
    common[1] = bold
    common[2] = careful + min(math.log(MANY) / 3.0 - shared[ACTIONS], 0.0)
    common[3] = (1.0 - common[0]) * math.exp(min(max(due, LOWEST), HIGHEST))
    return familiar


@kernel
def bonus(state: MeleeState, a: int) -> float:
    """What the spread of an action is worth, and what it is due, in units of reward."""
    policy, row, common = state.policy, state.features[a], state.common
    bold, careful = common[1], common[2]
    for j in range(N_SHARED, N_INPUTS):
        value = held(policy, row[j], j)
        bold += policy.bold[j] * value
        careful += policy.careful[j] * value
    size = common[0] * math.exp(min(max(bold, LOWEST), HIGHEST))
    size += (1.0 - common[0]) * math.exp(min(max(careful, LOWEST), HIGHEST))
    now = state.polopt.learner.now
    return float(size * now[SPAN] * state.spreads[a] / now[NOISE] + common[3] * state.dues[a])


@kernel
def score(
    state: MeleeState, x: Floats, a: int, n_actions: int, best: float, familiar: bool
) -> float:
    """Mean and bonus by the spread that is known of the action, guessed or in full."""
    describe_action(state, x, a, n_actions, best)
    if familiar:
        return float(state.means[a] + bonus(state, a))
    return float(state.means[a] + state.spreads[a])


@kernel
def among_highest(scores: Floats, n: int) -> float:
    """The n-th of the different scores from above, or the lowest if there are fewer."""
    edge = math.inf
    for _ in range(n):
        below = -math.inf
        for a in range(scores.shape[0]):
            if below < scores[a] < edge:
                below = scores[a]
        if below == -math.inf:
            return edge
        edge = below
    return edge


@kernel
def contested(scores: Floats, means: Floats, n: int) -> float:
    """The guessed score from which on spreads are needed in full: that of the n-th, from above.

    Infinite where one action leads by its mean alone, whatever the bonuses of the others may be.
    Overwrites its score then, so that it is the highest.
    """
    leader = 0
    for a in range(scores.shape[0]):
        if scores[a] > scores[leader]:
            leader = a
    for a in range(scores.shape[0]):
        if a != leader and means[a] + OFF * (scores[a] - means[a]) >= means[leader]:
            return among_highest(scores, n)
    scores[leader] = math.inf
    return math.inf


@kernel
def learned_of(state: MeleeState, x: Floats, a: int) -> bool:
    """Whether a choice's model has learned anything: of others the guess is no guess."""
    return bool(differ(x) or plays_of(x, a, state.plays) > 0.0)


@implements(distribution, MeleeState)
def melee_distribution(state: MeleeState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """All mass on the highest score, but for what the guard and μ say."""
    learner, guard, n_actions = state.polopt.learner, state.guard, pmf.shape[0]
    best = describe(state, x, n_actions, choice(x, 0).x.shape[0])
    familiar = weigh_shared(state) or not guard.awake
    rounds = learner.totals[ROUNDS] + 1.0
    allowed = guard.budget * learner.now[DEVIATION] * math.sqrt(n_actions * rounds)
    guard.latest[0] = 0.0
    if guard.awake and guard.seen[0] > allowed:
        guard.latest[0] = 2.0
        for a in range(n_actions):
            pmf[a] = state.means[a]
    else:
        guard.latest[0] = 0.0 if familiar else 1.0
        spread_guess_all(learner, x, 0, state.spreads[:n_actions])
        for a in range(n_actions):
            pmf[a] = score(state, x, a, n_actions, best, familiar)
        edge = contested(pmf, state.means, IN_FULL_SHARED if differ(x) else IN_FULL)
        for a in range(n_actions):
            if pmf[a] < edge:
                pmf[a] = -math.inf
            elif edge < math.inf and learned_of(state, x, a):
                state.spreads[a] = spread(learner, x, a)
                pmf[a] = score(state, x, a, n_actions, best, familiar)
    greedy(pmf)
    mix_uniform(pmf, state.mu)


@implements(learn, MeleeState)
def melee_learn(
    state: MeleeState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Note how well the round had been predicted, then learn it."""
    learner, seen = state.polopt.learner, state.guard.seen
    n_actions = n_choices(x, state.plays.shape[0])
    means = state.means[:n_actions]
    predict_all(learner, x, 0, means)
    predicted, best = means[action], largest(means)
    low, high = learner.now[LOW], learner.now[LOW] + learner.now[SPAN]
    best_within = min(max(best, low), high)
    # What μ draws is not the policy's doing: its own choices have more than 1.5·μ/K.
    own = p * n_actions > 1.5 * state.mu
    behind = best - predicted > TIED * learner.now[SPAN]
    if behind and own:
        expected = best_within + seen[2] / (seen[1] + CAREFUL)
        seen[0] += min(max(expected, low), high) - reward
    elif not behind:
        seen[1] += 1.0
        seen[2] += reward - best_within
    fallbacks, latest = state.guard.fallbacks, state.guard.latest
    if latest[0] >= 0.0:
        fallbacks[0] += 1.0
        fallbacks[1] += 1.0 if latest[0] == 1.0 else 0.0
        fallbacks[2] += 1.0 if latest[0] == 2.0 else 0.0
        latest[0] = -1.0
    state.plays[action] += 1.0
    fit(state.polopt, x, 0, n_actions, action, reward, p, 1.0)
