"""Synthetic tasks that resemble real tables, for training exploration policies.

Isotropic clouds of points are unlike the tables that people have, and a policy learns the family
it is trained on. Here a task is drawn in three steps, each at random from a wide range:

1. *What is behind the rows*: points of a latent space of 2 to 16 dimensions, and a score of every
   action at every point. `clusters`: each class is one to three clusters of its own size and
   shape. `linear`, `network` and `tree`: the classes of a linear map, a small random network, a
   random decision tree, with priors that may be far from even.
2. *What is seen of it*: correlated columns, each a sparse mix of latent directions with noise,
   some of them irrelevant; in half of the tasks some columns are skewed, rounded, cut, mostly
   zero or yes-and-no, and some come as levels of a category, one column per level.
3. *What is paid*: mostly 1 for the right class and 0 for others, with some labels wrong; else
   graded rewards in [0, 1], or clicks drawn with a rate of every action that may be low.
"""

import numpy as np

from melee.arrays import Floats, Ints
from melee.errors import whole_number
from melee.task import Task

KINDS = ("clusters", "linear", "network", "tree")
"""What may be behind the rows."""
PAYMENTS = ("labels", "graded", "clicks")
"""How rewards may come about."""
MAX_COLUMNS = 80


def lifelike(*, seed: int = 0, n_rows: int | None = None) -> Task:
    """A task of the family, the same one for the same seed.

    Two actions in a third of the tasks and up to 22 in the others; 180 to 4,000 rows unless
    `n_rows` says how many; up to 80 columns.

    >>> lifelike(seed=3, n_rows=500)
    Task('lifelike-3', 500 rows, 18 features, 4 actions)
    """
    from melee.rng import check_seed, generator  # here, because it compiles

    rng = generator(check_seed(seed), "lifelike")
    n_actions = 2 if rng.random() < 0.35 else round(log_uniform(rng, 2.5, 22.0))
    drawn_rows = round(log_uniform(rng, 150.0 + 15.0 * n_actions, 4000.0))
    n = drawn_rows if n_rows is None else whole_number("n_rows", n_rows, 2)
    kind = str(rng.choice(KINDS, p=(0.7, 0.1, 0.1, 0.1)))
    payment = str(rng.choice(PAYMENTS, p=(0.82, 0.09, 0.09)))
    latent, scores = _behind(rng, kind, n, n_actions)
    rewards = _paid(rng, payment, scores)
    contexts = _seen(rng, latent)
    names = tuple(str(a) for a in range(n_actions))
    return Task(
        f"lifelike-{seed}",
        contexts,
        rewards,
        action_names=names,
        provenance=f"{kind}, {payment}, seed {seed}",
        reward_range=(0.0, 1.0),
    )


def product(a: Floats, b: Floats) -> Floats:
    """The matrix product with sums in one order; those of `@` depend on how many threads run it."""
    return np.asarray(np.einsum("ij,jk->ik", a, b, optimize=False))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _behind(rng: np.random.Generator, kind: str, n: int, n_actions: int) -> tuple[Floats, Floats]:
    """Latent points (n, q), each direction of unit size, and the actions' scores (n, K)."""
    q = int(rng.integers(2, 17))
    priors = rng.dirichlet(np.full(n_actions, log_uniform(rng, 1.0, 30.0)))
    if kind == "clusters":
        return _clusters(rng, n, q, priors)
    points = rng.normal(size=(n, q))
    if rng.random() < 0.3:  # heavy tails
        points *= np.exp(0.3 * rng.normal(size=(n, 1)))
    if kind == "linear":
        scores = product(points, rng.normal(size=(q, n_actions)))
    elif kind == "network":
        width = int(rng.integers(4, 17))
        hidden = np.tanh(
            1.2 * product(points, rng.normal(size=(q, width))) / np.sqrt(q)
            + 0.5 * rng.normal(size=width)
        )
        scores = product(hidden, rng.normal(size=(width, n_actions)))
    else:
        scores = rng.normal(size=(64, n_actions))[leaves(rng, points)]
    scores = scores / (scores.std() + 1e-9) + rng.uniform(0.0, 0.7) * np.log(priors)
    softness = log_uniform(rng, 0.02, 0.3)
    return points, scores / softness


def _clusters(rng: np.random.Generator, n: int, q: int, priors: Floats) -> tuple[Floats, Floats]:
    """Every class has one to three clusters; what stands far from the others is easy to tell."""
    per_class = rng.choice((1, 2, 3), size=len(priors), p=(0.65, 0.2, 0.15))
    owner = np.repeat(np.arange(len(priors)), per_class)
    share = np.concatenate(
        [p * rng.dirichlet(np.full(k, 3.0)) for p, k in zip(priors, per_class, strict=True)]
    )
    apart = log_uniform(rng, 1.0, 4.0) * len(priors) ** 0.4
    centres = apart * rng.normal(size=(len(owner), q))
    shapes = np.exp(0.4 * rng.normal(size=(len(owner), q)))
    member = rng.choice(len(owner), size=n, p=share / share.sum())
    points = centres[member] + shapes[member] * rng.normal(size=(n, q))
    # The point's own class leads by so much that a draw hardly ever picks another.
    scores = rng.normal(size=(len(owner), len(priors)))[member]
    scores[np.arange(n), owner[member]] = 8.0 + scores.max(axis=1)
    return points / np.sqrt(1.0 + apart**2), scores


def leaves(rng: np.random.Generator, points: Floats) -> Ints:
    """The leaf, 0 to 63 at most, in which a random decision tree of depth 2 to 6 puts points."""
    leaf = np.zeros(len(points), np.int64)
    rows = np.arange(len(points))
    for depth in range(int(rng.integers(2, 7))):
        direction = rng.integers(0, points.shape[1], size=2**depth)
        threshold = 0.6 * rng.normal(size=2**depth)
        leaf = 2 * leaf + (points[rows, direction[leaf]] > threshold[leaf])
    return leaf


def _paid(rng: np.random.Generator, payment: str, scores: Floats) -> Floats:
    """Rewards in [0, 1] of every action."""
    n, k = scores.shape
    if payment == "labels":
        label = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
        wrong = 0.0 if rng.random() < 0.7 else rng.uniform(0.0, 0.25)
        label = np.where(rng.random(n) < wrong, rng.permutation(label), label)
        return np.eye(k)[label]
    ranked = scores - scores.mean(axis=1, keepdims=True)
    chance = 1.0 / (1.0 + np.exp(-log_uniform(rng, 0.5, 3.0) * ranked / (ranked.std() + 1e-9)))
    if payment == "graded":
        low = rng.uniform(0.0, 0.5)
        noisy = chance + rng.uniform(0.0, 0.3) * rng.normal(size=scores.shape)
        return np.asarray(low + (rng.uniform(low, 1.0) - low) * np.clip(noisy, 0.0, 1.0))
    rate = log_uniform(rng, 0.1, 1.0)
    return np.asarray(rng.random(scores.shape) < rate * chance, dtype=np.float64)


def _seen(rng: np.random.Generator, latent: Floats) -> Floats:
    """The columns of the table."""
    q = latent.shape[1]
    d = round(log_uniform(rng, 3.0, 60.0))
    loadings = rng.normal(size=(q, d)) * (rng.random((q, d)) < rng.uniform(0.15, 0.8))
    if rng.random() < 0.3:
        loadings[:, rng.random(d) < rng.uniform(0.0, 0.6)] = 0.0  # irrelevant columns
    columns = product(latent, loadings)
    columns /= columns.std(axis=0) + 1e-9
    columns += log_uniform(rng, 0.03, 0.6) * rng.normal(size=columns.shape)
    if rng.random() < 0.5:
        return columns
    done = [part for j in range(d) for part in _disguised(rng, columns[:, j])]
    return np.column_stack(done[:MAX_COLUMNS])


def _disguised(rng: np.random.Generator, column: Floats) -> list[Floats]:
    """A column as tables have it: as it is, skewed, rounded, cut, mostly 0, yes or no, levels."""
    how = int(rng.integers(0, 9))
    if how == 0:
        return [np.exp(rng.uniform(0.5, 1.5) * column)]
    if how == 1:
        return [np.round(column * rng.uniform(0.7, 3.0))]
    if how == 2:
        return [np.clip(column, *np.sort(rng.normal(size=2)))]
    if how == 3:
        return [np.where(column > rng.uniform(0.0, 1.2), column, 0.0)]
    if how == 4:
        return [(column > rng.normal()).astype(np.float64)]
    if how == 5:
        edges = np.sort(rng.normal(size=int(rng.integers(2, 6))))
        level = rng.permutation(len(edges) + 1)[np.searchsorted(edges, column)]
        return [(level == code).astype(np.float64) for code in range(len(edges) + 1)]
    return [column]
