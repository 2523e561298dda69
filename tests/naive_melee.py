"""Slow twins of `melee` and of its learner, from their definitions and by whole histories."""

import copy
import functools
import math
from collections import deque
from typing import Any

import numpy as np

from melee.learners import forest
from tests.naive import DiagonalRidge, Ridge, SplitMix, greedy, mix_uniform


def logistic(z):
    return 1 / (1 + math.exp(-z))


def until_it_learns(method):
    """Whatever is asked twice between two rounds is computed once."""

    @functools.wraps(method)
    def asked(self, *args):
        key = method.__name__, *args
        if key not in self.known:
            self.known[key] = method(self, *args)
        return self.known[key]

    return asked


CHANGE = None
"""In a history, instead of a context or a round: here less is trusted of what was before."""


def faded(history):
    """The same without the changes in it: before each, what comes last of a round is a tenth."""
    share, rounds = 1.0, []
    for entry in reversed(history):
        if entry is CHANGE:
            share *= 0.1
        else:
            rounds.append((*entry[:-1], share * entry[-1]))
    return rounds[::-1]


class Leaf:
    """Values of each row with their weights: what growing said, and all rounds that came later."""

    def __init__(self, said):
        self.histories = [[pair] for pair in said]

    def find(self, x):
        return self

    def leaves(self):
        return [self]

    def seen(self, row):
        return sum(weight for _, weight in faded(self.histories[row]))

    def value(self, row):
        return sum(value * weight for value, weight in faded(self.histories[row])) / self.seen(row)


class Cut:
    """Where a tree goes one way up to a place in a column, and another beyond."""

    def __init__(self, column, place):
        self.column, self.place, self.sides = column, place, []

    def find(self, x):
        return self.sides[int(x[self.column] > self.place)].find(x)

    def leaves(self):
        return [leaf for side in self.sides for leaf in side.leaves()]


class Forest:
    """Trees that all rows share, each grown whenever the rounds from which they grow are due."""

    def __init__(self, n_rows, n_features, n_trees):
        self.n_rows, self.n_features = n_rows, n_features
        self.trees: list[Any] = [None] * n_trees
        self.most = forest.KEPT if n_trees else 0
        self.kept = []  # row, context, target, weight
        self.n_kept = 0

    def is_grown(self):
        """All of them, and one has a cut."""
        return None not in self.trees and any(isinstance(tree, Cut) for tree in self.trees)

    def values(self, row, x):
        return [tree.find(x).value(row) for tree in self.trees] if self.is_grown() else [0.0]

    def doubts(self, row, x):
        seen = [tree.find(x).seen(row) for tree in self.trees] if self.is_grown() else [1.0]
        return 1 / np.sqrt(seen)

    def learn(self, row, x, target, weight):
        """The tree that is due, or nothing."""
        for tree in filter(None, self.trees):
            tree.find(x).histories[row].append((target, weight))
        if self.n_kept == self.most:
            return None
        self.kept.append((row, x, target, weight))
        self.n_kept += 1
        begins = [forest.FEWEST * 2**i for i in range(12)]
        n_trees = len(self.trees)
        times = {n + n * tree / n_trees: tree for n in begins for tree in range(n_trees)}
        return times.get(self.n_kept)

    def change(self):
        self.kept.append(CHANGE)
        for tree in filter(None, self.trees):
            for leaf in tree.leaves():
                for history in leaf.histories:
                    history.append(CHANGE)

    def grow(self, tree, averages, known, least):
        """Nodes in the order in which they are made, two by two."""
        rounds = [
            (row, x, weight * (target - averages[row]), weight)
            for row, x, target, weight in faded(self.kept)
        ]
        fewest = max(forest.LEAST, math.ceil(len(rounds) / forest.LEAVES))
        rng = SplitMix(0, self.n_kept * forest.TREES + tree, phase=1)
        tops: list[Any] = []
        waiting: deque[Any] = deque([(tops, rounds, None)])
        while waiting:
            siblings, rounds, above = waiting.popleft()
            said, node = self.said(rounds, above, known), None
            if len(rounds) >= 2 * fewest:
                node = self.best_cut(rounds, rng, fewest, least)
            if node:
                for part in self.divided(rounds, node):
                    waiting.append((node.sides, part, said))
            else:
                node = Leaf([(averages[row] + excess, n) for row, (excess, n) in enumerate(said)])
            siblings.append(node)
        self.trees[tree] = tops[0]

    def sums(self, rounds):
        """By rows: of the excess, and of the weights."""
        found = np.zeros((2, self.n_rows))
        for row, _, excess, weight in rounds:
            found[:, row] += excess, weight
        return found

    def said(self, rounds, above, known):
        """What each row earns beside its average, and how many rounds say so."""
        excess, weights = self.sums(rounds)
        if above is None:
            return [(0.0, max(n, weight)) for n, weight in zip(known, weights, strict=True)]
        told = []
        for (value, n), own, weight in zip(above, excess, weights, strict=True):
            n_above = min(n - weight, forest.FIRM)
            told.append(((own + n_above * value) / (weight + n_above), weight + n_above))
        return told

    def divided(self, rounds, cut):
        sides: Any = [], []
        for round_ in rounds:
            sides[int(round_[1][cut.column] > cut.place)].append(round_)
        return sides

    def best_cut(self, rounds, rng, fewest, least):
        """The first of those that gain most, among some at random."""

        def squares(*sides):
            return sum((self.sums(side)[0] ** 2 / len(side)).sum() for side in sides)

        best, found = squares(rounds) * (1 + forest.CLOSE) + least, None
        for _ in range(forest.TRIED):
            column = int(rng.uniform() * self.n_features)
            one, other = (rounds[int(rng.uniform() * len(rounds))][1][column] for _ in range(2))
            cut = Cut(column, one + rng.uniform() * (other - one))
            sides = self.divided(rounds, cut)
            if min(map(len, sides)) >= fewest and squares(*sides) > best:
                best, found = squares(*sides) * (1 + forest.CLOSE), cut
        return found


class Adaptive:
    """Three ridges of every row, fitted again to the whole history whenever one is asked.

    `wide` sees all inputs, `plain` none of the hidden units, `average` the intercept alone. They
    fit targets less the prior mean of the moment, and add it to what they predict. A forest, which
    sees what `plain` sees, is the fourth member once it is grown; where models are exact.
    """

    def __init__(self, n_rows, n_inputs, ridge, strong, *, exact, n_hidden=0, how):
        kind = Ridge if exact else DiagonalRidge
        self.kinds = [(kind, ridge), (kind, strong), (Ridge, 1.0)]
        self.n_inputs = n_inputs, n_inputs - n_hidden, 1
        self.forest = Forest(n_rows, self.n_inputs[1] - 1, forest.TREES if exact else 0)
        # Trust, the biases of average, of plain (three numbers) and of the forest; in between five
        # for the prior mean.
        self.trust, self.average_bias, *rest, self.forest_bias = how
        self.plain_bias, self.pull = rest[:3], rest[3:]
        self.seen: list[list[tuple[Any, float, float]]] = [
            [] for _ in range(n_rows)
        ]  # context, target and weight, by row
        self.targets, self.errors = [], []  # of all; the errors of the four members
        self.ratios = np.ones((n_rows, 3))
        self.missed = [[0.0] * 20 for _ in range(n_rows)]  # by the mixture, in units of the noise
        self.n_changes = 0
        self.known = {}

    def rows(self):
        """The model of each row by itself."""
        return [AdaptiveRow(self, row) for row in range(len(self.seen))]

    def view(self, x, m):
        """What member m sees of a context."""
        return (x, np.append(x[: self.n_inputs[1] - 1], 1.0), np.ones(1))[m]

    @until_it_learns
    def member(self, row, m):
        """Member m of a row as it is fitted now."""
        kind, penalty = self.kinds[m]
        model, prior = kind(self.n_inputs[m], penalty), self.prior()
        for x, target, weight in self.seen[row]:
            if x is CHANGE:
                model.fade(0.1)
            else:
                model.learn(self.view(x, m), target - prior, weight)
        return model

    def ridges(self, row, x):
        """All but the forest, each with what it sees of x."""
        return [(self.member(row, m), self.view(x, m)) for m in range(3)]

    # What all rows share: the range of targets, how members have done, the noise, the prior mean.

    @until_it_learns
    def range(self):
        """The lowest target and how far the highest is above it; [0, 1] while that is unknown."""
        if not self.targets:
            return 0.0, 1.0
        low, high = min(self.targets), max(self.targets)
        return low, high - low or 1.0

    def squared_errors(self):
        return np.sum(np.square(self.errors), axis=0) if self.errors else np.zeros(4)

    @until_it_learns
    def rare(self):
        """How much lower the odds of the first rewards are than those of labels, by logarithms.

        Two rounds of each action, of which one of K paid, count among them.
        """
        k, (low, span) = len(self.seen), self.range()
        first = [0.0] * (2 * k - 2) + [1.0] * 2
        first += [(target - low) / span for target in self.targets[: 8 * k]]
        average = np.clip(np.mean(first), 0.001, 0.999)
        return math.log((1 - average) / average) - math.log(max(k - 1, 1))

    @until_it_learns
    def graded(self):
        """The share of targets that are neither the least nor the greatest; two are added."""
        between = [t for t in self.targets if min(self.targets) < t < max(self.targets)]
        return len(between) / (len(self.targets) + 2)

    def looks(self):
        """What says how far the rewards are from those of labels."""
        return [1.0, abs(self.rare()), self.graded()]

    @until_it_learns
    def weights(self):
        """By the average squared errors e, in which a fifth of a round counts with a quarter."""
        n, (_, span) = len(self.targets), self.range()
        biases = [0.0, np.dot(self.plain_bias, self.looks()), self.average_bias]
        biases.append(self.forest_bias if self.forest.is_grown() else -math.inf)
        e = (self.squared_errors() / span**2 + 0.2 * 0.25) / (n + 0.2)
        evidence = np.array(biases) - 0.5 * self.trust * min(n, 1000) * np.log(e)
        weights = np.exp(evidence - evidence.max())
        weights[weights < 0.01 * weights.sum()] = 0.0
        return weights / weights.sum()

    @until_it_learns
    def noise(self):
        """A quarter of the squared range counts as a round, here and in the deviation."""
        n, (_, span) = len(self.targets), self.range()
        return math.sqrt((self.weights() @ self.squared_errors() + 0.25 * span**2) / (n + 1))

    @until_it_learns
    def deviation(self):
        n, (_, span) = len(self.targets), self.range()
        return math.sqrt((np.var(self.targets) if n else 0.0) + 0.25 * span**2 / (n + 1))

    @until_it_learns
    def prior(self):
        low, _ = self.range()
        average = np.mean(self.targets) if self.targets else low
        unexplained = min(self.noise() ** 2 / self.deviation() ** 2, 2.0)
        known = [*self.looks(), math.log(unexplained), math.log(len(self.seen))]
        return low + logistic(np.dot(self.pull, known)) * (average - low)

    # What a row predicts, how far it may be off, what it learns.

    def members_predict(self, row, x):
        said = [self.prior() + model.predict(view) for model, view in self.ridges(row, x)]
        return np.array([*said, np.mean(self.forest.values(row, x))])

    def predict(self, row, x):
        return self.weights() @ self.members_predict(row, x)

    def spread(self, row, x):
        spreads = [model.spread(view) for model, view in self.ridges(row, x)]
        spreads.append(np.mean(self.forest.doubts(row, x)))
        return self.noise() * self.weights() @ spreads

    def variance_of_average(self, row):
        """Of the average reward of a row, in units of the noise."""
        return self.member(row, 2).spread(np.ones(1)) ** 2

    def spread_guess(self, row, x):
        """By the diagonals, corrected by how far these were off in the rounds before."""
        by_diagonal = [model.spread_by_diagonal(view) for model, view in self.ridges(row, x)]
        guesses = np.append(
            np.sqrt(self.ratios[row]) * by_diagonal, self.forest.doubts(row, x).mean()
        )
        return self.noise() * self.weights() @ guesses

    def learn(self, row, x, target, weight=1.0):
        errors = target - self.members_predict(row, x)
        errors = errors if self.targets else np.zeros(4)  # nobody knew of the first
        if not self.forest.is_grown():
            errors[3] = errors[2]
        missed = self.weights() @ errors / self.noise()
        self.errors.append(errors)
        for m, (model, view) in enumerate(self.ridges(row, x)):
            ratio = model.spread(view) ** 2 / model.spread_by_diagonal(view) ** 2
            self.ratios[row, m] += 0.2 * (min(ratio, 10.0) - self.ratios[row, m])
        self.targets.append(target)
        self.seen[row].append((x, target, weight))
        self.missed[row].append(missed)
        due = self.forest.learn(row, x, target, weight)
        if len(self.missed[row]) >= 220 and self.lately(row) < -0.25:
            self.n_changes += 1
            self.missed = [[0.0] * 20 for _ in self.seen]
            for history in self.seen:
                history.append((CHANGE, 0.0, 0.0))
            self.forest.change()
        self.known = {}
        if due is not None:
            self.grow(due)

    def grow(self, tree):
        """From what the average rewards are now, and how many rounds speak for them."""
        everyone, one = range(len(self.seen)), np.ones(1)
        averages = [self.prior() + self.member(row, 2).predict(one) for row in everyone]
        known = [1 / self.variance_of_average(row) for row in everyone]
        span = max(self.targets) - min(self.targets)
        least = forest.CLOSE * span**2 if span else math.inf
        self.forest.grow(tree, averages, known, least)
        self.known = {}

    def lately(self, row):
        """The average of what was missed in the first 200 rounds; later ones fade."""
        average = 0.0
        for n, missed in enumerate(self.missed[row], 1):
            average += (missed - average) / min(n, 200)
        return average


class AdaptiveRow:
    """One row of it, as other explorers have a model for each action."""

    def __init__(self, shared, row):
        self.shared, self.row = shared, row

    def predict(self, x):
        return self.shared.predict(self.row, x)

    def spread(self, x):
        return self.shared.spread(self.row, x)

    def learn(self, x, target, weight=1.0):
        self.shared.learn(self.row, x, target, weight)


class Melee:
    """mean + size·range·spread/noise + due over an adaptive learner; all else by the history.

    The size is gate·exp(bold·ψ) + (1 - gate)·exp(careful·ψ) of ψ kept in [low, high], exponents
    kept in [-12, 4], and the gate σ(g·ψ) of those ψ that all actions share. The due of an action
    is (1 - gate)·exp(due·ψ) times a confidence bound of its average, which has seen n rounds of
    T in all: noise·√(log(1 + (T + K) / (K·n)) / n).
    """

    def __init__(self, n_actions, learner, policy, budget=math.inf, *, guard=True, mu=0.0):
        self.n_actions, self.learner, self.policy, self.mu = n_actions, learner, policy, mu
        self.numbers = range(n_actions)  # of the actions that are open, for the learner
        self.budget = budget if guard else math.inf
        self.guard = guard
        self.played = []  # action, its costs to the guard's account
        self.cost, self.n_predicted, self.surprise = 0.0, 0, 0.0
        self.decided_by = {"policy": 0, "bound": 0, "greedy": 0}
        self.n_held = self.n_alone = 0

    def means(self, x):
        return np.array([self.learner.predict(a, x) for a in self.numbers])

    def shared(self, x):
        """The inputs that all actions share, in the order of the docstring of the module."""
        f, n = self.learner, len(self.played)
        (low, span), noise, deviation = f.range(), f.noise(), f.deviation()
        best = np.clip((self.means(x).max() - low) / span, 0.0, 1.0)
        k = self.n_actions
        paid = sum((target - low) / span for target in f.targets)
        odds = math.log(1 / (1 / np.clip((paid + 2) / (n + 2 * k), 0.001, 0.999) - 1))
        return np.array(
            [
                1.0,
                math.log(1.02 - best) / 2,
                math.log(noise / span) / 2,
                math.log(min(noise / deviation, 1.5) ** 2),
                math.log(n + 1) / 8,
                math.log(self.n_actions) / 3,
                odds / 4,
                math.log(len(x)) / 4,
                max(f.rare(), 0.0) / 4,
                max(-f.rare(), 0.0) / 4,
                f.graded(),
            ]
        )

    def own(self, x, spreads):
        """Those of each action: how far behind the best, how uncertain, how often played."""
        means, noise = self.means(x), self.learner.noise()
        plays = np.array([self.played.count(a) for a in self.numbers])
        often = (plays + 1) / ((len(self.played) + self.n_actions) / self.n_actions)
        gaps = np.minimum((means.max() - means) / noise, 5.0) / 2
        return np.column_stack([gaps, np.log(spreads / noise) / 2, np.log(often) / 3])

    def familiar(self, x):
        """Whether no shared input is farther outside of its range than that is wide."""
        shared = self.shared(x)
        low, high = (array[: len(shared)] for array in (self.policy.low, self.policy.high))
        width = high - low
        return ((shared >= low - width) & (shared <= high + width)).all()

    def scores(self, x, spreads):
        """By the policy; by one standard deviation where it is far from what it knows."""
        if self.guard and not self.familiar(x):
            return (self.means(x) + spreads).round(10)
        shared = self.shared(x)
        psi = np.column_stack([np.tile(shared, (self.n_actions, 1)), self.own(x, spreads)])
        held = np.clip(psi, self.policy.low, self.policy.high)
        self.n_held += int((held != psi).any())
        fewer = min(math.log(128 / self.n_actions) / 3, 0)  # where they cannot all be tried
        bold, careful = (
            np.exp(np.clip(held @ weights + less, -12, 4))
            for weights, less in ((self.policy.bold, 0), (self.policy.careful, fewer))
        )
        gate = logistic(held[0, : len(shared)] @ self.policy.gate)
        bonus = (gate * bold + (1 - gate) * careful) * spreads / self.learner.noise()
        due = (1 - gate) * np.exp(np.clip(held[0, : len(shared)] @ self.policy.due, -12, 4))
        due *= self.n_actions <= 128
        bonus = bonus * self.learner.range()[1] + due * self.bounds()
        return (self.means(x) + bonus).round(10)

    def bounds(self):
        """How far the average reward of each action may be off, the farther the less it is seen."""
        n = np.array([1 / self.learner.variance_of_average(a) for a in self.numbers])
        behind = (len(self.played) + self.n_actions) / self.n_actions / n
        return self.learner.noise() * np.sqrt(np.log(1 + behind) / n)

    def guesses(self, x):
        return np.array([self.learner.spread_guess(a, x) for a in self.numbers])

    def spreads(self, x):
        """Guessed; in full for the contenders, unless there is one alone."""
        spreads, contenders = self.guesses(x), self.contenders(x)
        if len(contenders) > 1:
            for a in contenders:
                spreads[a] = self.learner.spread(self.numbers[a], x)
        return spreads

    def contenders(self, x):
        """Those whose guessed scores are among the four highest.

        One alone where no other would reach its mean with twice the bonus that is guessed.
        """
        means, scores = self.means(x), self.scores(x, self.guesses(x))
        leader = int(scores.argmax())
        if (np.delete(2 * scores - means, leader) < means[leader]).all():
            self.n_alone += 1
            return np.array([leader])
        return np.flatnonzero(scores >= np.unique(scores)[-4:].min())

    def over_budget(self):
        rounds = len(self.played) + 1
        allowed = self.learner.deviation() * math.sqrt(self.n_actions * rounds)
        return self.cost > self.budget * allowed

    def only(self, actions):
        """The one that knows these actions alone; the guard has no budget where some are closed."""
        one = copy.copy(self)
        one.n_actions, one.numbers, one.budget = len(actions), actions, math.inf
        one.decided_by = dict(self.decided_by)
        return one

    def pmf(self, x, t):
        if self.over_budget():
            self.decided_by["greedy"] += 1
            return mix_uniform(greedy(self.means(x)), self.mu)
        self.decided_by["policy" if not self.guard or self.familiar(x) else "bound"] += 1
        scores, contenders = self.scores(x, self.spreads(x)), self.contenders(x)
        scores[np.setdiff1d(np.arange(self.n_actions), contenders)] = -math.inf
        return mix_uniform(greedy(scores), self.mu)

    def learn(self, x, t, action, rewards, p):
        """The guard's account: what the predicted action would have earned, less the reward."""
        means, reward, (low, span) = self.means(x), rewards[action], self.learner.range()
        best = np.clip(means.max(), low, low + span)
        if means.max() - means[action] <= 1e-9 * span:
            self.n_predicted += 1
            self.surprise += reward - best
        elif p > 1.5 * self.mu / self.n_actions:  # else it was a draw of μ's
            expected = best + self.surprise / (self.n_predicted + 10)
            self.cost += np.clip(expected, low, low + span) - reward
        self.played.append(action)
        self.learner.learn(action, x, reward)
