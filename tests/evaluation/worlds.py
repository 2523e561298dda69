"""Worlds of a few kinds of contexts, in which the truth about a policy is a sum."""

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np

from melee.history import History, Round


@dataclass
class World:
    """Contexts are one of G kinds, equally likely; matrices are (G, K)."""

    means: np.ndarray
    logging: np.ndarray
    target: np.ndarray

    @property
    def truth(self):
        return float((self.target * self.means).sum(axis=1).mean())

    def draw(self, n_rounds, seed):
        """Kinds, actions and rewards of a log."""
        rng = np.random.default_rng(seed)
        kinds = rng.integers(len(self.means), size=n_rounds)
        # Kind and chance in one number, so that one search finds the action.
        ends = self.logging.cumsum(axis=1)[:, :-1] + np.arange(len(self.means))[:, None]
        actions = (
            np.searchsorted(ends.ravel(), kinds + rng.random(n_rounds)) - kinds * ends.shape[1]
        )
        rewards = (rng.random(n_rounds) < self.means[kinds, actions]).astype(float)
        return kinds, actions, rewards

    def weights(self, kinds, actions):
        return (self.target / self.logging)[kinds, actions]


def greedy(best, n_actions, floor):
    """All mass on one action per kind, but a floor under each."""
    p = np.full((len(best), n_actions), floor)
    p[np.arange(len(best)), best % n_actions] += 1.0 - n_actions * floor
    return p


def softmax(n_kinds, n_actions, spread, seed):
    p = np.exp(spread * np.random.default_rng(seed).normal(size=(n_kinds, n_actions)))
    return p / p.sum(axis=1, keepdims=True)


def worlds():
    """Regimes by name: mild and heavy weights, rare and nearly certain rewards."""
    means = np.random.default_rng(1).random((5, 10))
    few = means[:, :3]
    best, best_of_few = means.argmax(axis=1), few.argmax(axis=1)
    uniform = np.full((5, 10), 0.1)
    heavy, other = greedy(best + 1, 10, 0.02), greedy(best, 10, 0.02)
    mild, wanted = softmax(5, 3, 0.3, seed=2), greedy(best_of_few, 3, 0.05)
    once = softmax(5, 3, 0.7, seed=2)  # a weight of 30 in one of 160 rounds
    return {
        "mild": World(few, mild, wanted),
        "mild, many actions": World(means, softmax(5, 10, 0.5, 2), softmax(5, 10, 0.5, 3)),
        "heavy": World(means, heavy, other),
        "heavy, pure target": World(means, heavy, greedy(best, 10, 0.0)),
        "heavy, uniform target": World(means, other, uniform),
        "tiny floor, uniform target": World(means, greedy(best + 1, 10, 0.002), uniform),
        "rarely heavy": World(few, once, wanted),
        "rarely heavy, nearly certain rewards": World(1.0 - 0.03 * few, once, wanted),
        "rare rewards": World(0.03 * few, mild, wanted),
        "rare rewards, heavy": World(0.03 * means, heavy, other),
        "rare rewards, uniform target": World(0.03 * means, other, uniform),
        "nearly certain rewards": World(1.0 - 0.03 * few, mild, wanted),
        "nearly the same policy": World(few, greedy(best_of_few, 3, 0.02), wanted),
    }


ACTIONS = ("news", "sports", "tech", "music")
DEVICES = ("phone", "desk", "tablet")


def clean_log(n_rounds=600, seed=0, *, with_pmf=True):
    """A log without any fault: two numbers, two texts, four actions, probabilities that vary."""
    return History(_clean_rounds(n_rounds, seed, with_pmf))


@functools.lru_cache
def _clean_rounds(n_rounds, seed, with_pmf):
    rng = np.random.default_rng(seed)
    devices = rng.integers(3, size=n_rounds)
    ages = rng.integers(18, 80, size=n_rounds).astype(float)
    premium, loads = rng.random(n_rounds) < 0.3, rng.normal(size=n_rounds)
    p = np.full((n_rounds, 4), 0.1)
    p[np.arange(n_rounds), devices] += 0.6
    actions = (rng.random(n_rounds)[:, None] > p.cumsum(axis=1)[:, :3]).sum(axis=1)
    means = 0.2 + 0.4 * (actions == devices) + 0.002 * (ages - 18)
    rewards = (rng.random(n_rounds) < means).astype(float)
    return tuple(
        Round(
            {
                "device": DEVICES[devices[i]],
                "plan": "premium" if premium[i] else "free",
                "age": float(ages[i]),
                "load": float(loads[i]),
            },
            ACTIONS[actions[i]],
            float(rewards[i]),
            float(p[i, actions[i]]),
            id=f"r{i}",
            time=1e9 + i,
            pmf=dict(zip(ACTIONS, p[i].tolist(), strict=True)) if with_pmf else None,
        )
        for i in range(n_rounds)
    )


def without_most_failures(history, share=0.9, seed=0):
    """The log after a share of the rounds without reward was dropped; the others stand for them."""
    rng = np.random.default_rng(seed)
    kept = (one for one in history if one.reward > 0.0 or rng.random() >= share)
    return History(
        one if one.reward > 0.0 else dataclasses.replace(one, stands_for=1.0 / (1.0 - share))
        for one in kept
    )
