"""Trees over the first rounds: what every action earned where contexts were alike.

Rewards often turn where a column passes a value: what a linear model has to bend around, a tree
cuts off at once. All actions share the trees. Where the rewards of some change those of others
mostly do too, so a cut is found by the rounds of all, and each action has averages of its own in
the leaves.

The first rounds are kept. Each time their number doubles, from 64 on, every tree is grown again
from all of them: one tree at a time, in equal steps in between, so that no round pays for all. Cuts
of a node are drawn at random, a column and a place between two of its values there, and the best
is taken: that which makes the sum over actions and sides of S²/m largest, S being the sum of an
action's rewards on a side, less its average, and m the number of rounds there. A side has at least
a thirty-second of all rounds.

What an action earns in a node is estimated as if some rounds of what the node above says had been
seen there, and above the first node is the action's average: what was seen in few rounds stays
close to what was seen in many. When nothing is kept any more the trees stay as they are, and the
averages in their leaves go on.

A prediction is the average over trees. Random numbers depend on the number of rounds alone.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from melee.arrays import SCRATCH, Amounts, Floats, Ints, Positive, Scratch, Within, Words
from melee.compiled import interpreted_as, kernel
from melee.rng import LEARN, start_round, uniform, uniforms
from melee.task import LARGEST

TREES = 8
"""How many trees."""
KEPT = 2048
"""Rounds from which trees are grown."""
FEWEST = 64
"""Rounds after which the first tree is grown: a multiple of TREES, so that all have their turn."""
LEAVES = 32
"""The most leaves of a tree."""
NODES = 2 * LEAVES - 1
LEAST = 5
"""Rounds in a leaf, at least."""
TRIED = 32
"""Cuts of a node that are tried."""
FIRM = 4.0
"""Rounds that what the node above says counts as, at most."""
CLOSE = 1e-9
"""Gains that differ by less, beside their size or the squares of the rewards' range, are equal but
for rounding: the cut that was drawn first is taken."""

Numbers = Annotated[Ints, SCRATCH]
"""Whole numbers that mean nothing to the next call."""


class Forest(NamedTuple):
    """The trees, the averages in their leaves, and the rounds from which they are grown."""

    columns: Ints  # (trees, NODES): where a node looks; -1 for a leaf
    places: Annotated[Floats, Within(-LARGEST, LARGEST)]  # (trees, NODES): up to there a context
    # goes to the first child
    children: Ints  # (trees, NODES): the first of two, side by side; the number of a leaf
    values: Floats  # (trees·LEAVES, models): what an action earns in a leaf
    seen: Positive  # (trees·LEAVES, models): the rounds that say so
    doubts: Positive  # (trees·LEAVES, models): one over their root
    grown: Ints  # (1,) how many trees are grown
    contexts: Annotated[Floats, Within(-LARGEST, LARGEST)]  # (features, KEPT)
    models: Ints  # (KEPT,)
    targets: Floats  # (KEPT,)
    weights: Amounts  # (KEPT,)
    kept: Ints  # (1,) how many rounds
    key: Annotated[Words, SCRATCH]  # (2,)
    at: Numbers  # (trees,) the leaves of a context
    order: Numbers  # (KEPT,) rounds, those of a node side by side
    first: Numbers  # (NODES,) where those of a node begin, and
    last: Numbers  # (NODES,) end
    excess: Scratch  # (KEPT,) weighed targets less averages
    parts: Scratch  # (KEPT,) the same of a node, in its order, and
    whose: Numbers  # (KEPT,) their models
    chosen: Numbers  # (KEPT,) rounds on one side of a cut
    sums: Scratch  # (3, models) in a node: of the excess, of weights; of the excess on one side
    said: Scratch  # (2, NODES, models) what is earned in a node beside the average; rounds
    cut: Scratch  # (2,) column and place

    @classmethod
    def start(cls, n_models: int, n_features: int, n_trees: int) -> "Forest":
        """So many trees, none of them grown; where there are no features none ever is."""
        n_kept = KEPT if n_trees and n_features else 0

        def numbers(*shape: int) -> Ints:
            return np.zeros(shape, np.int64)

        return cls(
            columns=np.full((n_trees, NODES), -1),
            places=np.zeros((n_trees, NODES)),
            children=numbers(n_trees, NODES),
            values=np.zeros((n_trees * LEAVES, n_models)),
            seen=np.ones((n_trees * LEAVES, n_models)),
            doubts=np.ones((n_trees * LEAVES, n_models)),
            grown=numbers(1),
            contexts=np.zeros((n_features, n_kept)),
            models=numbers(n_kept),
            targets=np.zeros(n_kept),
            weights=np.zeros(n_kept),
            kept=numbers(1),
            key=np.zeros(2, np.uint64),
            at=numbers(n_trees),
            order=numbers(n_kept),
            first=numbers(NODES),
            last=numbers(NODES),
            excess=np.zeros(n_kept),
            parts=np.zeros(n_kept),
            whose=numbers(n_kept),
            chosen=numbers(n_kept),
            sums=np.zeros((3, n_models)),
            said=np.zeros((2, NODES, n_models)),
            cut=np.zeros(2),
        )

    def encourage(self, model: int, value: float, rounds: float) -> None:
        """Have leaves that are there say a value, as if so many rounds had shown it."""
        self.values[:, model], self.seen[:, model] = value, 1.0 + rounds
        self.doubts[:, model] = 1.0 / math.sqrt(1.0 + rounds)

    def renumber(self, models: Ints) -> None:
        """Give the models of rounds that are kept new numbers; -1 leaves theirs out.

        When there is no more room, no tree is grown again, and nobody asks whose rounds they were.
        """
        n = int(self.kept[0])
        if n == len(self.models):
            return
        renumbered = models[self.models[:n]]
        stay = np.flatnonzero(renumbered >= 0)
        self.models[: len(stay)] = renumbered[stay]
        for rounds in (self.targets, self.weights):
            rounds[: len(stay)] = rounds[stay]
        self.contexts[:, : len(stay)] = self.contexts[:, stay]
        self.kept[0] = len(stay)

    @property
    def is_sound(self) -> bool:
        """Whether all nodes, leaves, columns, models and rounds that it names exist."""
        is_leaf, children, n = self.columns < 0, self.children, int(self.kept[0])
        below = np.where(is_leaf, 0, np.arange(1, NODES + 1))  # a tree has no way back
        beyond = np.where(is_leaf, LEAVES, NODES - 1)
        models = self.models[: n if 0 <= n < len(self.models) else 0]
        return bool(
            0 <= n <= len(self.models)
            and 0 <= self.grown[0] <= len(self.columns)
            and (self.columns >= -1).all()
            and (self.columns < len(self.contexts)).all()
            and (children >= below).all()
            and (children < beyond).all()
            and (models >= 0).all()
            and (models < self.values.shape[1]).all()
        )


@kernel
def is_grown(forest: Forest) -> bool:
    """Whether all trees are grown, and at least one of them has more than a single leaf."""
    n_trees, cut = forest.columns.shape[0], False
    for tree in range(n_trees):
        cut = cut or forest.columns[tree, 0] >= 0
    return bool(cut and forest.grown[0] >= n_trees)


@kernel
def find(forest: Forest, x: Floats) -> None:
    """Overwrite `at` with the leaves in which a context is."""
    for tree in range(forest.at.shape[0]):
        node, column = 0, forest.columns[tree, 0]
        while column >= 0:
            beyond = x[column] > forest.places[tree, node]
            node = forest.children[tree, node] + (1 if beyond else 0)
            column = forest.columns[tree, node]
        forest.at[tree] = tree * LEAVES + forest.children[tree, node]


@kernel
def said_of(forest: Forest, model: int) -> float:
    """What the leaves that were found say of an action: the average."""
    total = 0.0
    for tree in range(forest.at.shape[0]):
        total += forest.values[forest.at[tree], model]
    return float(total / forest.at.shape[0])


@kernel
def doubt_of(forest: Forest, model: int) -> float:
    """How uncertain that is, in units of the noise: the average of one over the root of rounds."""
    total = 0.0
    for tree in range(forest.at.shape[0]):
        total += forest.doubts[forest.at[tree], model]
    return float(total / forest.at.shape[0])


def _add_at_once(forest: Forest, table: Floats, first: int, share: float, out: Floats) -> None:
    of_trees = table[forest.at, first : first + len(out)]
    out += share * (np.add.accumulate(of_trees, axis=0)[-1] / len(of_trees))


@interpreted_as(_add_at_once)
def add_average(forest: Forest, table: Floats, first: int, share: float, out: Floats) -> None:
    """Add a share of what leaves say, or doubt, of the actions from `first` on.

    Tree by tree, whose numbers lie side by side; each sum has the order that it has alone.
    """
    sums = forest.sums
    for a in range(out.shape[0]):
        sums[2, a] = 0.0
    for tree in range(forest.at.shape[0]):
        leaf = forest.at[tree]
        for a in range(out.shape[0]):
            sums[2, a] += table[leaf, first + a]
    for a in range(out.shape[0]):
        out[a] += share * (sums[2, a] / forest.at.shape[0])


@kernel
def due(n: int, n_trees: int) -> int:
    """The tree that is to be grown after n rounds; -1 for none.

    The first of 8 is grown after 64, 128, 256 rounds and so on, the second after 72, 144, ...

    >>> [due(n, 8) for n in (63, 64, 65, 72, 120, 128, 136, 144)]
    [-1, 0, -1, 1, 7, 0, -1, 1]
    """
    if n < FEWEST:
        return -1
    doubled = FEWEST
    while 2 * doubled <= n:
        doubled *= 2
    tree = (n - doubled) * n_trees // doubled
    return int(tree) if tree * doubled == (n - doubled) * n_trees else -1


@kernel
def take(forest: Forest, x: Floats, model: int, target: float, weight: float) -> int:
    """Take a round in: the leaves that were found do, and it is kept while there is room.

    The tree that is to be grown now, or -1.
    """
    for tree in range(min(forest.grown[0], forest.at.shape[0])):
        leaf = forest.at[tree]
        forest.seen[leaf, model] += weight
        step = weight / forest.seen[leaf, model]
        forest.values[leaf, model] += step * (target - forest.values[leaf, model])
        forest.doubts[leaf, model] = 1.0 / math.sqrt(forest.seen[leaf, model])
    n = forest.kept[0]
    if n == forest.models.shape[0]:
        return -1
    for j in range(forest.contexts.shape[0]):
        forest.contexts[j, n] = x[j]
    forest.models[n] = model
    forest.targets[n] = target
    forest.weights[n] = weight
    forest.kept[0] = n + 1
    return due(n + 1, forest.at.shape[0])


def _begin_at_once(forest: Forest, average: Floats) -> None:
    n = int(forest.kept[0])
    forest.order[:n] = np.arange(n)
    above = forest.targets[:n] - average[forest.models[:n]]
    forest.excess[:n] = above * forest.weights[:n]


@interpreted_as(_begin_at_once)
def begin(forest: Forest, average: Floats) -> None:
    """Overwrite `order` and `excess` with those of the first node."""
    for i in range(forest.kept[0]):
        forest.order[i] = i
        above = forest.targets[i] - average[forest.models[i]]
        forest.excess[i] = above * forest.weights[i]


def _enter_at_once(forest: Forest, first: int, last: int) -> None:
    rounds, n_models = forest.order[first:last], forest.sums.shape[1]
    forest.parts[first:last] = forest.excess[rounds]
    whose = forest.whose[first:last] = forest.models[rounds]
    forest.sums[0] = np.bincount(whose, forest.parts[first:last], n_models)
    forest.sums[1] = np.bincount(whose, forest.weights[rounds], n_models)


@interpreted_as(_enter_at_once)
def enter(forest: Forest, first: int, last: int) -> None:
    """Overwrite `parts`, `whose` and the sums with those of a node, which has these rounds."""
    for a in range(forest.sums.shape[1]):
        forest.sums[0, a] = forest.sums[1, a] = 0.0
    for i in range(first, last):
        one = forest.order[i]
        forest.parts[i] = forest.excess[one]
        forest.whose[i] = forest.models[one]
        forest.sums[0, forest.whose[i]] += forest.parts[i]
        forest.sums[1, forest.whose[i]] += forest.weights[one]


def _estimate_at_once(forest: Forest, node: int, known: Floats) -> None:
    (earned, rounds), (excess, weights) = forest.said[:, node], forest.sums[:2]
    above = np.minimum(rounds - weights, FIRM) if node else np.maximum(known - weights, 0.0)
    if node:
        told = excess + above * earned
        earned[:] = told / np.maximum(weights + above, CLOSE)
    rounds[:] = np.maximum(weights + above, CLOSE)


@interpreted_as(_estimate_at_once)
def estimate(forest: Forest, node: int, known: Floats) -> None:
    """Overwrite what is said of a node: until now that is what the node above says.

    For the first one that is nothing beside the averages, which `known` rounds speak for.
    """
    for a in range(known.shape[0]):
        weight = forest.sums[1, a]
        if node == 0:
            above = max(known[a] - weight, 0.0)
        else:
            above = min(forest.said[1, node, a] - weight, FIRM)
            told = forest.sums[0, a] + above * forest.said[0, node, a]
            forest.said[0, node, a] = told / max(weight + above, CLOSE)
        forest.said[1, node, a] = max(weight + above, CLOSE)


@kernel
def draw_cut(forest: Forest, first: int, last: int) -> None:
    """Overwrite `cut` with a column, and a place between two of its values."""
    m, key = last - first, forest.key
    column = int(uniform(key) * forest.contexts.shape[0])
    one = forest.contexts[column, forest.order[first + int(uniform(key) * m)]]
    other = forest.contexts[column, forest.order[first + int(uniform(key) * m)]]
    forest.cut[0] = column
    forest.cut[1] = one + uniform(key) * (other - one)


def _best_cut_at_once(forest: Forest, first: int, last: int, fewest: int, least: float) -> bool:
    m, n_models = last - first, forest.sums.shape[1]
    rounds, all_here = forest.order[first:last], forest.sums[0]
    u = uniforms(forest.key, 4 * TRIED).reshape(TRIED, 4)
    columns = (u[:, 0] * len(forest.contexts)).astype(np.int64)
    one, other = (forest.contexts[columns, rounds[(u[:, j] * m).astype(np.int64)]] for j in (1, 2))
    places = one + u[:, 3] * (other - one)
    on_side = forest.contexts[columns][:, rounds] <= places[:, None]  # (TRIED, m)
    n_left = on_side.sum(axis=1)
    bins = (forest.whose[first:last] + n_models * np.arange(TRIED)[:, None])[on_side]
    parts = np.broadcast_to(forest.parts[first:last], on_side.shape)[on_side]
    left = np.bincount(bins, parts, TRIED * n_models).reshape(TRIED, n_models)
    right = all_here - left
    n_right = m - n_left
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.add.accumulate(left * left, axis=1)[:, -1] / n_left
        gains = gains + np.add.accumulate(right * right, axis=1)[:, -1] / n_right
    best = float(np.add.accumulate(all_here * all_here)[-1]) / m * (1.0 + CLOSE) + least
    better = False
    for i in np.flatnonzero(np.minimum(n_left, n_right) >= fewest):
        if gains[i] > best:
            best, better = gains[i] * (1.0 + CLOSE), True
            forest.cut[:] = columns[i], places[i]
    return better


@interpreted_as(_best_cut_at_once)
def best_cut(forest: Forest, first: int, last: int, fewest: int, least: float) -> bool:
    """Overwrite `cut` with the best of some for the rounds of a node, and say if there is any.

    That divides them into sides of the `fewest` rounds and gains the `least`.
    """
    m, n_models, sums = last - first, forest.sums.shape[1], forest.sums
    best = 0.0
    for a in range(n_models):
        best += sums[0, a] * sums[0, a]
    best = best / m * (1.0 + CLOSE) + least
    better, column, place = False, 0, 0.0
    for _ in range(TRIED):
        draw_cut(forest, first, last)
        looked_at, n_left = int(forest.cut[0]), 0
        for i in range(first, last):
            forest.chosen[n_left] = i
            n_left += 1 if forest.contexts[looked_at, forest.order[i]] <= forest.cut[1] else 0
        n_right = m - n_left
        if n_left < fewest or n_right < fewest:
            continue
        for a in range(n_models):
            sums[2, a] = 0.0
        for j in range(n_left):
            i = forest.chosen[j]
            sums[2, forest.whose[i]] += forest.parts[i]
        left = right = 0.0
        for a in range(n_models):
            beyond = sums[0, a] - sums[2, a]
            left += sums[2, a] * sums[2, a]
            right += beyond * beyond
        gain = left / n_left + right / n_right
        if gain > best:
            best, better = gain * (1.0 + CLOSE), True
            column, place = looked_at, forest.cut[1]
    if better:
        forest.cut[0], forest.cut[1] = column, place
    return better


def _divide_at_once(forest: Forest, first: int, last: int) -> int:
    rounds = forest.order[first:last]
    on_side = forest.contexts[int(forest.cut[0]), rounds] <= forest.cut[1]
    rounds[:] = np.concatenate([rounds[on_side], rounds[~on_side]])
    return first + int(on_side.sum())


@interpreted_as(_divide_at_once)
def divide(forest: Forest, first: int, last: int) -> int:
    """Have rounds beyond the cut follow the others, each side in its order; where they begin."""
    column, n_left, n_right = int(forest.cut[0]), 0, 0
    for i in range(first, last):
        one = forest.order[i]
        if forest.contexts[column, one] <= forest.cut[1]:
            forest.order[first + n_left] = one
            n_left += 1
        else:
            forest.chosen[n_right] = one
            n_right += 1
    for j in range(n_right):
        forest.order[first + n_left + j] = forest.chosen[j]
    return first + n_left


@kernel
def grow(forest: Forest, tree: int, average: Floats, known: Floats, least: float) -> None:
    """Grow a tree from all rounds that are kept.

    Parameters
    ----------
    average, known
        What each action earns on average, and how many rounds speak for it, (models,).
    least
        What a cut has to gain.
    """
    n = forest.kept[0]
    fewest = max(LEAST, (n + LEAVES - 1) // LEAVES)
    forest.key[0] = 0
    start_round(forest.key, n * TREES + tree, LEARN)
    begin(forest, average)
    forest.first[0], forest.last[0] = 0, n
    forest.said[0, 0] = 0.0
    n_nodes, n_leaves, node = 1, 0, 0
    while node < n_nodes:
        first, last = forest.first[node], forest.last[node]
        enter(forest, first, last)
        estimate(forest, node, known)
        cut = last - first >= 2 * fewest and best_cut(forest, first, last, fewest, least)
        if cut:
            forest.columns[tree, node] = int(forest.cut[0])
            forest.places[tree, node] = forest.cut[1]
            forest.children[tree, node] = n_nodes
            middle = divide(forest, first, last)
            for side in range(2):
                forest.first[n_nodes] = first if side == 0 else middle
                forest.last[n_nodes] = middle if side == 0 else last
                for a in range(known.shape[0]):
                    forest.said[0, n_nodes, a] = forest.said[0, node, a]
                    forest.said[1, n_nodes, a] = forest.said[1, node, a]
                n_nodes += 1
        else:
            forest.columns[tree, node] = -1
            forest.children[tree, node] = n_leaves
            leaf = tree * LEAVES + n_leaves
            for a in range(known.shape[0]):
                forest.values[leaf, a] = average[a] + forest.said[0, node, a]
                forest.seen[leaf, a] = forest.said[1, node, a]
                forest.doubts[leaf, a] = 1.0 / math.sqrt(forest.seen[leaf, a])
            n_leaves += 1
        node += 1
    forest.grown[0] = max(forest.grown[0], tree + 1)


@kernel
def trust_less(forest: Forest, share: float) -> None:
    """Have all rounds that were seen count as this share of them."""
    for leaf in range(forest.seen.shape[0]):
        for a in range(forest.seen.shape[1]):
            forest.seen[leaf, a] = max(share * forest.seen[leaf, a], CLOSE)
            forest.doubts[leaf, a] = 1.0 / math.sqrt(forest.seen[leaf, a])
    for i in range(forest.kept[0]):
        forest.weights[i] *= share
