"""Tasks whose actions have features: numbers to be chosen, and catalogues that change.

`value_task` makes one of a table with a number as target: an action is a value of that number, its
feature is the value itself, and the reward says how near it is to the row's own. The suite
`catalogue` is made: articles come and go, have a topic, a length and a price, and some are liked
for what no feature says; readers differ in their tastes. Their expected rewards are known.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from melee.arrays import Floats
from melee.datasets.encoding import as_numbers, as_rows, encode, listed
from melee.datasets.tables import stack, without
from melee.errors import DataError, whole_number
from melee.rows import Rows, Texts
from melee.task import Task

if TYPE_CHECKING:
    import pandas as pd

N_VALUES = 100
"""Values to choose from, unless asked for others."""
LABELLED = 30
"""Rows that are set aside from every task."""
TOPICS = ("sport", "film", "news", "science", "music", "food", "travel", "games")


def value_task(
    frame: "pd.DataFrame",
    target: str | None = None,
    *,
    name: str = "values",
    n_values: int = N_VALUES,
    drop: Sequence[str] = (),
    source: str = "a data frame",
    keep_rows: bool = False,
) -> Task:
    """A table with a number as target, as a choice of that number.

    The range of the target is cut into as many bins of one width as there are values; an action is
    a bin, its feature `value` the middle of it. The reward is 1 - |value - target| / range.

    Parameters
    ----------
    frame
        One row per round.
    target
        The column of the number; by default the last one.
    name, drop, source, keep_rows
        As in `table_to_task`.
    n_values
        How many values there are to choose from.

    Examples
    --------
    >>> import pandas as pd
    >>> task = value_task(pd.DataFrame({"x": [1.0, 2.0], "price": [10.0, 20.0]}), n_values=4)
    >>> task.action_names, task.rewards[0].tolist()
    (('11.25', '13.75', '16.25', '18.75'), [0.875, 0.625, 0.375, 0.125])
    """
    n_values = whole_number("n_values", n_values, 2)
    frame, said = without(frame, drop, source)
    target = str(frame.columns[-1]) if target is None else target
    if target not in frame.columns:
        raise DataError(
            f"{source}: there is no column '{target}' to use as target; "
            f"the columns are {listed(list(map(str, frame.columns)), most=20)}"
        )
    numbers = as_numbers(frame[target], target, source=source)
    if numbers is None or np.isnan(numbers).any() or not np.ptp(numbers) > 0.0:
        raise DataError(
            f"{source}: the target '{target}' is no number in every row, or always the same; "
            "expected a number to be chosen"
        )
    low, size = float(numbers.min()), float(np.ptp(numbers))
    values = low + (np.arange(n_values) + 0.5) / n_values * size
    features = frame.drop(columns=target)
    encoding = encode(features, source=source)
    return Task(
        name,
        stack(encoding, source),
        1.0 - np.abs(values - numbers[:, None]) / size,
        feature_names=encoding.names,
        action_names=[f"{value:.6g}" for value in values],
        provenance=f"{source}, {n_values} values of '{target}'",
        notes=(*said, *encoding.notes()),
        rows=as_rows(features, source=source) if keep_rows else None,
        reward_range=(0.0, 1.0),
        action_rows=Rows({"value": values}),
    )


class Kiosk(NamedTuple):
    """A made catalogue: how many articles are there at a time, for how long, and how they pay."""

    n_rounds: int
    n_open: int  # articles at a time
    life: int  # rounds that an article is there, on average
    rate: float  # of clicks, on average
    taste: float = 1.0  # how much readers differ in what topics they like
    own: float = 0.5  # how much articles differ in what no feature says


KIOSKS = {
    "news-40": Kiosk(n_rounds=6000, n_open=40, life=1000, rate=0.1),
    "news-100-short": Kiosk(n_rounds=6000, n_open=100, life=600, rate=0.1),
    "shop-30": Kiosk(n_rounds=10_000, n_open=30, life=4000, rate=0.05, taste=0.7, own=0.8),
    "films-60": Kiosk(n_rounds=6000, n_open=60, life=2000, rate=0.3, taste=1.5),
}


def catalogue_task(name: str, *, keep_rows: bool = False) -> Task:
    """A task of the suite `catalogue`.

    >>> task = catalogue_task("news-40")
    >>> task.n_actions > 200, task.action_rows[0].keys()
    (True, dict_keys(['topic', 'length', 'price']))
    """
    from melee.rng import generator  # here, because it compiles

    return draw_catalogue(KIOSKS[name], name, generator(0, "catalogue suite", name))


def draw_catalogue(kiosk: Kiosk, name: str, rng: np.random.Generator) -> Task:
    """A catalogue at random."""
    n = kiosk.n_rounds + LABELLED
    can, n_items = _lives(kiosk, n, rng)
    topics = rng.integers(0, len(TOPICS), n_items)
    length, price = rng.normal(size=n_items), rng.normal(size=n_items)
    contexts = rng.normal(size=(n, 6))
    taste = rng.normal(size=(6, len(TOPICS))) * kiosk.taste / np.sqrt(6.0)
    likes_length = contexts[:, :1] * 0.4
    # Summed in a fixed order: BLAS takes another one with other threads, and a task is known by
    # its bits.
    likes = sum(contexts[:, [j]] * taste[j] for j in range(6))
    scores = likes[:, topics] + rng.normal(size=len(TOPICS))[topics] * 0.4
    scores = scores + likes_length * length - 0.3 * np.abs(price - contexts[:, 1:2])
    scores += rng.normal(size=n_items) * kiosk.own
    expected = 1.0 / (1.0 + np.exp(-(scores + _offset(scores, kiosk.rate))))
    return Task(
        name,
        contexts,
        (rng.random(expected.shape) < expected).astype(np.float64),
        provenance="made, suite catalogue",
        reward_range=(0.0, 1.0),
        expected=expected,
        ordered=True,
        open=can,
        action_rows=Rows(
            {"topic": Texts(topics.astype(np.int32), TOPICS), "length": length, "price": price}
        ),
    )


def _lives(kiosk: Kiosk, n: int, rng: np.random.Generator) -> tuple[Any, int]:
    """Which articles are there in every round: each of so many places has one after the other."""
    spans = []
    for _ in range(kiosk.n_open):
        at = -int(rng.integers(0, kiosk.life))
        while at < n:
            end = at + int(kiosk.life * rng.uniform(0.5, 1.5))
            if end > 0:
                spans.append((max(at, 0), min(end, n)))
            at = end
    can = np.zeros((n, len(spans)), np.bool_)
    for item, (first, last) in enumerate(spans):
        can[first:last, item] = True
    return can, len(spans)


def _offset(scores: Floats, rate: float) -> float:
    """What to add to scores for clicks to be as frequent as that, by bisection."""
    some = scores[::37]
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if (1.0 / (1.0 + np.exp(-(some + middle)))).mean() < rate:
            low = middle
        else:
            high = middle
    return low
