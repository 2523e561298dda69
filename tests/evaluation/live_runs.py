"""Small worlds in which explorers are played live and their logs evaluated: do the two agree?"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from melee import Agent
from melee.arrays import Floats
from melee.evaluation import evaluate_live_many, evaluate_many
from melee.evaluation.anytime import evidence
from melee.evaluation.differences import anytime_terms
from melee.evaluation.live import LiveEvaluation
from melee.evaluation.log import EvaluatedLog
from melee.evaluation.luck import N_REPLAYS
from melee.evaluation.off_policy import Evaluation
from melee.evaluation.replay import Replay, accepted_share, averaged, replay, starts
from melee.history import History, Round
from melee.shares import Mask

EXPLORERS = (
    "uniform",
    "epsilon-greedy:epsilon=0.1",
    "linucb:alpha=0.2",
    "thompson",
    "squarecb",
    "softmax",
)
TRAINED = "trained on the log"
DIFFERENCE = "difference"
DEVICES = ("phone", "desk", "tablet")


@dataclasses.dataclass(frozen=True)
class World:
    """Contexts of two numbers and a text; what actions earn, and how the log chose them.

    Attributes
    ----------
    rewards
        click (0 or 1), label (the best action earns 1, others 0), rating (any number between), or
        revenue (mostly 0, else up to 20).
    logging
        The share of the log's decisions that are uniform; others follow a rule of its own.
    strength, rate
        How much contexts matter, and about how often a click or an order comes.
    alike
        Whether all actions earn the same in a context.
    """

    n_actions: int
    rewards: str = "click"
    logging: float = 1.0
    strength: float = 2.0
    rate: float = 0.4
    number: int = 0
    alike: bool = False

    @property
    def actions(self) -> list[str]:
        """The labels of the actions."""
        return [f"action {i}" for i in range(self.n_actions)]

    @property
    def reward_range(self) -> tuple[float, float]:
        """How low and how high rewards can be."""
        return (0.0, 20.0) if self.rewards == "revenue" else (0.0, 1.0)

    def contexts(
        self, n_rounds: int, rng: np.random.Generator
    ) -> tuple[list[dict[str, Any]], Floats]:
        """Contexts, and the mean reward of every action in each."""
        x = rng.normal(size=(n_rounds, 2))
        device = rng.integers(len(DEVICES), size=n_rounds)
        own = np.random.default_rng([51, self.number])
        weights = self.strength * own.normal(size=(5, self.n_actions)) / math.sqrt(2.0)
        if self.alike:
            weights[:] = weights[:, :1]
        scores = np.column_stack([x, np.eye(3)[device]]) @ weights
        if self.rewards == "label":
            means = np.eye(self.n_actions)[scores.argmax(axis=1)]
        else:
            means = 1.0 / (1.0 + np.exp(-scores - math.log(self.rate / (1.0 - self.rate))))
        rows = zip(x.tolist(), device.tolist(), strict=True)
        named = [{"age": 40.0 + 12.0 * a, "load": b, "device": DEVICES[d]} for (a, b), d in rows]
        return named, means * (10.0 if self.rewards == "revenue" else 1.0)

    def reward(self, mean: float, rng: np.random.Generator) -> float:
        """A reward with that mean."""
        if self.rewards == "rating":
            return float(rng.beta(3.0 * mean + 0.01, 3.0 * (1.0 - mean) + 0.01))
        if self.rewards == "revenue":
            return float(rng.uniform(0.0, 20.0)) if rng.random() < mean / 10.0 else 0.0
        return float(rng.random() < mean)

    def log(self, n_rounds: int, seed: int) -> History:
        """A log of so many rounds."""
        rng = np.random.default_rng([52, self.number, seed])
        contexts, means = self.contexts(n_rounds, rng)
        rounds = []
        for context, mean in zip(contexts, means, strict=True):
            p = np.full(self.n_actions, self.logging / self.n_actions)
            p[DEVICES.index(context["device"]) % self.n_actions] += 1.0 - self.logging
            action = int(rng.choice(self.n_actions, p=p))
            pmf = dict(zip(self.actions, p.tolist(), strict=True))
            reward = self.reward(mean[action], rng)
            label = self.actions[action]
            rounds.append(Round(context, label, reward, pmf[label], pmf=pmf))
        return History(rounds)

    def live(self, explorer: str, n_rounds: int, seed: int) -> Floats:
        """The expected reward of each decision of an agent that plays here."""
        rng = np.random.default_rng([53, self.number, seed])
        contexts, means = self.contexts(n_rounds, rng)
        agent = Agent(self.actions, explorer, seed=seed, reward_range=self.reward_range)
        earned = np.empty(n_rounds)
        for i, (context, mean) in enumerate(zip(contexts, means, strict=True)):
            decision = agent.act(context)
            action = self.actions.index(str(decision.action))
            agent.learn(decision.id, self.reward(mean[action], rng))
            earned[i] = mean[action]
        return earned


WORLDS = {
    "clicks, 2 actions": World(2, number=1),
    "clicks, 3 actions": World(3, number=2),
    "clicks, 5 actions": World(5, number=3),
    "clicks, mixed log": World(3, logging=0.5, number=4),
    "clicks, 2 actions, hardly explored": World(2, logging=0.3, number=5),
    "rare clicks": World(3, rate=0.05, strength=1.0, number=6),
    "frequent clicks": World(3, rate=0.9, strength=1.0, number=7),
    "contexts do not matter": World(4, strength=0.3, number=8),
    "labels": World(4, rewards="label", number=9),
    "labels, mixed log": World(3, rewards="label", logging=0.5, number=10),
    "ratings": World(3, rewards="rating", number=11),
    "revenue, mixed log": World(3, rewards="revenue", rate=0.2, logging=0.6, number=12),
}


def looks(
    log: EvaluatedLog,
    explorers: tuple[str, str],
    seeds: tuple[int, int],
    n_replays: int = N_REPLAYS,
) -> tuple[Replay, Replay, Floats, Floats]:
    """The lives of two explorers through a log, and the terms of their difference for any time.

    Terms and their bounds are what `evidence` takes, of which each row is a look. With the same
    seed twice both are accepted by the same draws, as by `evaluate_live_many`.
    """
    every, lived = np.arange(log.n_rounds), []
    for explorer, seed in zip(explorers, seeds, strict=True):
        start = starts(log, explorer, seed)
        runs = [replay(log, start(i), every, seed, f"whole {i}") for i in range(n_replays)]
        lived.append(averaged(runs))
    one, other = lived
    apart = (one.chosen - other.chosen)[every, log.actions] / log.probabilities
    return one, other, *anytime_terms(apart, log.units, 1.0 / accepted_share(log))


def p_values(terms: Floats, bounds: Floats) -> Floats:
    """The p-value after each round."""
    found: Floats = np.minimum(1.0, 2.0 * np.exp(-evidence(terms, bounds).max(axis=1)))
    return found


@dataclasses.dataclass
class Cell:
    """What the logs of one world say about one explorer, and what it earns live there.

    Arrays have an element per log; `live` is the mean reward of live runs as long as the accepted
    rounds of each, `beyond` that minus the baseline's; `found` has value, low and high by
    estimator. The baseline itself has no difference.
    """

    live: Floats
    beyond: Floats
    found: dict[str, Floats]

    def holds(self, name: str) -> Mask:
        """In which logs the interval held what live runs earn."""
        _, low, high = self.found[name].T
        truth = self.beyond if name == DIFFERENCE else self.live
        held: Mask = (low <= truth) & (truth <= high)
        return held

    def width(self, name: str) -> float:
        """How wide intervals are, beside those of normal estimates whose spread is known."""
        value, low, high = self.found[name].T
        return float((high - low).mean() / (2.0 * 1.96 * max(value.std(ddof=1), 1e-9)))


def cells(
    world: World, explorers: tuple[str, ...], *, n_rounds: int, n_logs: int, n_live: int
) -> list[Cell]:
    """The cells of one world: each log is evaluated for all explorers; the second is the baseline.

    (Of those above, it learns.)
    """
    limits, baseline = world.reward_range, explorers[1]
    found: dict[str, dict[str, list[Sequence[float]]]] = {
        explorer: {"dr": [], "replay": [], TRAINED: [], DIFFERENCE: []} for explorer in explorers
    }
    lengths = np.empty((len(explorers), n_logs), dtype=int)
    for seed in range(n_logs):
        log = world.log(n_rounds, seed)
        live = evaluate_live_many(log, explorers, baseline=baseline, seed=seed, reward_range=limits)
        taught = evaluate_many(log, explorers, seed=seed, reward_range=limits, estimators=("dr",))
        for i, explorer in enumerate(explorers):
            one, other = live[explorer], taught[explorer]
            assert isinstance(one, LiveEvaluation), one
            assert one.reason is None, one.reason
            assert isinstance(other, Evaluation), other
            lengths[i, seed] = one.n_accepted
            for name in ("dr", "replay"):
                found[explorer][name].append(one.estimates[name][1:])
            found[explorer][TRAINED].append(other.estimates["dr"][1:])
            if one.difference is not None:
                found[explorer][DIFFERENCE].append(one.difference[1:4])
    longest = int(lengths.max())
    means = {}
    for explorer in explorers:
        runs = np.mean([world.live(explorer, longest, one) for one in range(n_live)], axis=0)
        means[explorer] = np.cumsum(runs) / np.arange(1, longest + 1)
    return [
        Cell(
            means[explorer][of_each - 1],
            (means[explorer] - means[baseline])[of_each - 1],
            {name: np.array(rows) for name, rows in found[explorer].items() if rows},
        )
        for explorer, of_each in zip(explorers, lengths, strict=True)
    ]
