"""A task: contexts, and the reward that every action would have earned in each of them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from melee.arrays import Floats, Ints
from melee.errors import InputError
from melee.rows import Rows

LARGEST = 1e100
"""Numbers beyond this are refused: their squares would overflow."""
MAX_DELAY = 2**62
"""Sums of a delay and a round fit into 64 bits."""


@dataclass(frozen=True, eq=False)
class Task:
    """A fully labelled problem on which a bandit can be simulated.

    Rows are in the order of their source; the loop shuffles them, unless they are `ordered`. Arrays
    are copied once and cannot be written to afterwards.

    Parameters
    ----------
    name
        What tables and figures call it.
    contexts
        One row of numbers per round, shape (rows, features).
    rewards
        The reward of every action in every row, shape (rows, actions): any numbers within ±1e100,
        more is better.
    feature_names, action_names
        Names of the columns of `contexts` and `rewards`; numbered when left out.
    provenance
        Where the rows come from, in one line.
    notes
        What was done to the source on the way (columns left out, levels folded, values filled).
    rows
        The rows as they were before they became numbers, which is how an agent meets them (see
        `rehearse`); None where they were not kept.
    reward_range
        The least and the greatest reward there can be; None where that is not known. It says
        nothing new about what is played, so it is no part of the hash.
    expected
        The true expected reward of every action in every row, shape (rows, actions), which only
        made tasks know; runs then have a `share`. None where that is not known.
    ordered
        Whether rows have to be played in their order, because what they show changes in time.
    open
        Which actions can be chosen in every row, shape (rows, actions), at least one in each; None
        where all can.
    delays
        How many rounds after its own the reward of a row is known, shape (rows,); None where it is
        known at once. Tasks with `open` or `delays` are played by `rehearse`.
    action_rows
        The features of actions, as names and values: a row for each action, or a row for each row
        and action, those of the first row first. Such tasks are played by `rehearse`, whose agent
        meets the actions as candidates.

    Examples
    --------
    >>> task = Task("coin", contexts=[[0.0], [1.0]], rewards=[[1.0, 0.0], [0.0, 1.0]])
    >>> task.n_rows, task.n_features, task.n_actions
    (2, 1, 2)
    """

    name: str
    contexts: Floats
    rewards: Floats
    feature_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    provenance: str = "given as arrays"
    notes: tuple[str, ...] = field(default=())
    rows: Rows | None = None
    reward_range: tuple[float, float] | None = None
    expected: Floats | None = None
    ordered: bool = False
    open: npt.NDArray[np.bool_] | None = None
    delays: Ints | None = None
    action_rows: Rows | None = None

    def __init__(
        self,
        name: str,
        contexts: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        feature_names: Sequence[str] = (),
        action_names: Sequence[str] = (),
        provenance: str = "given as arrays",
        notes: Sequence[str] = (),
        rows: Rows | None = None,
        reward_range: tuple[float, float] | None = None,
        expected: npt.ArrayLike | None = None,
        ordered: bool = False,
        open: npt.ArrayLike | None = None,
        delays: npt.ArrayLike | None = None,
        action_rows: Rows | None = None,
    ) -> None:
        x = _matrix(name, "contexts", contexts)
        r = _matrix(name, "rewards", rewards)
        if x.shape[0] != r.shape[0]:
            raise InputError(
                f"task {name}: contexts have {x.shape[0]} rows and rewards have {r.shape[0]}; "
                "give one row of rewards per context"
            )
        if r.shape[1] < 2:
            raise InputError(
                f"task {name}: there is {r.shape[1]} action; "
                "a bandit needs at least 2 to choose from"
            )
        reward_range = _range(name, reward_range, r)
        means = None if expected is None else _matrix(name, "expected rewards", expected)
        if means is not None and means.shape != r.shape:
            raise InputError(
                f"task {name}: expected rewards have shape {means.shape} and rewards have "
                f"{r.shape}; give the expected reward of every action in every row"
            )
        if not isinstance(ordered, bool | np.bool_):
            raise InputError(f"task {name}: ordered is {ordered!r}; expected True or False")
        can = None if open is None else _open(name, open, r.shape)
        late = None if delays is None else _delays(name, delays, r.shape[0])
        if rows is not None and len(rows) != x.shape[0]:
            raise InputError(
                f"task {name}: there are {len(rows)} rows for {x.shape[0]} contexts; give one each"
            )
        if action_rows is not None and len(action_rows) not in (r.shape[1], r.size):
            raise InputError(
                f"task {name}: action_rows has {len(action_rows)} rows; expected one for each of "
                f"the {r.shape[1]} actions, or {r.size}, one for each row and action"
            )
        columns = tuple(feature_names) or tuple(f"x{i}" for i in range(x.shape[1]))
        actions = tuple(action_names) or tuple(str(a) for a in range(r.shape[1]))
        for what, names, n in [
            ("feature_names", columns, x.shape[1]),
            ("action_names", actions, r.shape[1]),
        ]:
            if len(names) != n:
                raise InputError(f"task {name}: {len(names)} {what} for {n} columns; give one each")
        for array in (x, r, means, can, late):
            if array is not None:
                array.flags.writeable = False
        described = (columns, actions, provenance, tuple(notes), rows, reward_range)
        values = (name, x, r, *described, means, bool(ordered), can, late, action_rows)
        for attribute, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, attribute, value)

    @classmethod
    def from_labels(
        cls,
        name: str,
        contexts: npt.ArrayLike,
        labels: Sequence[Any] | npt.NDArray[Any],
        **rest: Any,
    ) -> Self:
        """A classification problem as a task: reward 1 for the row's label, 0 for the others.

        >>> Task.from_labels("pets", [[0.0], [1.0]], ["cat", "dog"]).action_names
        ('cat', 'dog')
        """
        missing = [i for i, label in enumerate(labels) if label is None or label != label]
        if missing:
            raise InputError(
                f"task {name}: the label of row {missing[0]} is {labels[missing[0]]}; "
                "drop rows without a label first"
            )
        classes, index = np.unique(np.asarray(labels), return_inverse=True)
        rewards = np.zeros((index.size, classes.size))
        rewards[np.arange(index.size), index.reshape(-1)] = 1.0
        rest.setdefault("action_names", tuple(str(c) for c in classes))
        rest.setdefault("reward_range", (0.0, 1.0))
        return cls(name, contexts, rewards, **rest)

    @property
    def n_rows(self) -> int:
        """How many rows there are to play."""
        return int(self.contexts.shape[0])

    @property
    def n_features(self) -> int:
        """How many numbers a context has, d."""
        return int(self.contexts.shape[1])

    @property
    def n_actions(self) -> int:
        """How many actions there are to choose from, K."""
        return int(self.rewards.shape[1])

    @property
    def live(self) -> bool:
        """Whether only an agent can play it.

        Its actions come and go or have features, or its rewards come late.
        """
        return any(known is not None for known in (self.open, self.delays, self.action_rows))

    def features_of(self, row: int, action: int) -> dict[str, float | str | None]:
        """The features of an action in a row; none where there are none."""
        if self.action_rows is None:
            return {}
        each = len(self.action_rows) != self.n_actions
        return self.action_rows[row * self.n_actions + action if each else action]

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of what is played: shapes and bytes of arrays, and the order; not the names.

        What was not given leaves no trace in it.
        """
        digest = hashlib.sha256()
        for array in (self.contexts, self.rewards):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array, dtype="<f8").data)
        for name, kind in (("expected", "<f8"), ("open", "?"), ("delays", "<i8")):
            given = getattr(self, name)
            if given is not None:
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(given, dtype=kind).data)
        if self.ordered:
            digest.update(b"ordered")
        if self.action_rows is not None:
            digest.update(self.action_rows.content_hash.encode())
        return digest.hexdigest()

    def named_rows(self) -> Rows:
        """The rows that were kept, or else the numbers under the names of their features."""
        if self.rows is not None:
            return self.rows
        names = self.feature_names
        if len(set(names)) < len(names):
            names = tuple(f"x{i}" for i in range(len(names)))
        return Rows.of_numbers(names, self.contexts)

    @property
    def number(self) -> int:
        """A number made from the content, which keeps the randomness of tasks apart.

        Runs on two datasets under one seed share neither their shuffle nor their exploration, so
        datasets are independent of each other, as tests over datasets take them to be.
        """
        return int(self.content_hash[:8], 16)

    def __repr__(self) -> str:
        return (
            f"Task({self.name!r}, {self.n_rows} rows, {self.n_features} features, "
            f"{self.n_actions} actions)"
        )


def _matrix(name: str, what: str, given: npt.ArrayLike) -> Floats:
    """A private float64 copy of a matrix, or a refusal that says where it is wrong."""
    try:
        matrix = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"task {name}: {what} are not a matrix of numbers ({error}); "
            "encode text first, as melee.datasets.read_table does"
        ) from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(
            f"task {name}: {what} have shape {matrix.shape}; "
            "expected two dimensions, at least one row and one column"
        )
    if not np.isfinite(matrix).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(matrix))[0])
        raise InputError(
            f"task {name}: {what} hold {matrix[row, column]} at row {row}, column {column}; "
            "fill or drop missing values first"
        )
    if np.abs(matrix).max() > LARGEST:
        row, column = (int(i) for i in np.argwhere(np.abs(matrix) > LARGEST)[0])
        raise InputError(
            f"task {name}: {what} hold {matrix[row, column]:g} at row {row}, column {column}; "
            "expected numbers within ±1e100: rescale the column"
        )
    return matrix


def _range(name: str, given: Any, rewards: Floats) -> tuple[float, float] | None:
    """The range of rewards as two floats, or a refusal of one that these do not lie within."""
    if given is None:
        return None
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        low = high = np.nan
    if not -LARGEST <= low < high <= LARGEST:
        raise InputError(
            f"task {name}: reward_range is {given!r}; expected the least and the greatest reward "
            "there can be, such as (0.0, 1.0), or None where that is not known"
        )
    if rewards.min() < low or rewards.max() > high:
        raise InputError(
            f"task {name}: rewards run from {rewards.min():g} to {rewards.max():g} and "
            f"reward_range is ({low:g}, {high:g}); give a range that holds them, or leave it out"
        )
    return low, high


def _array(given: npt.ArrayLike) -> npt.NDArray[Any]:
    """A copy as an array, whatever was given: what is none holds objects."""
    try:
        return np.array(given)
    except ValueError:
        return np.array(None)


def _open(name: str, given: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """A private copy of which actions are open, or a refusal that says where it is wrong."""
    mask = _array(given)
    if mask.shape != shape or mask.dtype.kind not in "bui" or not np.isin(mask, (0, 1)).all():
        raise InputError(
            f"task {name}: open has shape {mask.shape} and holds {mask.dtype}; expected True or "
            f"False for every action in every row, shape {shape}"
        )
    closed = ~mask.astype(bool).any(axis=1)
    if closed.any():
        raise InputError(
            f"task {name}: no action is open in row {int(np.argmax(closed))}; "
            "leave such rows out, or open one"
        )
    return np.ascontiguousarray(mask, dtype=bool)


def _delays(name: str, given: npt.ArrayLike, n_rows: int) -> Ints:
    """A private copy of the delays, or a refusal that says where they are wrong."""
    delays = _array(given)
    if delays.shape != (n_rows,) or delays.dtype.kind not in "ui":
        raise InputError(
            f"task {name}: delays have shape {delays.shape} and hold {delays.dtype}; "
            f"expected a whole number of rounds for each of the {n_rows} rows"
        )
    if delays.min() < 0 or delays.max() > MAX_DELAY:
        row = int(np.argmax((delays < 0) | (delays > MAX_DELAY)))
        raise InputError(
            f"task {name}: the delay of row {row} is {delays[row]}; expected a whole number of "
            "rounds, 0 or more"
        )
    return np.ascontiguousarray(delays, dtype=np.int64)
