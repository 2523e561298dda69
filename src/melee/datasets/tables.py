"""Tables as tasks, with a label in each row or with a reward for every action."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.datasets.encoding import Encoding, as_numbers, as_rows, distinct, encode, listed
from melee.datasets.files import read_frame, stem
from melee.errors import DataError, shown
from melee.extras import needed
from melee.task import Task

if TYPE_CHECKING:
    import pandas as pd

TARGETS = ("target", "class", "label")
"""Names of the column with the label, in order of preference; the last column otherwise."""

REWARD_PREFIX = "reward:"


def read_table(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    name: str | None = None,
    drop: Sequence[str] = (),
    keep_rows: bool = False,
) -> Task:
    r"""A file with one row per round as a task.

    The label's column decides the actions: reward 1 for the row's label, 0 for the others. A
    table whose columns begin with `reward:` is read by `read_rewards` instead.

    Parameters
    ----------
    path
        CSV or TSV (also gzipped), Parquet or ARFF, with a header.
    target
        Column with the label: `target`, `class` or `label` if there is one, else the last.
    name
        Name of the task; the file's name when left out.
    drop
        Columns to leave out.
    keep_rows
        Keep the rows as they are beside their numbers, for `rehearse`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "pets.csv")
    ...     _ = path.write_text("weight,fur,kind\n4,yes,cat\n30,yes,dog\n1,no,cat\n")
    ...     task = read_table(path)
    >>> task.action_names, task.feature_names
    (('cat', 'dog'), ('weight', 'fur=no', 'fur=yes'))
    """
    path = Path(path)
    frame = read_frame(path)
    if target is None and any(str(c).startswith(REWARD_PREFIX) for c in frame.columns):
        return _rewards_to_task(frame, path, REWARD_PREFIX, name, drop, keep_rows)
    return table_to_task(
        frame,
        target,
        name=name or stem(path),
        drop=drop,
        source=path.name,
        keep_rows=keep_rows,
    )


def read_rewards(
    path: str | os.PathLike[str],
    *,
    reward_prefix: str = REWARD_PREFIX,
    name: str | None = None,
    drop: Sequence[str] = (),
    keep_rows: bool = False,
) -> Task:
    r"""A file that gives the reward of every action in every row.

    Columns that begin with the prefix are the actions (the rest of the column's name is the
    action's); all others are the context. For a single label per row see `read_table`.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "offers.csv")
    ...     _ = path.write_text("age,reward:book,reward:film\n20,0.1,0.9\n70,0.8,0.5\n")
    ...     task = read_rewards(path)
    >>> task.action_names, task.rewards.tolist()
    (('book', 'film'), [[0.1, 0.9], [0.8, 0.5]])
    """
    path = Path(path)
    return _rewards_to_task(read_frame(path), path, reward_prefix, name, drop, keep_rows)


def table_to_task(
    frame: "pd.DataFrame",
    target: str | None = None,
    *,
    name: str = "table",
    drop: Sequence[str] = (),
    source: str = "a data frame",
    notes: Sequence[str] = (),
    keep_rows: bool = False,
) -> Task:
    """A data frame as a task; `read_table` says how columns are encoded and labels found.

    Parameters
    ----------
    frame
        One row per round.
    target, name, drop, keep_rows
        As in `read_table`.
    source
        What error messages and the task's provenance call the frame.
    notes
        What was done to the rows before.

    Examples
    --------
    >>> import pandas as pd
    >>> table_to_task(pd.DataFrame({"x": [1.5, 2.5], "label": [10, 9]})).action_names
    ('9', '10')
    """
    frame, said = without(frame, drop, source)
    columns = [str(c) for c in frame.columns]
    if target is None:
        lowered = [c.lower() for c in columns]
        target = next((columns[lowered.index(t)] for t in TARGETS if t in lowered), columns[-1])
    elif target not in columns:
        raise DataError(
            f"{source}: there is no column '{target}' to use as target; "
            f"the columns are {listed(columns, most=20)}"
        )
    classes, codes = _classes(frame[target], target, source)
    features = frame.drop(columns=target)
    encoding = encode(features, source=source)
    contexts = stack(encoding, source)
    rows = as_rows(features, source=source) if keep_rows else None
    labelled = codes >= 0
    if not labelled.all():
        said.append(f"left out {int((~labelled).sum())} rows without a label")
        contexts, codes = contexts[labelled], codes[labelled]
        rows = None if rows is None else rows.where(labelled)
    rewards = np.zeros((codes.size, len(classes)))
    rewards[np.arange(codes.size), codes] = 1.0
    return Task(
        name,
        contexts,
        rewards,
        feature_names=encoding.names,
        action_names=classes,
        provenance=f"{source}, labels in '{target}'",
        notes=(*notes, *said, *encoding.notes()),
        rows=rows,
    )


def without(
    frame: "pd.DataFrame", drop: Sequence[str], source: str
) -> tuple["pd.DataFrame", list[str]]:
    """The frame without the columns to drop, and the note that says so."""
    with needed("reading tables", "tables"):
        import pandas as pd

    frame = frame.set_axis(pd.Index([str(c) for c in frame.columns]), axis="columns")
    wrong = [c for c in drop if c not in frame.columns]
    if wrong:
        raise DataError(
            f"{source}: there is no column '{wrong[0]}' to leave out; "
            f"the columns are {listed(list(frame.columns), most=20)}"
        )
    if not drop:
        return frame, []
    return frame.drop(columns=list(drop)), [f"left out as asked: {listed(list(drop))}"]


def _classes(column: "pd.Series[Any]", target: str, source: str) -> tuple[list[str], Any]:
    """The class names, numbers in numeric order before text, and each row's index (-1: none)."""
    codes, found = distinct(column, target, source=source)
    names = [_label(value) for value in found]
    if len(names) < 2:
        only = f"only the class {shown(names[0])}" if names else "no labels at all"
        raise DataError(
            f"{source}: column '{target}' holds {only}; a task needs at least 2 classes"
        )
    if len(names) > 20 and len(names) > codes.size / 2:
        raise DataError(
            f"{source}: column '{target}' has {len(names)} different values in {codes.size} rows, "
            "so it is no class label; name another column as target, or bin it first"
        )
    order = sorted(range(len(names)), key=lambda i: _numbers_first(names[i]))
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(len(names)), -1  # code -1 looks up the last
    return [names[i] for i in order], rank[codes]


def _label(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _numbers_first(name: str) -> tuple[bool, float, str]:
    try:
        number = float(name)
    except ValueError:
        number = math.nan
    return (False, number, name) if math.isfinite(number) else (True, 0.0, name)


def stack(encoding: Encoding, source: str) -> Any:
    """The features of an encoding as a matrix, which it gives up for it."""
    if not encoding.features:
        raise DataError(
            f"{source}: no column is left to use as context ({'; '.join(encoding.notes())}); "
            "add columns that differ between rows"
        )
    contexts = np.empty((encoding.features[0].size, len(encoding.features)))
    for i, feature in enumerate(encoding.features):
        contexts[:, i] = feature
    encoding.features.clear()
    return contexts


def _rewards_to_task(
    frame: "pd.DataFrame",
    path: Path,
    prefix: str,
    name: str | None,
    drop: Sequence[str],
    keep_rows: bool,
) -> Task:
    source = path.name
    frame, said = without(frame, drop, source)
    columns = [c for c in frame.columns if c.startswith(prefix)]
    if not columns:
        raise DataError(
            f"{source}: no column begins with '{prefix}'; "
            f"the columns are {listed(list(frame.columns), most=20)}"
        )
    rewards = np.empty((frame.shape[0], len(columns)))
    for i, column in enumerate(columns):
        numbers = as_numbers(frame[column], column, source=source)
        if numbers is None or np.isnan(numbers).any():
            row = 0 if numbers is None else int(np.argmax(np.isnan(numbers)))
            found = "text" if numbers is None else "no value"
            raise DataError(
                f"{source}: column '{column}' holds {found} in data row {row + 1}; "
                "give a number from 0 to 1 in every row"
            )
        rewards[:, i] = numbers
    features = frame.drop(columns=columns)
    encoding = encode(features, source=source)
    return Task(
        name or stem(path),
        stack(encoding, source),
        rewards,
        feature_names=encoding.names,
        action_names=[c.removeprefix(prefix) for c in columns],
        provenance=f"{source}, a reward for each of {len(columns)} actions",
        notes=(*said, *encoding.notes()),
        rows=as_rows(features, source=source) if keep_rows else None,
    )
