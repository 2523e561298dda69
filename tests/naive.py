"""Slow twins: every algorithm once more, from its definition, in plain NumPy and Python.

Nothing here imports the package. Contexts come with their intercept.
"""

import copy
import itertools
import math

import numpy as np
from scipy import optimize, stats

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


# --- randomness -------------------------------------------------------------------------------


def scatter(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class SplitMix:
    """The numbers of one phase of one round."""

    def __init__(self, key, t, phase):
        self.position = scatter((key + scatter((2 * t + phase + GOLDEN) & MASK)) & MASK)

    def uniform(self):
        self.position = (self.position + GOLDEN) & MASK
        return (scatter(self.position) >> 11) / 2**53

    def poisson_1(self):
        return int(stats.poisson(1).ppf(self.uniform()))


# --- distributions ----------------------------------------------------------------------------


def greedy(scores):
    best = np.asarray(scores) == np.max(scores)
    return best / best.sum()


def mix_uniform(pmf, mass):
    return (1 - mass) * np.asarray(pmf) + mass / len(pmf)


def raise_to_floor(pmf, floor, everywhere):
    """The q with q_a = max(floor, s·p_a) on the actions that may have mass; s by bisection."""
    pmf = np.asarray(pmf)
    may = np.full(len(pmf), True) if everywhere else pmf > 0

    def raised(s):
        return np.where(may, np.maximum(floor, s * pmf), 0.0)

    if raised(0.0).sum() >= 1.0:
        return raised(0.0) / raised(0.0).sum()
    return raised(optimize.bisect(lambda s: raised(s).sum() - 1, 0, 1 + 1e-9, xtol=1e-15))


def sample(pmf, u):
    left = np.searchsorted(np.cumsum(pmf), u, side="right")
    return int(min(left, np.flatnonzero(np.asarray(pmf) > 0)[-1]))


def probability_of_largest(means, deviations, n_points=200_001):
    """Each normal's density times the chance that all others are below, integrated finely."""
    z = np.linspace(-9, 9, n_points)
    pmf = []
    for a, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
        others = [b for b in range(len(means)) if b != a]
        f = stats.norm.pdf(z)
        for b in others:
            f = f * stats.norm.cdf((mean + deviation * z - means[b]) / deviations[b])
        pmf.append(np.trapezoid(f, z))
    return np.array(pmf)


# --- learners ---------------------------------------------------------------------------------


class Sgd:
    """One linear model; a gradient step per observation that stops at the target."""

    def __init__(self, n_inputs, rate, logistic=False):
        self.w, self.rate, self.logistic = np.zeros(n_inputs), rate, logistic
        self.n_steps = 0

    def predict(self, x):
        z = self.w @ x
        return 1 / (1 + math.exp(-z)) if self.logistic else z

    def learn(self, x, target, weight=1.0):
        error = target - self.predict(x)
        self.n_steps += 1
        rate = self.rate / self.n_steps**0.25
        self.w = self.w + min(rate * weight, 1 / (x @ x)) * error * x


class AdaptiveSgd(Sgd):
    """Ross, Mineiro and Langford (2013), Algorithm 2 (NAG), importance weight in the gradient.

    Lines: rescale the weights to the new scales; predict; N and G; step along the gradient,
    cut where it would carry the prediction past the target.
    """

    def __init__(self, n_inputs, rate, logistic=False):
        super().__init__(n_inputs, rate, logistic)
        self.G, self.s = np.zeros(n_inputs), np.zeros(n_inputs)
        self.t = self.N = 0.0

    def learn(self, x, target, weight=1.0):
        self.t += 1
        for i, size in enumerate(np.abs(x)):
            if size > self.s[i]:
                self.w[i] *= self.s[i] / size
                self.s[i] = size
        error = target - self.predict(x)
        on = x != 0
        self.N += ((x[on] / self.s[on]) ** 2).sum()
        self.G += (weight * error * x) ** 2
        if error == 0 or not on.any():
            return
        direction = np.zeros_like(x)
        direction[on] = x[on] / (self.s[on] * np.sqrt(self.G[on]))
        step = self.rate * math.sqrt(self.t / self.N) * weight
        self.w += min(step, 1 / (direction @ x)) * error * direction


class Ridge:
    """Remembers all observations and solves from scratch after every one of them."""

    def __init__(self, n_inputs, penalty):
        self.seen, self.penalty, self.n_inputs = [], penalty, n_inputs
        self.before = penalty * np.eye(n_inputs), np.zeros(n_inputs)  # information, and Σx·target
        self.solved = None

    def learn(self, x, target, weight=1.0):
        self.seen.append((*x, target, weight))
        self.solved = None

    def solution(self):
        """The weights, and the inverse of the information."""
        if self.solved is None:
            X, y, weights = self.observations()
            w = np.linalg.solve(self.information(), self.before[1] + X.T @ (weights * y))
            self.solved = w, np.linalg.inv(self.information())
        return self.solved

    def observations(self):
        rows = np.array(self.seen).reshape(-1, self.n_inputs + 2)
        return rows[:, :-2], rows[:, -2], rows[:, -1]

    def information(self):
        X, _, weights = self.observations()
        return self.before[0] + (X.T * weights) @ X

    def fade(self, share):
        """The same weights, with larger variances: by one over the share, or as at the start."""
        w, inverse = self.solution()
        largest = np.maximum(1 / self.penalty, np.diag(inverse))
        factors = np.sqrt(np.minimum(np.diag(inverse) / share, largest) / np.diag(inverse))
        information = np.linalg.inv(factors[:, None] * inverse * factors)
        self.seen, self.before, self.solved = [], (information, information @ w), None

    def w(self):
        return self.solution()[0]

    def predict(self, x):
        return x @ self.w()

    def spread(self, x):
        return math.sqrt(x @ self.solution()[1] @ x)

    def spread_by_diagonal(self, x):
        return math.sqrt(x**2 @ np.diag(self.solution()[1]))


class DiagonalRidge:
    """w += error·(x/A)/(1/weight + x·(x/A)) with the diagonal A of the information."""

    def __init__(self, n_inputs, penalty):
        self.w, self.A = np.zeros(n_inputs), np.full(n_inputs, float(penalty))
        self.penalty = penalty

    def learn(self, x, target, weight=1.0):
        gain = (x / self.A) / (1 / weight + x @ (x / self.A))
        self.w = self.w + gain * (target - self.w @ x)
        self.A = self.A + weight * x**2

    def fade(self, share):
        """The same weights, with a share of the information, or what there was at the start."""
        self.A = np.maximum(share * self.A, np.minimum(self.A, self.penalty))

    def predict(self, x):
        return self.w @ x

    def spread(self, x):
        return math.sqrt(x @ (x / self.A))

    spread_by_diagonal = spread


# --- policy optimizers: (target, weight) per action, None where nothing is learned ------------


def targets(optimizer, estimates, action, reward, p):
    """`estimates` are the reward model's, which doubly robust alone looks at."""
    chosen = np.arange(len(estimates)) == action
    if optimizer == "direct":
        return [(reward, 1.0) if c else None for c in chosen]
    if optimizer == "mtr":
        return [(reward, 1.0 / p) if c else None for c in chosen]
    if optimizer == "ips":
        return [(reward / p, 1.0) if c else (0.0, 1.0) for c in chosen]
    pairs = zip(estimates, chosen, strict=True)
    return [(f + (reward - f) / p, 1.0) if c else (f, 1.0) for f, c in pairs]


class Optimizer:
    """K models fitted by an optimizer; `model` makes one."""

    def __init__(self, n_actions, model, optimizer="direct"):
        self.models = [model() for _ in range(n_actions)]
        self.estimators = [model() for _ in range(n_actions)]
        self.optimizer = optimizer

    def predict(self, x):
        return np.array([m.predict(x) for m in self.models])

    def learn(self, x, action, reward, p, times=1.0):
        estimates = [m.predict(x) for m in self.estimators]
        wanted = targets(self.optimizer, estimates, action, reward, p)
        for model, pair in zip(self.models, wanted, strict=True):
            if pair is not None:
                model.learn(x, pair[0], pair[1] * times)
        self.estimators[action].learn(x, reward, times)


# --- explorers: pmf(x, t), learn(x, t, action, rewards, p) --------------------------------------


class Twin:
    """An explorer over models, SGD's by default; `key` is the first word of its random stream.

    What a class annotates is a setting of the explorer.
    """

    def __init__(self, n_actions, n_inputs, key=0, model=None, optimizer="direct", **settings):
        self.n_actions, self.key, self.optimizer = n_actions, key, optimizer
        self.new_model = model or (lambda: Sgd(n_inputs, 0.1))
        self.f = Optimizer(n_actions, self.new_model, optimizer)
        self.__dict__.update(settings)
        self.begin()

    def begin(self):
        pass

    def learn(self, x, t, action, rewards, p):
        self.f.learn(x, action, rewards[action], p)


class EpsilonGreedy(Twin):
    epsilon: float

    def pmf(self, x, t):
        return mix_uniform(greedy(self.f.predict(x)), self.epsilon)


class EpsilonDecreasing(Twin):
    epsilon: float

    def pmf(self, x, t):
        return mix_uniform(greedy(self.f.predict(x)), self.epsilon / t)


class Softmax(Twin):
    temperature: float

    def pmf(self, x, t):
        weights = np.exp(self.f.predict(x) / self.temperature)
        return weights / weights.sum()


class SquareCb(Twin):
    gamma: float

    def pmf(self, x, t):
        f = self.f.predict(x)
        best = f == f.max()
        pmf = np.where(best, 0, 1 / (self.n_actions + self.gamma * math.sqrt(t) * (f.max() - f)))
        return pmf + best * (1 - pmf.sum()) / best.sum()


class TauFirst(Twin):
    exploring: int
    stop: bool

    def pmf(self, x, t):
        if t <= self.exploring:
            return np.full(self.n_actions, 1 / self.n_actions)
        return greedy(self.f.predict(x))

    def learn(self, x, t, action, rewards, p):
        if t <= self.exploring or not self.stop:
            self.f.learn(x, action, rewards[action], p)


class EgEpsilonGreedy(Twin):
    """Li et al. (2010), by joint probabilities of candidate and action."""

    tau: float
    beta: float
    kappa: float
    candidates = np.array([0.06, 0.11, 0.16, 0.21, 0.26, 0.31, 0.36, 0.41, 0.46, 0.51])

    def begin(self):
        self.w = [1.0] * 10
        self.q = np.full(10, 0.1)

    def joint(self, x):
        """P(candidate, action), shape (10, K)."""
        best = greedy(self.f.predict(x))
        plays = [(1 - e) * best + e / self.n_actions for e in self.candidates]
        return self.q[:, None] * np.array(plays)

    def pmf(self, x, t):
        return self.joint(x).sum(axis=0)

    def learn(self, x, t, action, rewards, p):
        given_action = self.joint(x)[:, action] / self.joint(x)[:, action].sum()
        d = sample(given_action, SplitMix(self.key, t, phase=1).uniform())
        for k in range(10):
            r = rewards[action] if k == d else 0.0
            self.w[k] *= math.exp(self.tau * (r + self.beta) / self.q[k])
        self.q = (1 - self.kappa) * np.array(self.w) / sum(self.w) + self.kappa / 10
        self.f.learn(x, action, rewards[action], p)


class Cover(Twin):
    policies: int
    psi: float
    everywhere = True

    def begin(self):
        self.others = [
            [self.new_model() for _ in range(self.n_actions)] for _ in range(self.policies - 1)
        ]

    def choices(self, x):
        """What each policy plays, policy 1 first, ties split."""
        yield greedy(self.f.predict(x))
        for models in self.others:
            yield greedy([m.predict(x) for m in models])

    def floor(self, t):
        return min(1 / self.n_actions, 1 / math.sqrt(self.n_actions * t))

    def pmf(self, x, t):
        mass = sum(choice / self.policies for choice in self.choices(x))
        return raise_to_floor(mass, self.floor(t), self.everywhere)

    def learn(self, x, t, action, rewards, p):
        m = self.floor(t)
        estimates = self.f.predict(x)
        estimates[action] += (rewards[action] - estimates[action]) / p
        earlier = itertools.accumulate(choice / self.policies for choice in self.choices(x))
        for q, models in zip(list(earlier)[:-1], self.others, strict=True):
            for a, model in enumerate(models):
                model.learn(x, estimates[a] + self.psi * m / max(q[a], m))
        self.f.learn(x, action, rewards[action], p)


class CoverNu(Cover):
    everywhere = False


class Bagging(Twin):
    bags: int
    greedify: bool

    def begin(self):
        self.all = [
            Optimizer(self.n_actions, self.new_model, self.optimizer) for _ in range(self.bags)
        ]

    def pmf(self, x, t):
        return sum(greedy(f.predict(x)) for f in self.all) / self.bags

    def learn(self, x, t, action, rewards, p):
        rng = SplitMix(self.key, t, phase=1)
        for i, f in enumerate(self.all):
            times = rng.poisson_1()
            if i == 0 and self.greedify:
                times = 1
            if times:
                f.learn(x, action, rewards[action], p, times)


class Uniform(Twin):
    def pmf(self, x, t):
        return np.full(self.n_actions, 1 / self.n_actions)


class RidgeTwin(Twin):
    """An explorer over a ridge per action, by its means and spreads."""

    def __init__(self, n_actions, n_inputs, key=0, model=None, ridge=0.1, **settings):
        model = model or (lambda: Ridge(n_inputs, ridge))
        super().__init__(n_actions, n_inputs, key, model, **settings)

    def pmf(self, x, t):
        means = self.f.predict(x)
        # Equal in exact arithmetic, and so tied in the kernels, if equal in ten digits here.
        spreads = np.array([m.spread(x) for m in self.f.models])
        return self.choose(means.round(10), spreads.round(10), t)

    def choose(self, means, spreads, t):
        raise NotImplementedError


class LinUcb(RidgeTwin):
    alpha: float

    def choose(self, means, spreads, t):
        return greedy(means + self.alpha * spreads)


class GatedUcb(RidgeTwin):
    scale: float
    power: float

    def choose(self, means, spreads, t):
        best = np.clip(means.max(), 0, 1)
        return greedy(means + self.scale * (1 - best) ** self.power * spreads)


class RegCb(RidgeTwin):
    mellowness: float

    def bounds(self, means, spreads, t):
        beta = self.mellowness * math.log(self.n_actions * t)
        width = math.sqrt(beta) * spreads
        return np.clip(means - width, 0, 1), np.clip(means + width, 0, 1)


class RegCbOpt(RegCb):
    def choose(self, means, spreads, t):
        return greedy(self.bounds(means, spreads, t)[1])


class RegCbElim(RegCb):
    def choose(self, means, spreads, t):
        lower, upper = self.bounds(means, spreads, t)
        left = upper >= lower.max()
        return left / left.sum()


class Thompson(RidgeTwin):
    scale: float
    atol = 2e-3  # the kernel integrates coarsely

    def choose(self, means, spreads, t):
        return probability_of_largest(means, self.scale * spreads, n_points=6001)


class Banditron(Twin):
    """Kakade, Shalev-Shwartz and Tewari (2008), with ties for the prediction shared."""

    mu: float

    def begin(self):
        self.W = [0.0] * self.n_actions  # rows of zeros, however long

    def predict(self, x):
        return np.array([np.sum(row * x) for row in self.W])

    def pmf(self, x, t):
        return mix_uniform(greedy(self.predict(x)), self.mu)

    def learn(self, x, t, action, rewards, p):
        predicted = greedy(self.predict(x))
        for a in range(self.n_actions):
            self.W[a] = self.W[a] + x * ((a == action) * rewards[action] / p - predicted[a])


class FullInformation(RidgeTwin):
    def choose(self, means, spreads, t):
        return greedy(means)

    def learn(self, x, t, action, rewards, p):
        for model, reward in zip(self.f.models, rewards, strict=True):
            model.learn(x, reward)


def only(twin, actions):
    """The twin of one that knows these actions alone: what decides where the others are closed."""

    def some(models):
        return [models[a] for a in actions]

    def among(optimizer):
        one = copy.copy(optimizer)
        one.models = some(optimizer.models)
        return one

    one = copy.copy(twin)
    one.n_actions = len(actions)
    one.f = among(twin.f)
    if hasattr(twin, "others"):
        one.others = [some(models) for models in twin.others]
    if hasattr(twin, "all"):
        one.all = [among(optimizer) for optimizer in twin.all]
    if hasattr(twin, "W"):
        one.W = some(twin.W)
    return one


# --- around an explorer: hidden units, and a scaling of its own ---------------------------------


class Widened:
    """A twin behind hidden units."""

    def __init__(self, twin, columns, weights, n_units):
        self.twin, self.drawn = twin, (columns, weights)
        self.units = columns[:n_units], weights[:n_units]

    def choose(self, inputs, actions, rewards):
        """Use the units that went most closely with the rewards of single actions.

        Unless all of them together are worth little more than they would be by luck.
        """
        values = np.array([widened(x, *self.drawn)[len(x) - 1 : -1] for x in inputs])
        values *= math.sqrt(len(self.drawn[0])) / 2  # as they are, less 0.3
        worth = np.zeros(len(self.drawn[0]))
        luck = squares = 0.0
        for action in set(actions):
            at = np.array(actions) == action
            h, r = values[at] - values[at].mean(axis=0), np.array(rewards)[at]
            variance = (h * h).sum(axis=0)
            worth += (h.T @ (r - r.mean())) ** 2 / (variance + 1)
            luck += (variance / (variance + 1)).sum()
            squares += ((r - r.mean()) ** 2).sum()
        left = squares / max(len(actions) - len(set(actions)), 1)
        if luck * left <= 1e-9 or worth.sum() <= 1.15 * luck * left:
            return
        order = sorted(range(len(worth)), key=lambda unit: -round(float(worth[unit]), 7))
        used = order[: len(self.units[0])]
        self.units = self.drawn[0][used], self.drawn[1][used]

    def pmf(self, x, t):
        return self.twin.pmf(widened(x, *self.units), t)

    def learn(self, x, t, action, rewards, p):
        self.twin.learn(widened(x, *self.units), t, action, rewards, p)


class Rescaled:
    """A twin that is made anew, and learns everything again, when its contexts are rescaled.

    By the first `first`, 2·`first`, ... 256 of them. Contexts come divided by √d, or `unscaled`.
    """

    def __init__(self, make, first=32, unscaled=False):
        self.make, self.first, self.unscaled = make, first, unscaled
        self.twin, self.rounds, self.n_known = make(), [], 0

    def inputs(self, x):
        rows = np.array([x[:-1]])
        if self.n_known == 0:
            size = math.sqrt(rows.shape[1])
            raw = rows[0] if self.unscaled else rows[0] * size
            return np.append(np.clip(raw, -5, 5) / size, 1.0)
        known = np.array([x[:-1] for x, *_ in self.rounds[: self.n_known]])
        return scaled(known, rows, "standardize")[0]

    def pmf(self, x, t):
        return self.twin.pmf(self.inputs(x), t)

    def learn(self, x, t, action, rewards, p):
        self.rounds.append((x, t, action, rewards, p))
        n, left = len(self.rounds), self.rounds[-1:]
        if self.first <= n <= 256 and n & (n - 1) == 0:
            self.n_known, self.twin, left = n, self.make(), self.rounds
            if n >= 64 and isinstance(self.twin, Widened):
                actions = [action for _, _, action, _, _ in left]
                rewards = [given[action] for _, _, action, given, _ in left]
                self.twin.choose([self.inputs(x) for x, *_ in left], actions, rewards)
        for x, *rest in left:
            self.twin.learn(self.inputs(x), *rest)


# --- hidden units, cold start -------------------------------------------------


def ramp(z, slope, offset):
    """From 0 to 1 in a straight line, or from 1 to 0."""
    return min(max(slope * z + offset, 0.0), 1.0)


def widened(x, columns, weights):
    """[features, hidden units, 1] of an x that ends in 1, each unit the product of two ramps.

    The features were divided by √d, which slopes undo; the units, less 0.3, by half the square root
    of their number.
    """
    pairs = zip(columns, weights, strict=True)
    units = np.array([ramp(x[i], u, b) * ramp(x[j], v, c) for (i, j), (u, b, v, c) in pairs])
    return np.concatenate([x[:-1], (units - 0.3) * 2 / math.sqrt(len(units)), [1.0]])


def cold_inputs(rows):
    """All rows so far in the scaling of the moment: that of the first 2, 4, 8, ... 256 of them."""
    n, d = rows.shape
    if n < 2:
        return np.column_stack([np.clip(rows, -5, 5) / math.sqrt(d), np.ones(n)])
    return scaled(rows[: min(2 ** (n.bit_length() - 1), 256)], rows, "standardize")


def believed(rewards):
    """The least and the greatest reward that would be believed after these."""
    middle = sorted(rewards)[1:-1]
    if not middle or min(middle) == max(middle):
        return -math.inf, math.inf
    mean = np.mean(middle)
    return mean - 10 * (mean - min(middle)), mean + 10 * (max(middle) - mean)


def units(rewards, low, high):
    """Rewards between these as numbers from 0 to 1."""
    if low == high:
        return [0.5] * len(rewards)
    return [(r - low) / (high - low) for r in rewards]


def cut_in_turn(rewards, before):
    """Each of these cut by what was seen before it."""
    seen = list(before)
    for r in rewards:
        seen.append(np.clip(r, *believed(seen)))
    return seen[len(before) :]


def units_learned(rewards):
    """What an explorer that learns its first 256 rounds again has learned for all of these."""
    kept, later = list(rewards[:256]), list(rewards[256:])
    by = 2 ** (len(kept).bit_length() - 1)  # rounds that set the map
    if len(set(kept[:by])) == 1:
        by = next((i + 1 for i in range(len(kept)) if kept[i] != kept[0]), by)
    cut = [np.clip(r, *believed(kept[:by])) for r in kept[:by]]
    low, high = min(cut), max(cut)
    if low == high and (different := [r for r in later if r != low]):
        gap = abs(different[0] - low)
        low, high = low - gap, low + gap
    return units(cut + cut_in_turn(kept[by:] + later, cut), low, high)


def units_at_once(rewards):
    """What one that learns nothing again learned of each, in [0, 1] for the first 256."""
    found, ends = [], None
    seen: list[float] = []
    for n, r in enumerate(rewards, start=1):
        seen += cut_in_turn([r], seen)
        doubled = n in (2, 4, 8, 16, 32, 64, 128, 256)
        if len(set(seen)) > 1 and (ends is None or doubled):
            gap = abs(seen[-1] - seen[0])
            ends = (min(seen), max(seen)) if doubled else (seen[0] - gap, seen[0] + gap)
        u = 0.5 if ends is None else units(seen[-1:], *ends)[0]
        found.append(min(max(u, 0.0), 1.0) if n <= 256 else u)
    return found


# --- preparation ------------------------------------------------------------------------------


def scaled(train, rows, method):
    """Rows scaled by the training rows' statistics, cut at ±5, over √d, with an intercept."""
    if method == "standardize":
        shift, size = train.mean(axis=0), train.std(axis=0)
    else:
        shift, size = train.min(axis=0), train.max(axis=0) - train.min(axis=0)
    size = np.where(size <= 1e-12 * np.abs(train).max(axis=0), 1.0, size)
    x = np.clip((rows - shift) / size, -5, 5) / math.sqrt(rows.shape[1])
    return np.column_stack([x, np.ones(len(rows))])


def cross_validation(contexts, rewards):
    """{(method, rate): (reward lost, squared error)} over three folds of interleaved rows."""
    fold = np.arange(len(contexts)) % 3
    result = {}
    for method in ("standardize", "minmax"):
        for rate in (0.01, 0.03, 0.1, 0.3, 1.0):
            earned = squared = 0.0
            for held in range(3):
                x = scaled(contexts[fold != held], contexts, method)
                models = [Sgd(x.shape[1], rate) for _ in range(rewards.shape[1])]
                for _ in range(5):
                    for i in np.flatnonzero(fold != held):
                        for a, model in enumerate(models):
                            model.learn(x[i], rewards[i, a])
                for i in np.flatnonzero(fold == held):
                    f = np.array([m.predict(x[i]) for m in models])
                    earned += rewards[i, f.argmax()]
                    squared += ((rewards[i] - f) ** 2).sum()
            result[method, rate] = (-earned, squared)
    return result
