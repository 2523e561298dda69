"""Situations in which actions are chosen, and what they change: contexts and effects.

Columns are as people have them: numbers in any unit, skewed ones, counts, yes and no, levels of a
category; some hang together, some say nothing. Effects are functions of the same columns,
standardized: an action's reward may follow a line, the leaves of a tree, a smooth curve, or all.
"""

from typing import NamedTuple

import numpy as np

from melee.arrays import Floats
from melee.datasets.lifelike import leaves, log_uniform, product
from melee.rows import Rows, Texts

EFFECTS = ("none", "linear", "tree", "smooth", "mixed")
"""How the advantage of an action may depend on a context."""


class Situations(NamedTuple):
    """Contexts: a table (n, d), the same standardized, and the rows as an agent meets them."""

    contexts: Floats
    standard: Floats
    rows: Rows


def situations(rng: np.random.Generator, n: int, n_features: int) -> Situations:
    """Draw n contexts of so many columns; without any, a column that says nothing stands there."""
    if n_features == 0:
        return Situations(np.zeros((n, 1)), np.zeros((n, 1)), Rows({}, n_rows=n))
    hidden = rng.normal(size=(n, n_features))
    if n_features > 1 and rng.random() < 0.5:  # columns that hang together
        n_factors = int(rng.integers(1, n_features // 2 + 2))
        loadings = rng.normal(size=(n_factors, n_features)) / np.sqrt(n_factors)
        common = rng.uniform(0.2, 0.7)
        hidden = np.sqrt(1.0 - common) * hidden
        hidden += np.sqrt(common) * product(rng.normal(size=(n, n_factors)), loadings)
    contexts = np.empty((n, n_features))
    named: dict[str, Floats | Texts] = {}
    kinds = rng.choice(5, size=n_features, p=rng.dirichlet((3.0, 1.0, 1.0, 1.5, 1.0)))
    j = 0
    while j < n_features:
        column, room = hidden[:, j], n_features - j
        if kinds[j] == 4 and room >= 3:  # a category, one column per level
            n_levels = int(rng.integers(3, min(room, 6) + 1))
            edges = np.sort(rng.normal(size=n_levels - 1))
            codes = np.searchsorted(edges, column).astype(np.int32)
            contexts[:, j : j + n_levels] = codes[:, None] == np.arange(n_levels)
            named[f"c{j}"] = Texts(codes, tuple(f"level {i}" for i in range(n_levels)))
            j += n_levels
            continue
        if kinds[j] == 3:
            contexts[:, j] = column > rng.uniform(-1.3, 1.3)
        elif kinds[j] == 2:
            contexts[:, j] = np.floor(np.exp(rng.uniform(0.0, 1.5) + 0.7 * column))
        elif kinds[j] == 1:
            contexts[:, j] = log_uniform(rng, 1.0, 1e4) * np.exp(rng.uniform(0.5, 1.2) * column)
        else:
            scale = log_uniform(rng, 0.1, 100.0)
            contexts[:, j] = scale * (column + rng.uniform(-3.0, 3.0))
        named[f"x{j}"] = contexts[:, j]
        j += 1
    size = contexts.std(axis=0)
    standard = (contexts - contexts.mean(axis=0)) / np.where(size > 1e-9, size, 1.0)
    return Situations(contexts, np.clip(standard, -4.0, 4.0), Rows(named))


def effect(rng: np.random.Generator, standard: Floats, n_outputs: int, kind: str) -> Floats:
    """A random function of contexts, (n, n_outputs), of mean 0 and size 1 over all its values.

    It depends on some of the columns, but not on what is hardly ever seen alone, such as a rare
    level; the smooth one on four at most, or nobody could learn it.
    """
    if kind == "mixed":
        parts = [effect(rng, standard, n_outputs, form) for form in ("linear", "tree", "smooth")]
        weights = rng.dirichlet(np.full(3, 2.0))
        values = sum((np.sqrt(w) * part for w, part in zip(weights, parts, strict=True)), 0.0)
        return _sized(np.asarray(values))
    frequent = np.flatnonzero(np.abs(standard).mean(axis=0) > 0.5)
    columns = frequent if len(frequent) else np.arange(standard.shape[1])
    most = min(len(columns), 4) if kind == "smooth" else len(columns)
    chosen = rng.choice(columns, size=int(rng.integers(min(2, most), most + 1)), replace=False)
    x = standard[:, chosen]
    if kind == "linear":
        return _sized(product(x, rng.normal(size=(len(chosen), n_outputs))))
    if kind == "tree":
        leaf = leaves(rng, x)
        for _ in range(20):
            if np.bincount(leaf).max() < 0.7 * len(leaf):
                break
            leaf = leaves(rng, x)  # hardly any row was told from others
        return _sized(rng.normal(size=(64, n_outputs))[leaf])
    n_waves = 24
    length = rng.uniform(0.5, 1.2)
    directions = length * rng.normal(size=(len(chosen), n_waves))
    waves = np.cos(product(x, directions) + rng.uniform(0.0, 2 * np.pi, n_waves))
    return _sized(product(waves, rng.normal(size=(n_waves, n_outputs))))


def _sized(values: Floats) -> Floats:
    """Each function of mean 0; all together of variance 1, unless they are constant."""
    values = values - values.mean(axis=0)
    size = float(values.std())
    return values / size if size > 1e-9 else values
