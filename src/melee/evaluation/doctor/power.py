"""What difference a log could show at all, and what it would take to show a smaller one.

A policy's difference to the logged one is estimated by the mean of (w - 1) · (r - q), where w is
its weight, r the reward and q what a model predicts. If the model knows no more than the mean
reward, n rounds give it a variance of σ² · E(w - 1)² / n, where σ² is that of the policy's rewards.
A difference of z₀.₉₇₅ + z₀.₈ of its deviations, and of the extra round that intervals allow for, is
found in 80 % of such logs, by an interval of 95 % that excludes 0. A policy that earns more or less
has other rewards than the log: their variance is taken to change with the mean as that of clicks
does, m · (1 - m). A good model of rewards shows smaller differences; a bad one, that has seen few
rounds of each action, may need larger ones.

How much weights vary depends on the policy. Two stand for many:

- one *with choices of its own* takes a single action in each context, by a rule that has nothing to
  do with the log's: averaged over which one that is, E(w - 1)² is the mean of 1 / p over actions,
  minus 1;
- *uniform choices*, which every logging policy should beat.

A policy that mostly agrees with the log needs less. Were a share g more of the log's decisions
uniform, actions would have had the chances (1 - g) · p + g / K, and the difference between the same
two policies a variance of σ² · E Σ (π - p)² / ((1 - g) · p + g / K).
"""

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from melee.arrays import Floats
from melee.checks import RewardRange, check_reward_range
from melee.errors import InputError
from melee.evaluation.digits import in_digits
from melee.evaluation.doctor.examined import Examined
from melee.evaluation.doctor.findings import Finding
from melee.evaluation.log import MIN_ROUNDS
from melee.evaluation.units import unit_of
from melee.shares import Mask

if TYPE_CHECKING:
    from melee.history import History

CONFIDENCE, POWER = 0.95, 0.8
REACH = NormalDist().inv_cdf(0.5 + 0.5 * CONFIDENCE) + NormalDist().inv_cdf(POWER)
"""Deviations of a difference by which it is found so often."""
SHARE = 0.1
"""Of the logged mean reward: the difference that rounds and floor are told for."""
LITTLE = 0.5
"""Share of the mean reward beyond which a difference that can be shown is a warning."""
_ENTRIES = 1_000_000
"""Probabilities that are looked at; rounds are left out evenly where there are more."""


class Power(NamedTuple):
    """What differences to the logged policy a log shows, in 80 % of logs like it.

    Attributes
    ----------
    reward
        The mean reward of the log.
    own
        The least difference that is shown, of a policy with choices of its own; inf if none is,
        whatever it earns.
    uniform
        The same of uniform choices; 0 if that is how the log chose.
    wanted
        The difference that the next three are for: a tenth of the mean reward. NaN, as they are,
        if that is not known to be other than 0.
    n_rounds
        How many rounds like these would show it, of a policy with choices of its own.
    floor
        The share of uniform decisions by which as many rounds as these would; inf if none would.
    n_uniform
        How many rounds of uniform choices would.
    """

    reward: float
    own: float
    uniform: float
    wanted: float
    n_rounds: float
    floor: float
    n_uniform: float

    def __str__(self) -> str:
        return f"{self.shown}; {self.needed}" if self.needed else self.shown

    @property
    def shown(self) -> str:
        """What the log can show, as a clause."""
        if math.isinf(self.own):
            return (
                "no policy with choices of its own could be told from the logged one, whatever it "
                "earns"
            )
        every = (self.own, self.reward, self.uniform)
        own, reward, uniform = (in_digits(number, places=3)[0] for number in every)
        text = (
            f"logs like this one show, four times of five, that a policy with choices of its own "
            f"earns {own}{self._part(self.own)} more or less than the logged {reward}"
        )
        if 0.0 < self.uniform < math.inf:
            text += f", and uniform choices {uniform}{self._part(self.uniform)}"
        return text

    @property
    def needed(self) -> str:
        """What it would take to show a difference of a tenth, as a clause; empty if not known."""
        if math.isnan(self.wanted):
            return ""
        if self.own <= self.wanted:
            return f"for a difference of {SHARE:.0%}, {_few_digits(self.n_rounds)} rounds would do"
        many = (
            f"a difference of {SHARE:.0%} would take {_few_digits(self.n_rounds)} rounds like these"
        )
        if self.floor <= 1.0:
            return f"{many}, or as many as there are with floor={self.floor:.2g}"
        if self.n_uniform < 0.9 * self.n_rounds:
            return f"{many}, or {_few_digits(self.n_uniform)} of uniform choices"
        return many

    def _part(self, difference: float) -> str:
        if math.isnan(self.wanted):
            return ""
        percent = 100.0 * SHARE * difference / self.wanted
        return f" ({percent:.2g}%)" if percent < 100.0 else f" ({percent:,.0f}%)"


def detectable(history: "History", *, reward_range: RewardRange = None) -> Power:
    """What differences to the policy that wrote it a log could show, and what smaller ones take.

    Ask before a comparison: an interval that holds 0 says nothing where only a doubled reward could
    have been seen. Not for a policy that mostly does what the log did: `evaluate` tells how sure
    it is of that one.

    Parameters
    ----------
    history
        The log. Rounds whose reward or probability cannot be are left out.
    reward_range
        The least and the greatest reward there can be, as in `examine`.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> pmf = {"a": 0.9, "b": 0.1}
    >>> rounds = [
    ...     Round([float(i % 7)], action, float(i % 4 == 0), pmf[action], pmf=pmf)
    ...     for i, action in enumerate(["b", *"aaaaaaaaa"] * 400)
    ... ]
    >>> found = detectable(History(rounds))
    >>> print(f"{found.own:.4f} more or less than {found.reward:.4f}")
    0.0442 more or less than 0.2500
    >>> print(found.needed)
    a difference of 10% would take 12,000 rounds like these, or 4,300 of uniform choices
    """
    log = Examined(history, check_reward_range(reward_range))
    found = power_of(log)
    if found is None:
        raise InputError(
            f"of {log.n:,} rounds {int(_usable(log).sum()):,} have a reward and a probability that "
            f"can be; expected at least {MIN_ROUNDS}, and rewards and choices that vary: see what "
            "`melee doctor` says of this log"
        )
    return found


def power_of(log: Examined) -> Power | None:
    """What differences the sound rounds of a log can show; None if there are none to speak of."""
    usable = _usable(log)
    n = int(usable.sum())
    if n < MIN_ROUNDS:
        return None
    rewards, sizes = log.rewards[usable], log.stands_for[usable]
    sizes = sizes / sizes.mean()
    mean = float((sizes * rewards).mean())
    variance = float((sizes**2 * (rewards - mean) ** 2).mean())
    chances = _chances(log)
    own = chances.own(0.0)
    if variance <= 0.0 or own <= 1e-9:
        return None
    unit = unit_of(rewards, log.declared)
    scale = unit.high - unit.low
    question = _Question(n, (mean - unit.low) / scale, variance / scale**2)
    wanted = SHARE * abs(mean)
    if abs(mean) <= 2.0 * math.sqrt(variance / n):
        wanted = math.nan
    return Power(
        reward=mean,
        own=scale * question.shown(own, chances.apart_own),
        uniform=scale * question.shown(chances.uniform, chances.apart_uniform),
        wanted=wanted,
        n_rounds=question.rounds(wanted / scale, own, chances.apart_own),
        floor=_floor(chances, question, wanted / scale),
        n_uniform=question.rounds(wanted / scale, chances.own(1.0), chances.apart_own),
    )


class _Question(NamedTuple):
    """How many rounds, and the mean and the variance of their rewards, which are in [0, 1]."""

    n: int
    mean: float
    variance: float

    def shown(self, square: float, apart: float) -> float:
        """The least difference that is shown, by E(w - 1)² and E|w - 1|; inf if none is.

        Differences grow with the variance that they bring along, so they are approached from 0.
        """
        if square <= 1e-9:
            return 0.0
        found, before = 0.0, -1.0
        while found - before > 1e-9:
            before = found
            found = REACH * math.sqrt(square * self._variance(found) / self.n)
            found += square / apart / self.n  # the extra round, of typical weight
        return found if found <= max(self.mean, 1.0 - self.mean) else math.inf

    def rounds(self, wanted: float, square: float, apart: float) -> float:
        """How many rounds would show a difference."""
        if math.isnan(wanted):
            return math.nan
        return square * (REACH**2 * self._variance(wanted) / wanted + 2.0 / apart) / wanted

    def _variance(self, difference: float) -> float:
        """That of rewards whose mean is so much higher, or lower, whichever is more."""
        usual = self.mean * (1.0 - self.mean)
        means = np.clip([self.mean - difference, self.mean + difference], 0.0, 1.0)
        return self.variance * max(1.0, float((means * (1.0 - means)).max()) / max(usual, 1e-12))


def finding(log: Examined) -> Finding | None:
    """What the doctor says of the differences that a log can show."""
    found = power_of(log)
    if found is None:
        return None
    if found.own * SHARE <= LITTLE * found.wanted or math.isnan(found.wanted):
        return Finding("ok", "power", str(found))
    return Finding(
        "warning",
        "power",
        found.shown,
        f"{found.needed}; compare only policies that mostly do what the log did, or log more",
    )


class _Chances(NamedTuple):
    """Probabilities of actions, each with how many of an average round's it stands for.

    Attributes
    ----------
    p, times
        Σ times · h(p) is the mean over rounds of Σ h(p) over their actions, for any h.
    n_open
        How many actions the round has, of each.
    floor
        The share of decisions that are uniform, as it seems.
    """

    p: Floats
    times: Floats
    n_open: Floats
    floor: float

    def own(self, share: float) -> float:
        """The mean square of π / p - 1 of own choices, if that share of rounds were uniform."""
        p, k = self.p, self.n_open
        squares = (1.0 - p) ** 2 / k + (1.0 - 1.0 / k) * p**2
        return float(self.times @ (squares / ((1.0 - share) * p + share / k)))

    @property
    def apart_own(self) -> float:
        """The mean of |π / p - 1| of own choices, whatever share of rounds is uniform."""
        p, k = self.p, self.n_open
        return float(self.times @ ((1.0 - p) / k + (1.0 - 1.0 / k) * p))

    @property
    def apart_uniform(self) -> float:
        """The mean of |π / p - 1| of uniform choices."""
        return float(self.times @ np.abs(1.0 / self.n_open - self.p))

    @property
    def uniform(self) -> float:
        """The mean square of π / p - 1 of uniform choices."""
        apart = (1.0 / self.n_open - self.p) ** 2
        return float(self.times @ np.where(apart > 1e-12, apart / self.p, 0.0))


def _usable(log: Examined) -> Mask:
    return log.right_reward & log.right_probability


def _chances(log: Examined) -> _Chances:
    """The probabilities of a log's actions: all of them where they are known of every round.

    Else a chosen action stands for 1 / p others: each is chosen with its chance p.
    """
    rounds = np.flatnonzero(_usable(log))
    sizes = log.stands_for[rounds]
    if len(log.with_pmf) < log.right_probability.sum():
        p, k = log.probabilities[rounds], float(len(log.labels))
        return _Chances(p, sizes / (p * sizes.sum()), np.full(len(p), k), k * float(p.min()))
    pmfs = [pmf for i, (_, pmf) in zip(log.with_pmf, log.pmfs, strict=True) if log.right_reward[i]]
    step = 1 + sum(map(len, pmfs)) // _ENTRIES
    rows = [np.array(list(pmf.values())) for pmf in pmfs[::step]]
    rows = [row[row > 0.0] for row in rows]  # of actions without a chance nothing can be known
    lengths = np.array([len(row) for row in rows])
    sizes = sizes[::step]
    least = np.array([row.min() for row in rows])
    return _Chances(
        np.concatenate(rows),
        np.repeat(sizes / sizes.sum(), lengths),
        np.repeat(lengths, lengths).astype(np.float64),
        float(np.median(lengths * least)),
    )


def _floor(chances: _Chances, question: _Question, wanted: float) -> float:
    """The floor by which as many rounds would show a difference; inf if none would.

    Of the decisions of a log with a floor, as many more are taken to be uniform as needed.
    """
    if math.isnan(wanted):
        return math.nan

    def enough(share: float) -> bool:
        rounds = question.rounds(wanted, chances.own(share), chances.apart_own)
        return rounds <= question.n

    if not enough(1.0):
        return math.inf
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return 1.0 - (1.0 - high) * (1.0 - min(chances.floor, 1.0))


def _few_digits(count: float) -> str:
    """A number of rounds, upwards, in two digits.

    >>> _few_digits(123_456.0)
    '130,000'
    """
    size = 10.0 ** max(0, math.floor(math.log10(max(count, 1.0))) - 1)
    return f"{math.ceil(count / size) * size:,.0f}"
