"""Rounds and histories of them: context, action, reward, and the probability of the action.

A round is checked where it is made (`read_round`). A log by someone else may be wrong, though,
and to say what is wrong with it, it must be read: with `strict=False` readers keep the rounds
as they are. There, a number that is none is NaN, and a row that cannot be read at all, such as
one without an action, is left out and listed in `History.problems`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self, TypeVar, overload

import numpy as np

from melee.arrays import Floats
from melee.artefact import write_atomically
from melee.contexts import Context, read_context
from melee.errors import DataError, InputError, unknown
from melee.labels import Label, check_label

TOLERANCE = 1e-6
"""How far probabilities may be off: logs often keep six or seven digits."""

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

TOO_DEEP = "it is nested too deeply; expected values, or lists and objects of a few levels"

Raw = TypeVar("Raw")


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round: what was seen, what was done, what came of it, and how likely the choice was.

    Made as it is: `read_round` checks, and so do `History.append` and `History.write`.

    Attributes
    ----------
    context, action, reward, probability
        The reward is in [0, 1]; the probability is that of this action, in (0, 1].
    id
        What the round is called elsewhere, for example to join a late reward.
    time
        Seconds since the epoch.
    pmf
        The probabilities of all actions; its keys are the actions that were eligible.
    explorer
        The SPEC of the explorer that decided.
    version
        The version of the agent that decided.
    """

    context: Context
    action: Label
    reward: float
    probability: float
    id: str | None = None
    time: float | None = None
    pmf: dict[Label, float] | None = None
    explorer: str | None = None
    version: str | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Round):
            return NotImplemented
        mine, theirs = self.context, other.context
        if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
            same = type(mine) is type(theirs) and np.array_equal(mine, theirs)  # type: ignore[arg-type]
        else:
            same = mine == theirs
        return same and self._rest() == other._rest()

    __hash__ = None  # type: ignore[assignment]

    def _rest(self) -> tuple[Any, ...]:
        """Everything but the context, whose arrays `==` does not compare as a whole."""
        numbers = (self.reward, self.probability, self.time)
        return (self.action, *numbers, self.id, self.pmf, self.explorer, self.version)


def read_round(
    context: Any,
    action: Label,
    reward: Any,
    probability: Any,
    *,
    id: str | None = None,
    time: Any = None,
    pmf: Mapping[Label, Any] | None = None,
    explorer: str | None = None,
    version: str | None = None,
) -> Round:
    """A checked round; refuses what could not have happened.

    >>> read_round({"age": 31}, "sports", reward=True, probability=0.8).reward
    1.0
    >>> read_round({"age": 31}, "sports", reward=5, probability=0.8)
    Traceback (most recent call last):
    melee.errors.InputError: the reward is 5.0; expected between 0 and 1: scale rewards to [0, 1]
    """
    optional = {"id": id, "time": time, "pmf": pmf, "explorer": explorer, "version": version}
    made = _make(_number, context, action, reward, probability, **optional)
    check_round(made)
    return made


def as_read(**fields: Any) -> Round:
    """A round with its numbers as they are, NaN for what is no number; `check_round` judges it."""
    return _make(_number_or_nan, **fields)


def _make(
    number: Callable[[str, Any], float],
    context: Any,
    action: Label,
    reward: Any,
    probability: Any,
    *,
    id: Any = None,
    time: Any = None,
    pmf: Any = None,
    explorer: Any = None,
    version: Any = None,
) -> Round:
    if pmf is not None:
        if not isinstance(pmf, Mapping):
            raise InputError(
                f"the pmf is {_shown(pmf)}; expected a dict of actions and their probabilities"
            )
        pmf = {
            _label(label): number(f"the pmf of action {_shown(label)}", p)
            for label, p in pmf.items()
        }
    return Round(
        context=read_context(context),
        action=_label(action),
        reward=number("the reward", reward),
        probability=number("the probability", probability),
        id=_text("id", id),
        time=None if time is None else number("the time", time),
        pmf=pmf,
        explorer=_text("explorer", explorer),
        version=_text("version", version),
    )


def check_round(one: Round) -> None:
    """Refuse a round whose numbers cannot be right."""
    if not 0.0 <= one.reward <= 1.0:
        raise InputError(
            f"the reward is {one.reward}; expected between 0 and 1: scale rewards to [0, 1]"
        )
    if not 0.0 < one.probability <= 1.0:
        raise InputError(
            f"the probability is {one.probability}; expected above 0 and at most 1: log the "
            "probability with which the action was chosen"
        )
    if one.time is not None and not math.isfinite(one.time):
        raise InputError(f"the time is {one.time}; expected seconds since the epoch")
    if one.pmf is None:
        return
    for label, p in one.pmf.items():
        if not 0.0 <= p <= 1.0:
            raise InputError(
                f"the pmf of action {_shown(label)} is {p}; expected between 0 and 1: log the "
                "probabilities of all eligible actions"
            )
    total = math.fsum(one.pmf.values())
    if abs(total - 1.0) > TOLERANCE:
        raise InputError(
            f"the pmf sums to {total:.9g}; expected 1: log the probabilities of all eligible "
            "actions, or no pmf"
        )
    if one.action not in one.pmf:
        raise InputError(
            f"the pmf does not name the action {_shown(one.action)}; expected all eligible "
            "actions: log the pmf that the action was drawn from"
        )
    if abs(one.pmf[one.action] - one.probability) > TOLERANCE:
        raise InputError(
            f"the pmf gives the action {_shown(one.action)} {one.pmf[one.action]} and the "
            f"probability is {one.probability}; expected them equal: log the pmf that the action "
            "was drawn from"
        )


def _label(label: Any) -> Label:
    """A label that files can hold: a scalar of NumPy becomes Python's."""
    return check_label(label.item() if isinstance(label, np.generic) else label)


def _number(what: str, value: Any) -> float:
    read = _number_or_nan(what, value)
    if read != read:
        given = "missing" if value is None else _shown(value)
        raise InputError(f"{what} is {given}; expected a number")
    return read


def _number_or_nan(what: str, value: Any) -> float:
    if not isinstance(value, Real | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def _text(what: str, value: Any) -> str | None:
    """A text, or a whole number as text: ids of other systems often are numbers."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = str(value)
    if value is None:
        return None
    try:
        if isinstance(value, str):
            value.encode()
            return str(value)
    except UnicodeEncodeError:
        pass
    raise InputError(f"the {what} is {_shown(value)}; expected a text")


def _shown(value: Any) -> str:
    """A value as an error shows it: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:
        text = f"something that cannot be shown ({type(value).__name__})"
    return text if len(text) <= 60 else f"{text[:57]}..."


class Problem(NamedTuple):
    """A row of a file that could not be read, counted from 1, and why."""

    row: int
    sentence: str


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
        Rows that a reader left out, with `strict=False` only. A slice has none.

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
        self.problems: list[Problem] = []

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
        for one in added:
            check_round(one)
        self._rounds.extend(added)

    @property
    def rewards(self) -> Floats:
        """The reward of every round."""
        return np.array([one.reward for one in self._rounds], dtype=np.float64)

    @property
    def probabilities(self) -> Floats:
        """The probability of every round's action."""
        return np.array([one.probability for one in self._rounds], dtype=np.float64)

    @property
    def actions(self) -> list[Label]:
        """All actions that were chosen or eligible, in the order in which they first appear."""
        seen: dict[Label, None] = {}
        for one in self._rounds:
            if one.pmf is not None:
                seen.update(dict.fromkeys(one.pmf))
            seen.setdefault(one.action)
        return list(seen)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        format: str | None = None,  # noqa: A002
        strict: bool = True,
    ) -> Self:
        """The rounds of a file.

        Parameters
        ----------
        path
            The file. `.jsonl` and `.ndjson` hold one JSON object a line, `.parquet` a table,
            `.dsjson` VowpalWabbit's decisions; files of lines may be compressed (`.gz`).
        format
            `jsonl`, `parquet` or `dsjson`, where the name does not say it.
        strict
            Refuse the file at its first bad round. Otherwise keep numbers as they are, with NaN
            for what is none, and list the rows that cannot be read in `problems`.
        """
        file = Path(path)
        module = _format(file, format)
        if not file.exists():
            raise DataError(f"{file}: there is no such file; check the path")
        if file.is_dir():
            raise DataError(f"{file} is a directory; read one of its files")
        history = cls()
        read: History = module.read(file, strict=strict)
        history._rounds, history.problems = read._rounds, read.problems
        return history

    def write(
        self,
        path: str | PathLike[str],
        format: str | None = None,  # noqa: A002
    ) -> None:
        """Write all rounds to a file, whole or not at all; bad rounds are refused.

        The endings and formats are those of `read`. What is there under that name is replaced.
        """
        file = Path(path)
        module = _format(file, format)
        for i, one in enumerate(self._rounds):
            try:
                check_round(one)
            except InputError as error:
                raise InputError(f"round {i} of the history: {error}") from None
        content: bytes = module.content(self, compress=file.name.lower().endswith(".gz"))
        try:
            write_atomically(file, content)
        except OSError as error:
            raise DataError(f"{file}: cannot be written ({error.strerror or error})") from None


def gather(
    path: Path,
    row: str,
    rows: Iterable[tuple[int, Raw | InputError]],
    fields: Callable[[Raw], dict[str, Any]],
    strict: bool,
) -> History:
    """The history of a file, from its rows and how each gives the arguments of `read_round`.

    `row` is what a row of that file is called. A row that could not even be fetched arrives as
    the error that says why.
    """
    history = History()
    make = read_round if strict else as_read
    for number, raw in rows:
        try:
            if isinstance(raw, InputError):
                raise raw
            history._rounds.append(make(**fields(raw)))
        except (InputError, RecursionError) as error:
            sentence = str(error) if isinstance(error, InputError) else TOO_DEEP
            if strict:
                raise DataError(f"{path}, {row} {number}: {sentence}") from None
            history.problems.append(Problem(number, sentence))
    return history


def _format(path: Path, given: str | None) -> ModuleType:
    """The module of a format, by its name or by the file's ending."""
    name = given
    if name is None:
        longest = sorted(ENDINGS, key=len, reverse=True)
        name = next((ENDINGS[e] for e in longest if path.name.lower().endswith(e)), None)
        if name is None:
            raise InputError(
                f"{path}: cannot tell the format from the name; known endings are "
                f"{', '.join(ENDINGS)}, or give the format: {', '.join(_formats())}"
            )
    if name not in _formats():
        raise unknown("format", str(name), _formats())
    return import_module(f"melee.history.{name}")


def _formats() -> list[str]:
    return sorted(set(ENDINGS.values()))
