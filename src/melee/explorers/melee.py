"""MELEE: optimism whose size, action by action and round by round, was learned.

score_a = mean_a + exp(g(ψ_a))·spread_a over a ridge with hidden units; the highest score is played.
Mean and spread are the ridge's. g is a small network, one for all actions, trained on synthetic
tasks by imitation and then by evolution (`melee.meta`); it starts as the rule of `gated-ucb`. Its
inputs ψ_a mean the same on every task, whatever its features, number of actions and reward scale:

- shared by all actions: the rounds so far, the number of actions and of inputs, the model's squared
  error on what it predicted before seeing it, the average reward, the best mean m*, the average of
  reward minus prediction, the recent average reward;
- of the action: its mean, how often it was played, its gap to m*, its spread, its spread beside the
  predicted action's, its average reward, whether it is the predicted one.

Renaming actions renames the choice, and their number is free. No labelled row is needed.

A guard watches over g. Inputs are held within the range met in training; where one is far outside
(by more than the range is wide) the rule that training started from takes over for the round. And
the rounds in which another than the predicted action was played are compared with what the
predicted one was expected to earn: when that comes to more than a budget c·√(K·t), the predicted
action is played until the budget has grown again.
"""

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from melee import artefact
from melee.arrays import Amounts, Floats, Scratch, Within, Words
from melee.compiled import implements, kernel
from melee.distributions import greedy, largest, mix_uniform
from melee.errors import DataError
from melee.explorers.base import Problem, RidgeExplorer
from melee.explorers.interface import distribution, learn
from melee.learners.interface import predict_all, spread
from melee.policy_optimizers import fit
from melee.settings import count, flag, number, text

SHARED = ("one", "rounds", "actions", "inputs", "error", "reward", "best", "bias", "recent")
PER_ACTION = ("mean", "plays", "gap", "spread", "relative spread", "average", "predicted")
SCHEMA = (*SHARED, *PER_ACTION)
"""The inputs of the network, in the order of its weights."""
N_SHARED, N_INPUTS = len(SHARED), len(SCHEMA)

SCALE, POWER = 1.2, 4.0
RULE: Floats = np.array(
    [{"one": math.log(SCALE), "best": 4.0 * POWER}.get(name, 0.0) for name in SCHEMA]
)
"""Linear weights that give nearly the rule of gated-ucb: 1.2·(1.02 - m*)⁴.

The input `best` is log(1.02 - m*)/4.
"""

RECENT = 0.05
"""How fast the recent average forgets."""
CAREFUL = 10.0
"""Rounds before the guard trusts what it knows of the predicted actions' rewards."""


class Network(NamedTuple):
    """g, and the range of its inputs in training."""

    linear: Floats  # (inputs,)
    inner: Floats  # (units, inputs)
    outer: Floats  # (units,)
    low: Floats  # (inputs,)
    high: Floats  # (inputs,)

    @classmethod
    def rule(cls, n_units: int = 0) -> "Network":
        """The network that training starts from, of any width: the rule of gated-ucb."""
        everything = np.full(N_INPUTS, 1e6)
        return cls(
            RULE.copy(), np.zeros((n_units, N_INPUTS)), np.zeros(n_units), -everything, everything
        )


class Guard(NamedTuple):
    """What the guard allows, and what it has seen."""

    awake: bool
    budget: float  # c
    seen: Floats  # (3,) cost of exploring; rounds and total surprise of predicted actions
    latest: Floats  # (1,) the fallback of the latest decision, 0 for none; -1: no decision
    fallbacks: Amounts  # (3,) rounds decided and learned; of these, unfamiliar; over budget


class MeleeState(NamedTuple):
    """The ridge, the network, the statistics of the history, and the guard."""

    polopt: Any
    network: Network
    guard: Guard
    mu: float
    totals: Annotated[Floats, Within((0.0, 0.0, 0.0, -1e150, 0.0))]
    # (5,) rounds, squared errors, rewards, errors, recent average reward
    plays: Amounts  # (K,)
    sums: Amounts  # (K,) of rewards
    features: Scratch  # (K, inputs) of the latest context
    means: Scratch  # (K,)
    spreads: Scratch  # (K,)
    within: Scratch  # (units,) what all actions share of the hidden layer


@dataclass(frozen=True, kw_only=True)
class Melee(RidgeExplorer):
    """Explore by a policy that learned how, for any number of actions, without labels or tuning.

    Parameters
    ----------
    policy
        `melee`, which comes with the package, or the directory of a trained one.
    guard
        Whether to fall back where the policy is out of its depth.
    mu
        Probability of a uniform action on top of the policy's choices.
    """

    name: ClassVar[str] = "melee"
    ridge: float = number(0.2, 0.0, above=True)
    exact: int = count(500, 0)
    hidden: int = count(48, 0, 1024)
    rescale: bool = flag(True)
    policy: str = text("melee")
    guard: bool = flag(True)
    mu: float = number(0.0, 0.0, 1.0)

    def start(self, problem: Problem) -> MeleeState:
        """A fresh ridge under the network of the trained policy."""
        policy = load_policy(self.policy)
        return self.start_with(policy.network, problem, policy.budget)

    @property
    def identity(self) -> str:
        """The settings, and the checksum of the policy's weights."""
        return f"{self.spec}#{load_policy(self.policy).sha256}"

    def start_with(
        self, network: Network, problem: Problem, budget: float = math.inf
    ) -> MeleeState:
        """The same under a given network, as training needs it."""
        k = problem.n_actions
        return MeleeState(
            polopt=self.new_optimizer(problem),
            network=network,
            guard=Guard(bool(self.guard), float(budget), np.zeros(3), -np.ones(1), np.zeros(3)),
            mu=float(self.mu),
            totals=np.array([0.0, 0.25, 0.5, 0.0, 0.5]),
            plays=np.zeros(k),
            sums=np.zeros(k),
            features=np.ones((k, N_INPUTS)),
            means=np.zeros(k),
            spreads=np.zeros(k),
            within=np.zeros(len(network.outer)),
        )

    def with_floor(self, floor: float) -> tuple["Melee", float]:
        """The floor joins μ, so that the guard can tell its draws from the policy's choices."""
        return dataclasses.replace(self, mu=1.0 - (1.0 - self.mu) * (1.0 - floor)), 0.0

    def among_some(self, state: Any) -> Any:
        """The guard keeps no account: the best of all actions may not have been open."""
        if isinstance(state, MeleeState):
            return state._replace(guard=state.guard._replace(budget=math.inf))
        return state._replace(inner=self.among_some(state.inner))

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


class MeleePolicy(NamedTuple):
    """A trained policy as the explorer uses it."""

    network: Network
    budget: float
    sha256: str


@lru_cache(maxsize=32)
def _load(path: str, modified: int) -> MeleePolicy:
    any_width = {"inner": (-1, N_INPUTS), "outer": (-1,)}
    ranges = dict.fromkeys(("linear", "low", "high"), (N_INPUTS,))
    policy = artefact.load(
        path, kind="melee", schema=SCHEMA, shapes={**any_width, **ranges, "budget": (1,)}
    )
    arrays = policy.arrays
    network = Network(*(np.ascontiguousarray(arrays[name]) for name in Network._fields))
    budget = float(arrays["budget"][0])
    if len(network.inner) != len(network.outer):
        raise DataError(f"{path}: its network does not fit together; train the policy again")
    if (network.low > network.high).any() or budget <= 0.0:
        raise DataError(f"{path}: its range is empty or its budget not positive; train it again")
    inputs = policy.reference.get("features", np.zeros(0))
    if inputs.ndim != 2 or inputs.shape[1] != N_INPUTS or "scores" not in policy.reference:
        raise DataError(f"{path}: its reference decisions are missing; copy the policy again")
    artefact.check_reference(policy, exponents(network, inputs), path)
    return MeleePolicy(network, budget, policy.sha256)


def load_policy(name: str) -> MeleePolicy:
    """A policy by its name or directory; read once as long as it is unchanged."""
    path = artefact.locate(name)
    manifest = path / artefact.MANIFEST
    modified = manifest.stat().st_mtime_ns if manifest.exists() else 0
    return _load(str(path), modified)


def exponents(network: Network, features: Floats) -> Floats:
    """The network's outputs for many inputs (n, N_INPUTS), outside of any loop."""
    held = np.clip(features, network.low, network.high)
    hidden = np.tanh(held @ network.inner.T)
    return np.clip(held @ network.linear + hidden @ network.outer, LOWEST, HIGHEST)


LOWEST, HIGHEST = -12.0, 4.0
"""Limits of the exponent: from no bonus at all to fifty times the spread."""


@kernel
def describe(state: MeleeState, x: Floats) -> None:
    """Overwrite means, spreads and the features of every action for this context."""
    learner, features = state.polopt.learner, state.features
    means, spreads, totals = state.means, state.spreads, state.totals
    n_actions = means.shape[0]
    predict_all(learner, x, 0, means)
    best, widest = means[0], 0.0
    for a in range(n_actions):
        spreads[a] = max(spread(learner, x, a), 1e-9)
        if means[a] > best or (means[a] == best and spreads[a] > widest):
            best, widest = means[a], spreads[a]
    n = totals[0] + 1.0
    average = totals[2] / n
    rounds, actions = math.log(n) / 8.0, math.log(n_actions) / 3.0
    inputs, error = math.log(x.shape[0]) / 4.0, math.log(totals[1] / n) / 3.0
    best_mean = math.log(1.02 - min(max(best, 0.0), 1.0)) / 4.0
    bias = 4.0 * totals[3] / (n + 4.0)
    beside = math.log(widest)
    for a in range(n_actions):
        row = features[a]
        row[0] = 1.0
        row[1] = rounds
        row[2] = actions
        row[3] = inputs
        row[4] = error
        row[5] = average
        row[6] = best_mean
        row[7] = bias
        row[8] = totals[4]
        row[9] = math.log(1.02 - min(max(means[a], 0.0), 1.0)) / 4.0
        row[10] = math.log(1.0 + state.plays[a]) / 6.0
        row[11] = min(best - means[a], 1.5)
        size = math.log(spreads[a])
        row[12] = size / 2.0
        row[13] = size - beside
        row[14] = (state.sums[a] + average) / (state.plays[a] + 1.0)
        row[15] = 1.0 if means[a] == best else 0.0


@kernel
def hold(network: Network, features: Floats) -> bool:
    """Hold features within their range in training; False if one is far outside of it."""
    familiar = True
    for a in range(features.shape[0]):
        for j in range(N_SHARED if a > 0 else 0, N_INPUTS):
            low, high = network.low[j], network.high[j]
            width = high - low
            value = features[a, j]
            if value < low - width or value > high + width:
                familiar = False
    for a in range(features.shape[0]):
        for j in range(N_INPUTS):
            features[a, j] = min(max(features[a, j], network.low[j]), network.high[j])
    return familiar


@kernel
def exponent(network: Network, within: Floats, features: Floats, a: int) -> float:
    """g(ψ_a), with what all actions share of its hidden layer already in `within`."""
    total = 0.0
    for j in range(N_INPUTS):
        total += network.linear[j] * features[a, j]
    for unit in range(within.shape[0]):
        value = within[unit]
        for j in range(N_SHARED, N_INPUTS):
            value += network.inner[unit, j] * features[a, j]
        total += network.outer[unit] * math.tanh(value)
    return min(max(total, LOWEST), HIGHEST)


@implements(distribution, MeleeState)
def melee_distribution(state: MeleeState, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """All mass on the highest score, but for what the guard and μ say."""
    network, guard, features, within = state.network, state.guard, state.features, state.within
    describe(state, x)
    n_actions = pmf.shape[0]
    gate = SCALE * math.exp(4.0 * POWER * features[0, 6])
    familiar = hold(network, features)
    allowed = guard.budget * math.sqrt(n_actions * (state.totals[0] + 1.0))
    guard.latest[0] = 0.0
    if guard.awake and guard.seen[0] > allowed:
        guard.latest[0] = 2.0
        for a in range(n_actions):
            pmf[a] = state.means[a]
    elif guard.awake and not familiar:
        guard.latest[0] = 1.0
        for a in range(n_actions):
            pmf[a] = state.means[a] + gate * state.spreads[a]
    else:
        for unit in range(within.shape[0]):
            within[unit] = 0.0
            for j in range(N_SHARED):
                within[unit] += network.inner[unit, j] * features[0, j]
        for a in range(n_actions):
            size = math.exp(exponent(network, within, features, a))
            pmf[a] = state.means[a] + size * state.spreads[a]
    greedy(pmf)
    mix_uniform(pmf, state.mu)


@implements(learn, MeleeState)
def melee_learn(
    state: MeleeState, x: Floats, t: int, rng: Words, action: int, reward: float, p: float
) -> None:
    """Note how well the round had been predicted, then fit the ridge to it."""
    learner, totals, seen = state.polopt.learner, state.totals, state.guard.seen
    predict_all(learner, x, 0, state.means)
    predicted, best = state.means[action], largest(state.means)
    best_within = min(max(best, 0.0), 1.0)
    # What μ draws is not the policy's doing: its own choices have more than 1.5·μ/K.
    own = p * state.plays.shape[0] > 1.5 * state.mu
    if predicted < best and own:
        expected = best_within + seen[2] / (seen[1] + CAREFUL)
        seen[0] += min(max(expected, 0.0), 1.0) - reward
    elif predicted == best:
        seen[1] += 1.0
        seen[2] += reward - best_within
    fallbacks, latest = state.guard.fallbacks, state.guard.latest
    if latest[0] >= 0.0:
        fallbacks[0] += 1.0
        fallbacks[1] += 1.0 if latest[0] == 1.0 else 0.0
        fallbacks[2] += 1.0 if latest[0] == 2.0 else 0.0
        latest[0] = -1.0
    error = reward - predicted
    totals[0] += 1.0
    totals[1] += error * error
    totals[2] += reward
    totals[3] += error
    totals[4] += RECENT * (reward - totals[4])
    state.plays[action] += 1.0
    state.sums[action] += reward
    fit(state.polopt, x, 0, state.plays.shape[0], action, reward, p, 1.0)
