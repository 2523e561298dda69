"""Histories: rounds in order, and the files that they are kept in.

A round is checked where it is made (`read_round`). A file may hold bad ones, though, and no file
is lost for one of its rows: readers leave bad rows out, list them in `History.problems`, and warn
once. With `strict=True` the first one refuses the file. To say what is wrong with rounds they must
be read: with `usable=False` they are kept as they are, a number that is none is NaN, and only what
cannot be read at all, such as a row without an action, is left out.

A row may also hold no round, with nothing wrong about it: a checkpoint, or a decision that is not
to be learned from. Such rows are left out and listed, strict or not.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self, TypeVar, overload

import numpy as np

from melee.arrays import Floats
from melee.atomic import write_atomically
from melee.errors import DataError, InputError, LeftOutWarning, unknown, warn_caller
from melee.history.rounds import Round, as_read, check_round, read_round
from melee.labels import Label

ENDINGS = {
    ".jsonl": "jsonl",
    ".jsonl.gz": "jsonl",
    ".ndjson": "jsonl",
    ".ndjson.gz": "jsonl",
    ".parquet": "parquet",
    ".dsjson": "dsjson",
    ".dsjson.gz": "dsjson",
}
"""Endings of the files that histories are kept in, and their formats."""

MOST_REASONS = 3
"""So many a warning tells."""

TOO_DEEP = "it is nested too deeply; expected values, or lists and objects of a few levels"

Raw = TypeVar("Raw")


class NoRoundError(InputError):
    """Why a row holds no round, though nothing is wrong with it."""


class SkippedRow(NamedTuple):
    """A row of a file that was left out, counted from 1, and why."""

    row: int
    sentence: str
    is_sound: bool = False
    """Whether nothing is wrong with it: it just holds no round."""


class LeftOut(NamedTuple):
    """Rows that were left out for one reason: how many, and the first of them."""

    n_rows: int
    first: SkippedRow


class History:
    """A sequence of rounds, in memory, that can be written to a file and read again.

    For logs larger than memory, append to a file line by line with `append_lines` instead.

    Parameters
    ----------
    rounds
        Rounds, taken as they are; `append` checks.

    Attributes
    ----------
    problems
        Rows that a reader left out, bad ones and those without a round, and why; `left_out` has
        them by reason. A slice has none.

    Examples
    --------
    >>> history = History()
    >>> history.append(context={"age": 31}, action="sports", reward=1, probability=0.8)
    >>> history.append(context={"age": 64}, action="news", reward=0, probability=0.2)
    >>> history
    <History of 2 rounds>
    >>> history.rewards
    array([1., 0.])
    >>> history.actions
    ['sports', 'news']
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     history.write(f"{directory}/log.jsonl")
    ...     again = History.read(f"{directory}/log.jsonl")
    >>> again == history
    True
    """

    def __init__(self, rounds: Iterable[Round] = ()) -> None:
        self._rounds = list(rounds)
        self.problems: list[SkippedRow] = []

    def __len__(self) -> int:
        return len(self._rounds)

    @overload
    def __getitem__(self, index: int) -> Round: ...
    @overload
    def __getitem__(self, index: slice) -> "History": ...
    def __getitem__(self, index: int | slice) -> "Round | History":
        if isinstance(index, slice):
            return History(self._rounds[index])
        return self._rounds[index]

    def __iter__(self) -> Iterator[Round]:
        return iter(self._rounds)

    def __eq__(self, other: object) -> bool:
        """The same rounds in the same order."""
        return self._rounds == other._rounds if isinstance(other, History) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        left_out = f", {len(self.problems)} left out" if self.problems else ""
        return f"<History of {len(self)} rounds{left_out}>"

    def append(self, given: Round | None = None, /, **fields: Any) -> None:
        """Add a round, given whole or by the arguments of `read_round`; it is checked."""
        if given is None:
            self._rounds.append(read_round(**fields))
        else:
            check_round(given)
            self._rounds.append(given)

    def extend(self, rounds: Iterable[Round]) -> None:
        """Add several rounds, all or none."""
        added = list(rounds)
        for round_ in added:
            check_round(round_)
        self._rounds.extend(added)

    @property
    def left_out(self) -> list[LeftOut]:
        """The rows that a reader left out by reason, the most frequent first.

        Sentences that differ only in what was given, before the semicolon, are one reason.

        >>> history = History()
        >>> for row, text in [(3, "two"), (5, "six")]:
        ...     sentence = f"the reward is {text}; expected a number"
        ...     history.problems.append(SkippedRow(row, sentence))
        >>> history.left_out[0].n_rows, history.left_out[0].first.row
        (2, 3)
        """
        groups: dict[str, list[SkippedRow]] = {}
        for problem in self.problems:
            _, _, expected = problem.sentence.partition("; ")
            groups.setdefault(expected or problem.sentence, []).append(problem)
        found = [LeftOut(len(rows), rows[0]) for rows in groups.values()]
        return sorted(found, key=lambda group: -group.n_rows)

    @property
    def rewards(self) -> Floats:
        """The reward of every round."""
        return np.array([round_.reward for round_ in self._rounds], dtype=np.float64)

    @property
    def probabilities(self) -> Floats:
        """The probability of every round's action."""
        return np.array([round_.probability for round_ in self._rounds], dtype=np.float64)

    @property
    def stands_for(self) -> Floats:
        """How many rounds every round stands for."""
        return np.array([round_.stands_for for round_ in self._rounds], dtype=np.float64)

    @property
    def actions(self) -> list[Label]:
        """All actions that were chosen or eligible, in the order in which they first appear."""
        seen: dict[Label, None] = {}
        for round_ in self._rounds:
            if round_.pmf is not None:
                seen.update(dict.fromkeys(round_.pmf))
            seen.setdefault(round_.action)
        return list(seen)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        strict: bool = False,
        usable: bool = True,
    ) -> Self:
        """The rounds of a file.

        Bad rows are left out and listed in `problems`, with one `LeftOutWarning` for all of them. A
        file that has rows, of which none holds a round, is refused. Rows that hold no round by
        themselves, such as checkpoints of VowpalWabbit's logs, are listed and not warned of.

        Parameters
        ----------
        path
            The file. `.jsonl` and `.ndjson` hold one JSON object a line, `.parquet` a table,
            `.dsjson` VowpalWabbit's decisions; files of lines may be compressed (`.gz`).
        format
            `jsonl`, `parquet` or `dsjson`, where the name does not say it.
        strict
            Refuse the file at its first bad row.
        usable
            False keeps bad rounds for a doctor to see (`examine`): numbers as they are, with NaN
            for what is none. Left out and listed, without a warning, is then only what cannot be
            read at all.
        """
        file = Path(path)
        module = _format(file, format)
        if not file.exists():
            raise DataError(f"{file}: there is no such file; check the path")
        if file.is_dir():
            raise DataError(f"{file} is a directory; read one of its files")
        history = cls()
        read: History = module.read(file, strict=strict, usable=usable)
        history._rounds, history.problems = read._rounds, read.problems
        return history

    def write(
        self,
        path: str | PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
    ) -> None:
        """Write all rounds to a file, whole or not at all; bad rounds are refused.

        The endings and formats are those of `read`. What is there under that name is replaced.
        """
        file = Path(path)
        module = _format(file, format)
        for i, round_ in enumerate(self._rounds):
            try:
                check_round(round_)
            except InputError as error:
                raise InputError(f"round {i} of the history: {error}") from None
        content: bytes = module.content(self, compress=file.name.lower().endswith(".gz"))
        write_atomically(file, content)


def gather(
    path: Path,
    row: str,
    rows: Iterable[tuple[int, Raw | InputError]],
    fields: Callable[[Raw], dict[str, Any]],
    *,
    strict: bool,
    usable: bool,
) -> History:
    """The history of a file, from its rows and how each gives the arguments of `read_round`.

    `row` is what a row of that file is called. A row that could not even be fetched arrives as
    the error that says why.
    """
    history = History()
    make = read_round if strict or usable else as_read
    for number, raw in rows:
        try:
            if isinstance(raw, InputError):
                raise raw
            history._rounds.append(make(**fields(raw)))
        except (InputError, RecursionError) as error:
            sentence = str(error) if isinstance(error, InputError) else TOO_DEEP
            is_sound = isinstance(error, NoRoundError)
            if strict and not is_sound:
                raise DataError(
                    f"{path}, {row} {number}: {sentence} (without strict, what cannot be read is "
                    "left out, and counted)"
                ) from None
            history.problems.append(SkippedRow(number, sentence, is_sound))
    n_rows, n_sound = (
        len(history) + len(history.problems),
        sum(p.is_sound for p in history.problems),
    )
    if make is read_round and history.problems and not len(history):
        raise DataError(f"{path}: no {row} holds a round: {_reasons(history, row, n_rows)}")
    if usable and n_sound < len(history.problems):
        warn_caller(
            f"{path}: {_reasons(history, row, n_rows)}; History.problems lists all, and "
            "strict=True refuses such a file",
            LeftOutWarning,
        )
    return history


def _reasons(history: History, row: str, n_rows: int) -> str:
    """How many rows are left out, and why: the first reasons, bad rows before those without one."""
    groups = sorted(history.left_out, key=lambda group: group.first.is_sound)
    said = [
        f"{group.n_rows:,} of {n_rows:,} {row}s {'is' if group.n_rows == 1 else 'are'} left out, "
        f"{row} {group.first.row} the first: {group.first.sentence}"
        for group in groups[:MOST_REASONS]
    ]
    rest = sum(group.n_rows for group in groups[MOST_REASONS:])
    return "; ".join([*said, *([f"{rest:,} more for other reasons"] if rest else [])])


def _format(path: Path, given: str | None) -> ModuleType:
    """The module of a format, by its name or by the file's ending."""
    name = given
    if name is None:
        longest = sorted(ENDINGS, key=len, reverse=True)
        name = next((ENDINGS[e] for e in longest if path.name.lower().endswith(e)), None)
        if name is None:
            raise InputError(
                f"{path}: cannot tell the format from the name; known endings are "
                f"{', '.join(ENDINGS)}, or give the format (--log-format): {', '.join(_formats())}"
            )
    if name not in _formats():
        raise unknown("format", str(name), _formats())
    return import_module(f"melee.history.{name}")


def _formats() -> list[str]:
    return sorted(set(ENDINGS.values()))
