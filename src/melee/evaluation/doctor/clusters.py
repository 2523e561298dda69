"""Rounds that are not independent: the same visitor again and again.

Intervals take rounds to be independent. Where a few hundred visitors have fifty rounds each, and
each has tastes of its own, a log knows little more than as many rounds as there are visitors would
tell. Groups of rounds that may be such: those with the same context, and with the same text or
whole number in a column. Being equal is no fault, though: where contexts are few they come
again by nature, and the log has seen all that there are. So a group has to look like a visitor's:

- its rounds come together. In what order independent rounds come is chance, so that all c of a
  group are in one half of the log with chance 2^(1 - c);
- or contexts are equal as a whole, where values by themselves would make at least three times as
  many different ones: each column tells who it is.

And rewards have to go together, or nothing is lost. How many rounds the log is worth tells the
variance of its mean reward by groups, Σ (Σ (r - r̄))² / n², beside that of independent rounds.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from melee.arrays import Floats, Ints
from melee.contexts import Context
from melee.evaluation.doctor.columns import ContextColumn
from melee.evaluation.doctor.examined import Examined
from melee.evaluation.doctor.findings import LEVEL, Symptom, count_p_value

FEWEST = 20
"""Groups below which they are kinds of rounds, and their variance is not known."""
LOSS = 1.5
"""Times by which the variance has to be larger than that of independent rounds."""


class _Groups(NamedTuple):
    """Rounds by group: a name for what they share, the rounds, and the group of each."""

    name: str
    rows: Ints
    group: Ints


def dependent(log: Examined) -> Iterator[Symptom]:
    """Groups of rounds whose rewards go together; contexts have to be of one kind."""
    found = []
    for groups in _candidates(log):
        worth = _worth(log, groups)
        if worth < len(groups.rows) / LOSS:
            found.append((worth, groups))
    if not found:
        return
    # Of several groupings the finest: visitors of one age go together, too.
    worth, (name, rows, group) = max(found, key=lambda group: int(group[1].group.max()))
    yield Symptom(
        "warning",
        f"{len(rows):,} rounds have {group.max() + 1:,} different {name}, and rewards of the same "
        f"go together: they are worth {worth:,.0f} independent rounds",
        f"if each is a visitor, intervals are too narrow, by {math.sqrt(len(rows) / worth):.1f} "
        "times: read them as so much wider, or log more visitors rather than more rounds of each",
    )


def _candidates(log: Examined) -> Iterator[_Groups]:
    """Groups that look like those of visitors."""
    keys = [_key(context) for context in log.contexts]
    whole = _grouped("contexts", keys, np.arange(log.n))
    if whole is not None and (_together(whole, log.n) or _tell_the_same(log.columns, whole)):
        yield whole
    for column in log.columns:
        if len(set(column.level_rows)) == len(column.level_rows) > 0:
            groups = _grouped(
                f"values of {column.name}", column.levels, np.array(column.level_rows)
            )
        elif len(column.numbers) and (column.numbers == np.rint(column.numbers)).all():
            groups = _grouped(
                f"values of {column.name}", column.numbers.tolist(), column.number_rows
            )
        else:
            continue
        if groups is not None and _together(groups, log.n):
            yield groups


def _key(context: Context) -> Hashable:
    if isinstance(context, dict):
        return tuple(sorted(context.items()))
    return np.asarray(context).tobytes()


def _grouped(name: str, keys: Sequence[Hashable], rows: Ints) -> _Groups | None:
    """The rounds by key; None if keys are too few, or hardly ever come again."""
    numbers: dict[Hashable, int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    if len(numbers) < FEWEST or len(keys) < 2 * len(numbers):
        return None
    return _Groups(name, rows, group)


def _together(groups: _Groups, n: int) -> bool:
    """Whether more groups are in one half of the log than chance would put there."""
    late = np.bincount(groups.group, weights=groups.rows >= n // 2)
    counts = np.bincount(groups.group)
    several = counts > 1
    chance = 2.0 ** (1.0 - counts[several])
    n_whole = int(((late == 0) | (late == counts))[several].sum())
    expected, variance = float(chance.sum()), float((chance * (1.0 - chance)).sum())
    return n_whole > expected and count_p_value(n_whole, expected, variance) < LEVEL


def _tell_the_same(columns: Sequence[ContextColumn], groups: _Groups) -> bool:
    """Whether independent columns would make many more different contexts.

    Columns are moved against each other, each by another number of rounds.
    """
    n = len(groups.rows)
    moved = np.zeros((len(columns), n), dtype=np.int64)
    for i, column in enumerate(columns):
        codes = np.zeros(n, dtype=np.int64)
        codes[column.number_rows] = 1 + np.unique(column.numbers, return_inverse=True)[1]
        codes[column.level_rows] = -1 - np.unique(column.levels, return_inverse=True)[1]
        moved[i] = np.roll(codes, (i * n) // len(columns))
    return bool(np.unique(moved, axis=1).shape[1] >= 3 * (groups.group.max() + 1))


def _worth(log: Examined, groups: _Groups) -> float:
    """How many independent rounds know the mean reward as well; all of them where that is luck."""
    usable = log.right_reward[groups.rows]
    rows, group = groups.rows[usable], groups.group[usable]
    if len(rows) < 2 * FEWEST:
        return float(len(groups.rows))
    sizes = log.stands_for[rows] / log.stands_for[rows].mean()
    rewards = log.rewards[rows]
    away: Floats = sizes * (rewards - (sizes * rewards).mean())
    alone = float(away @ away)
    if alone <= 0.0:
        return float(len(groups.rows))
    counts = np.bincount(group).astype(np.float64)
    loss = float((np.bincount(group, weights=away) ** 2).sum()) / alone
    n_groups = float((counts**2).sum()) ** 2 / float((counts**4).sum())
    luck = 3.3 * math.sqrt(2.0 / n_groups)
    return len(groups.rows) / (loss if loss > 1.0 + luck else 1.0)
