"""A round: context, action, reward, and the probability of the action."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from melee.checks import check_probability, check_reward
from melee.contexts import Context, read_context, read_features
from melee.errors import InputError, shown
from melee.history.pmf import Pmf, weighed
from melee.labels import Label, check_label

TOLERANCE = 1e-6
"""How far each probability may be off: logs often keep six or seven digits."""
MOST_STOOD_FOR = 1e6
"""Rounds that one may stand for: VowpalWabbit's float32 can hardly tell more from endless."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round: what was seen, what was done, what came of it, and how likely the choice was.

    Made as it is: `read_round` checks, and so do `History.append` and `History.write`.

    Attributes
    ----------
    context, action, reward, probability
        The reward is any finite number, in whatever unit; the probability is that of this action,
        in (0, 1].
    id
        What the round is called elsewhere, for example to join a late reward.
    time
        Seconds since the epoch.
    pmf
        The probabilities of all actions; its keys are the actions that were eligible.
    policy
        What decided: an agent's `policy_`, or a SPEC, or what others call theirs.
    version
        The version of the agent that decided.
    stands_for
        How many rounds this one stands for, itself included: more than 1 where a share of rounds
        like it was dropped from the log at random, such as nine of ten without a click. Everything
        that averages over rounds counts it so often, and an agent learns it so often.
    features
        The features of actions that have any: of all that were eligible, or of the chosen one.
    """

    context: Context
    action: Label
    reward: float
    probability: float
    id: str | None = None
    time: float | None = None
    pmf: Mapping[Label, float] | None = None
    policy: str | None = None
    version: str | None = None
    stands_for: float = 1.0
    features: Mapping[Label, Context] | None = None

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
        numbers = (self.reward, self.probability, self.time, self.stands_for)
        features = None if self.features is None else _plain(self.features)
        return (self.action, *numbers, self.id, self.pmf, self.policy, self.version, features)


def read_round(
    context: Any,
    action: Label,
    reward: Any,
    probability: Any,
    *,
    id: str | None = None,
    time: Any = None,
    pmf: Mapping[Label, Any] | None = None,
    policy: str | None = None,
    version: str | None = None,
    stands_for: Any = 1.0,
    features: Mapping[Label, Any] | None = None,
) -> Round:
    """A checked round; refuses what could not have happened.

    >>> read_round({"age": 31}, "sports", reward=True, probability=0.8).reward
    1.0
    >>> read_round({"age": 31}, "sports", reward=math.inf, probability=0.8)
    Traceback (most recent call last):
    melee.errors.InputError: the reward is inf; expected a finite number, within ±1e100, in any unit
    """
    optional = {"id": id, "time": time, "pmf": pmf, "policy": policy, "version": version}
    optional |= {"stands_for": stands_for, "features": features}
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
    policy: Any = None,
    version: Any = None,
    stands_for: Any = 1.0,
    features: Any = None,
) -> Round:
    if pmf is not None:
        if not isinstance(pmf, Mapping):
            raise InputError(
                f"the pmf is {shown(pmf)}; expected a dict of actions and their probabilities"
            )
        if isinstance(pmf, Pmf):
            pmf = pmf.read(number)
        else:
            pmf = {
                check_label(label): number(f"the pmf of action {shown(label)}", p)
                for label, p in pmf.items()
            }
    return Round(
        context=read_context(context),
        action=check_label(action),
        reward=number("the reward", reward),
        probability=number("the probability", probability),
        id=_text("id", id),
        time=None if time is None else number("the time", time),
        pmf=pmf,
        policy=_text("policy", policy),
        version=_text("version", version),
        stands_for=number("the number of rounds that the round stands for", stands_for),
        features=None if features is None else _features(features),
    )


def _features(given: Any) -> dict[Label, Context]:
    """Features of actions, each read as a context is."""
    if not isinstance(given, Mapping):
        raise InputError(
            f"the features are {shown(given)}; expected a dict of actions and their features"
        )
    return {
        check_label(label): read_features(features, f"action {shown(label)}")
        for label, features in given.items()
    }


def _plain(features: Mapping[Label, Context]) -> dict[Label, Any]:
    """Features that `==` compares as a whole."""
    return {k: v if isinstance(v, dict) else tuple(v.tolist()) for k, v in features.items()}


def check_round(round_: Round) -> None:
    """Refuse a round whose numbers cannot be right."""
    check_reward(round_.reward)
    check_probability(round_.probability)
    if round_.time is not None and not math.isfinite(round_.time):
        raise InputError(f"the time is {round_.time}; expected seconds since the epoch")
    check_stands_for(round_.stands_for)
    if round_.pmf is None:
        return
    total, n_actions = 0.0, 0
    for label, p, n in weighed(round_.pmf):
        total, n_actions = total + p * n, n_actions + n
        if not 0.0 <= p <= 1.0:
            raise InputError(
                f"the pmf of action {shown(label)} is {p}; expected between 0 and 1: log the "
                "probabilities of all eligible actions"
            )
    if abs(total - 1.0) > TOLERANCE * n_actions:
        raise InputError(
            f"the pmf sums to {total:.9g}; expected 1: log the probabilities of all eligible "
            "actions, or no pmf"
        )
    if round_.action not in round_.pmf:
        raise InputError(
            f"the pmf does not name the action {shown(round_.action)}; expected all eligible "
            "actions: log the pmf that the action was drawn from"
        )
    if abs(round_.pmf[round_.action] - round_.probability) > TOLERANCE:
        raise InputError(
            f"the pmf gives the action {shown(round_.action)} {round_.pmf[round_.action]} and the "
            f"probability is {round_.probability}; expected them equal: log the pmf that the "
            "action was drawn from"
        )


def check_stands_for(number: float) -> float:
    """How many rounds a round stands for, if that can be."""
    if not (isinstance(number, Real) and 1.0 <= float(number) <= MOST_STOOD_FOR):
        raise InputError(
            f"the round stands for {shown(number)} rounds; expected from 1 to "
            f"{MOST_STOOD_FOR:,.0f}: 1 / (1 - the probability that a round like it was dropped)"
        )
    return number


def repetitions(stands_for: Iterable[float]) -> list[int]:
    """How often to learn each round, in whole numbers that keep up with what rounds stand for.

    What a number has after its point is carried on to the next, so that sums differ by less than
    1, and a round that stands for itself is learned once, whatever comes before it.

    >>> repetitions([1.0, 1.5, 1.0, 1.5, 10.0])
    [1, 1, 1, 2, 10]
    """
    times, carried = [], 0.0
    for number in stands_for:
        whole = math.floor(carried + number + 1e-9)
        carried += number - whole
        times.append(whole)
    return times


def _number(what: str, value: Any) -> float:
    read = _number_or_nan(what, value)
    if read != read:
        given = "missing" if value is None else shown(value)
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
    raise InputError(f"the {what} is {shown(value)}; expected a text")
