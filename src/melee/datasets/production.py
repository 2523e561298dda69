"""Tasks like those that people have: clicks, successes, ratings, revenue, seconds saved.

Tables of labels pay 1 for the right class. Uses of bandits mostly do not: an action's reward is
luck around an expected reward, and what can be gained by choosing well may be small beside that
luck. A `Use` says what is paid (`melee.datasets.payments`), in which situations and with which
effects (`melee.datasets.situations`), how many actions and rounds there are, and what changes in
time. `task_of` makes a task of it, which knows the true expected rewards, so that a run on it has a
share; `production` draws a use at random, for training; `melee.datasets.uses` names some, for
comparisons.

The score of an action is the sum of a main effect, which is the same for all actions, the action's
own average, and its interaction with the context. The last two are its advantage, and they are
strengthened until it can be learned within the rounds: (best - uniform)·√(rounds/(actions·m)) is at
least four standard deviations of a reward, where m is how much there is to learn of an action (one
average, a weight per column, some leaves of a tree). A share of anything less would be luck.
"""

from dataclasses import dataclass

import numpy as np

from melee.arrays import Floats, Ints
from melee.datasets.lifelike import log_uniform
from melee.datasets.payments import Clicks, Graded, Numbers, Payment, Revenue
from melee.datasets.situations import effect, situations
from melee.errors import DataError, whole_number
from melee.shares import Mask, uniform_and_best
from melee.task import Task

LABELLED = 30
"""Rows beyond the rounds, for what is set aside before a simulation."""
CLEAR = 4.0
"""How many standard deviations of luck a good choice has to be worth."""
TO_LEARN = {"none": 1, "tree": 8, "smooth": 12, "mixed": 12}
"""How much there is to learn of an action by its effect; a linear one has a weight per column."""
MOST = 4.0
"""Strengths beyond this are no longer raised: another use is drawn."""
SAMPLE = 4000
"""Values by which levels and strengths are found."""
DRIFTS = ("", "slow", "sudden")


@dataclass(frozen=True, kw_only=True)
class Use:
    """A kind of task that people have.

    Parameters
    ----------
    pays
        What is paid, and on which level.
    n_rounds, n_actions, n_features
        Sizes; without features there is no context, as in an A/B test.
    effect
        How an action's advantage depends on the context: none, linear, tree, smooth or mixed.
    strength
        Size of advantages, in units of a score; raised where luck would hide them.
    own
        The share of their variance that is the action's own average, 1 without a context.
    main
        Size of the main effect.
    bad
        The share of actions that are clearly worse than the others.
    drift
        `slow` or `sudden` changes of advantages; empty if nothing changes.
    comes_and_goes
        Whether actions join and leave.
    delay
        The mean number of rounds until a reward is known.
    """

    pays: Payment
    n_rounds: int
    n_actions: int
    n_features: int = 0
    effect: str = "none"
    strength: float = 0.5
    own: float = 0.2
    main: float = 0.0
    bad: float = 0.0
    drift: str = ""
    comes_and_goes: bool = False
    delay: float = 0.0


def production(*, seed: int, max_rows: int = 20_000) -> Task:
    """A task of the family, the same one for the same seed.

    Parameters
    ----------
    seed
        Decides everything.
    max_rows
        The most rows; at least 530. There are 530 or more, evenly spread on a logarithmic scale.

    Examples
    --------
    >>> task = production(seed=1)
    >>> task.expected.shape == task.rewards.shape
    True
    """
    from melee.rng import check_seed, generator  # here, because it compiles

    rng = generator(check_seed(seed), "production")
    rows = whole_number("max_rows", max_rows, 500 + LABELLED)
    while True:  # most uses are clear enough at once
        use = draw(rng, rows - LABELLED)
        task = _made(use, f"production-{seed}", rng, f"seed {seed}", keep_rows=False)
        if task is not None:
            return task


def task_of(
    use: Use, name: str, rng: np.random.Generator, *, origin: str = "", keep_rows: bool = False
) -> Task:
    """The task of a use; refuses one in which luck hides what can be gained."""
    task = _made(use, name, rng, origin, keep_rows)
    if task is None:
        raise DataError(
            f"use {name}: no advantage can be told from luck in {use.n_rounds} rounds with "
            f"{use.n_actions} actions; give it more rounds or fewer actions"
        )
    return task


def draw(rng: np.random.Generator, max_rounds: int) -> Use:
    """A use at random."""
    least, most = ((0, 0), (2, 5), (6, 20), (21, 60))[
        int(rng.choice(4, p=(0.15, 0.35, 0.35, 0.15)))
    ]
    n_features = int(rng.integers(least, most + 1))
    fewest, most_actions = ((2.0, 2.0), (2.0, 20.0), (20.0, 100.0))[
        int(rng.choice(3, p=(0.15, 0.65, 0.2)))
    ]
    n_actions = round(log_uniform(rng, fewest, most_actions))
    kinds = ("linear", "tree", "smooth", "mixed", "none")
    contextual = str(rng.choice(kinds, p=(0.3, 0.25, 0.15, 0.25, 0.05)))
    return Use(
        pays=_payment(rng),
        n_rounds=round(log_uniform(rng, min(max(500, 40 * n_actions), max_rounds), max_rounds)),
        n_actions=n_actions,
        n_features=n_features,
        effect=contextual if n_features else "none",
        strength=log_uniform(rng, 0.2, 1.6),
        own=float(rng.beta(1.0, 2.0)),
        main=0.0 if rng.random() < 0.3 else log_uniform(rng, 0.1, 1.5),
        bad=float(rng.uniform(0.3, 0.9)) if rng.random() < 0.25 else 0.0,
        drift=str(rng.choice(DRIFTS, p=(0.92, 0.05, 0.03))),
    )


def _payment(rng: np.random.Generator) -> Payment:
    """What is paid, at random."""
    kind = int(rng.choice(6, p=(0.33, 0.14, 0.15, 0.12, 0.13, 0.13)))
    if kind == 0:
        return Clicks(log_uniform(rng, 0.003, 0.6))
    if kind == 1:
        return Clicks(1.0 - log_uniform(rng, 0.005, 0.4))
    if kind in (2, 3):
        width = rng.uniform(0.3, 1.0) if kind == 2 else log_uniform(rng, 0.01, 0.2)
        low = rng.uniform(0.0, 1.0 - width)
        return Graded(
            float(low),
            float(low + width),
            middle=float(rng.uniform(0.15, 0.85)),
            precision=log_uniform(rng, 1.0, 100.0),
            levels=int(rng.integers(3, 11)) if rng.random() < 0.25 else 0,
        )
    if kind == 4:
        return Revenue(
            rate=log_uniform(rng, 0.005, 0.5),
            amount=log_uniform(rng, 1e-3, 1e5),
            spread=float(rng.uniform(0.2, 1.1) if rng.random() < 0.7 else rng.uniform(1.1, 1.9)),
            by_rate=float(rng.beta(1.0, 1.0)),
        )
    scale = log_uniform(rng, 1e-3, 1e5)
    return Numbers(
        centre=float(scale * rng.normal() * log_uniform(rng, 0.1, 10.0)),
        scale=scale,
        noise=log_uniform(rng, 0.2, 4.0),
        shape=str(rng.choice(("normal", "laplace", "skewed"))),
    )


def _made(
    use: Use, name: str, rng: np.random.Generator, origin: str, keep_rows: bool
) -> Task | None:
    """The task of a use, its strength raised where luck would hide it; None if that is in vain."""
    n, k = use.n_rounds + LABELLED, use.n_actions
    seen = situations(rng, n, use.n_features)
    main = np.zeros((n, 1))
    if use.n_features and use.main:
        main = use.main * effect(rng, seen.standard, 1, str(rng.choice(("linear", "tree"))))
    advantage = _advantages(rng, use, seen.standard)
    if use.drift:
        later = _advantages(rng, use, seen.standard)
        while _best_first(later)[0] == _best_first(advantage)[0]:  # that would be no change
            later = _advantages(rng, use, seen.standard)
        advantage = _drifting(rng, use, advantage, later)
    can = _present(rng, n, _best_first(advantage)) if use.comes_and_goes else None
    some = rng.choice(n, size=min(n, max(SAMPLE // k, 200)), replace=False)
    strength = _clear_strength(use, main[some], advantage[some], None if can is None else can[some])
    if strength is None:
        return None
    sampled = main[some] + strength * advantage[some]
    advantage *= strength
    advantage += main  # these are the scores now; large tasks are not kept twice
    law = use.pays.law(advantage, use.pays.level(sampled))
    kind = type(use.pays).__name__.lower()
    delays = rng.geometric(1.0 / (1.0 + use.delay), size=n) - 1 if use.delay else None
    return Task(
        name,
        seen.contexts,
        use.pays.draw(rng, law),
        provenance=", ".join(filter(None, [kind, f"{use.effect} effects", use.drift, origin])),
        rows=seen.rows if keep_rows or not use.n_features else None,
        reward_range=use.pays.reward_range,
        expected=law.expected,
        ordered=bool(use.drift) or use.comes_and_goes,
        open=can,
        delays=delays,
    )


def _advantages(rng: np.random.Generator, use: Use, standard: Floats) -> Floats:
    """What an action adds to the score of a context, (n, K): of size one."""
    k = use.n_actions
    own = rng.normal(size=k)
    worse = rng.permutation(k) < round(use.bad * k)
    if worse.all():
        worse[:] = False
    own[worse] -= rng.uniform(1.0, 3.0)
    own = (own - own.mean()) / max(float(own.std()), 1e-9)
    if use.effect == "none" or not use.n_features:
        return np.tile(own, (len(standard), 1))
    kind = use.effect
    values = np.sqrt(1.0 - use.own) * effect(rng, standard, k, kind)
    return np.asarray(values + np.sqrt(use.own) * own)


def _drifting(rng: np.random.Generator, use: Use, first: Floats, last: Floats) -> Floats:
    """From the first advantages to the last ones, slowly or from one row to the next."""
    time = np.linspace(0.0, 1.0, len(first))[:, None]
    if use.drift == "slow":
        turn = 0.5 * np.pi * time
        return np.asarray(np.cos(turn) * first + np.sin(turn) * last)
    return np.where(time < rng.uniform(0.3, 0.7), first, last)


def _best_first(advantage: Floats) -> Ints:
    """The actions, from the one that is best on average on."""
    return np.argsort(-advantage.mean(axis=0), kind="stable")


def _present(rng: np.random.Generator, n: int, best_first: Ints) -> Mask:
    """Which actions there are: some always, others join late, leave early, or both.

    The best ones are among the others, or nothing would be lost by not noticing.
    """
    k = len(best_first)
    late, early = rng.random(k) < 0.4, rng.random(k) < 0.3
    good = best_first[: max(k // 4, 1)]
    late[good[::2]] = early[good[1::2]] = True
    always = best_first[-(k // 2) :][:2]
    late[always] = early[always] = False
    joins = np.where(late, rng.integers(n // 10, n * 7 // 10, size=k), 0)
    leaves = np.where(early, rng.integers(n * 3 // 10, n * 9 // 10, size=k), n)
    row = np.arange(n)[:, None]
    return np.asarray((row >= joins) & (row < np.maximum(leaves, joins + n // 10)))


def _clear_strength(use: Use, main: Floats, advantage: Floats, can: Mask | None) -> float | None:
    """The least strength, from the use's own on, at which choosing well can be learned."""
    strength = use.strength
    enough = CLEAR * np.sqrt(TO_LEARN.get(use.effect, 1 + use.n_features))
    while strength <= MOST:
        scores = main + strength * advantage
        law = use.pays.law(scores, use.pays.level(scores))
        if clarity(law.expected, law.variance, use.n_rounds, can) >= enough:
            return strength
        strength *= 1.3
    return None


def clarity(expected: Floats, variance: Floats, n_rounds: int, can: Mask | None = None) -> float:
    """What choosing well is worth beside the luck of as many rounds as each action gets."""
    uniform, best = uniform_and_best(expected, can)
    luck = np.sqrt(float(variance.mean()) * expected.shape[1] / n_rounds)
    return float((best - uniform).mean()) / max(float(luck), 1e-300)
