"""What happened of late: windows of rewards and actions, and alarms in words."""

import math
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from melee.errors import shown
from melee.labels import Label, label_to_json

KEPT = 24 * 60
"""Minutes that are kept."""
MOST_LABELS = 1000
"""Actions that are told apart in a minute; candidates may be any number."""
WINDOWS = {"10 minutes": 10, "hour": 60, "day": KEPT}
"""How many minutes are in each."""
ENOUGH = 50
"""Rewards, or decisions, from which on something may be said of them."""
SCALE = 20.0
"""Rewards that are so many times as large, or as small, are of another unit."""
MOST = 20_000
"""Decisions that wait of which is known that they explored."""
CHANGED = 4.5
"""Standard errors beyond which an average has changed; it is looked at all the time."""
SLOW = 0.05
"""Seconds in which 99 of 100 requests should be answered."""
_Z = 1.96


class Sums:
    """How many numbers there were, their sum, and that of their squares."""

    __slots__ = ("n", "squares", "total")

    def __init__(self) -> None:
        self.n, self.total, self.squares = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        """Take a number in."""
        self.n += 1
        self.total += value
        self.squares += value * value

    def join(self, other: "Sums") -> None:
        """Take others' numbers in."""
        self.n += other.n
        self.total += other.total
        self.squares += other.squares

    @property
    def mean(self) -> float:
        """Their average."""
        return self.total / self.n

    @property
    def error(self) -> float:
        """The standard error of their average; there are at least two."""
        mean = self.mean
        return math.sqrt(max(self.squares / self.n - mean * mean, 0.0) / (self.n - 1))

    def to_json(self) -> dict[str, Any]:
        """Their number, their average and its 95 % interval."""
        if self.n == 0:
            return {"rewards": 0, "average": None, "low": None, "high": None}
        mean = self.mean
        half = None if self.n < 2 else _Z * self.error
        return {
            "rewards": self.n,
            "average": mean,
            "low": None if half is None else mean - half,
            "high": None if half is None else mean + half,
        }


@dataclass
class Minute:
    """What happened in one minute, or in several."""

    decided: dict[Label, int] = field(default_factory=dict)
    rewards: dict[Label, Sums] = field(default_factory=dict)
    all: Sums = field(default_factory=Sums)
    explored: Sums = field(default_factory=Sums)  # of decisions for another than the likeliest
    n_decided: int = 0
    n_explored: int = 0
    largest: float = 0.0

    def join(self, other: "Minute") -> None:
        """Take another one in."""
        for label, n in other.decided.items():
            self.decided[label] = self.decided.get(label, 0) + n
        for label, sums in other.rewards.items():
            self.rewards.setdefault(label, Sums()).join(sums)
        self.all.join(other.all)
        self.explored.join(other.explored)
        self.n_decided += other.n_decided
        self.n_explored += other.n_explored
        self.largest = max(self.largest, other.largest)


class Watch:
    """What an agent did in the last day, by the minute in which it happened."""

    def __init__(self) -> None:
        self._minutes: OrderedDict[int, Minute] = OrderedDict()
        self._values: set[float] = set()  # a few that rewards had
        self._exploring: OrderedDict[str, None] = OrderedDict()  # decisions that wait
        self.n_decided = 0
        self.rewards = Sums()
        self.last_reward: float | None = None

    def _minute(self, now: float) -> Minute:
        number = int(now // 60)
        found = self._minutes.get(number)
        if found is None:
            found = self._minutes[number] = Minute()
            while len(self._minutes) > KEPT:
                del self._minutes[min(self._minutes)]  # those of before may come late
        return found

    def decided(self, label: Label, *, explored: bool, now: float, id: str | None = None) -> None:
        """A decision was made; `explored` if for another than the likeliest action."""
        if explored and id is not None:
            self._exploring[id] = None
            if len(self._exploring) > MOST:
                self._exploring.popitem(last=False)
        minute = self._minute(now)
        if label in minute.decided or len(minute.decided) < MOST_LABELS:
            minute.decided[label] = minute.decided.get(label, 0) + 1
        minute.n_decided += 1
        minute.n_explored += explored
        self.n_decided += 1

    def rewarded(self, label: Label, reward: float, *, now: float, id: str | None = None) -> None:
        """A reward came."""
        minute = self._minute(now)
        if id is not None and id in self._exploring:
            del self._exploring[id]
            minute.explored.add(reward)
        if label in minute.rewards or len(minute.rewards) < MOST_LABELS:
            minute.rewards.setdefault(label, Sums()).add(reward)
        minute.all.add(reward)
        minute.largest = max(minute.largest, abs(reward))
        self.rewards.add(reward)
        self.last_reward = max(now, self.last_reward or now)
        if len(self._values) < 3:
            self._values.add(reward)

    def window(self, minutes: int, now: float, before: int = 0) -> Minute:
        """The sum of so many minutes, up to `before` minutes ago."""
        last = int(now // 60) - before
        total = Minute()
        for number, minute in self._minutes.items():
            if last - minutes < number <= last:
                total.join(minute)
        return total

    def to_json(self, labels: list[Label], now: float) -> dict[str, Any]:
        """Windows, the last hour by the minute, and every action in the last day."""
        windows = []
        for name, minutes in WINDOWS.items():
            one = self.window(minutes, now)
            explored = one.n_explored / one.n_decided if one.n_decided else None
            windows.append(
                {
                    "window": name,
                    "decisions": one.n_decided,
                    "explored": explored,
                    "exploring": cost(one),
                    **one.all.to_json(),
                }
            )
        day = self.window(KEPT, now)
        actions = [
            {
                "action": label_to_json(label),
                "decisions": day.decided.get(label, 0),
                "share": day.decided.get(label, 0) / day.n_decided if day.n_decided else None,
                **day.rewards.get(label, Sums()).to_json(),
            }
            for label in labels
        ]
        first = int(now // 60) - 59
        course = []
        for number in range(first, first + 60):
            one = self._minutes.get(number, Minute())
            course.append({"time": 60 * number, "decisions": one.n_decided, **one.all.to_json()})
        return {"windows": windows, "actions": actions, "course": course}

    def alarms(self, labels: list[Label], now: float | None = None) -> list[str]:
        """What seems to be wrong with decisions and their rewards."""
        now = time.time() if now is None else now
        said = []
        day = self.window(KEPT, now)
        if self.rewards.n >= ENOUGH and len(self._values) == 1:
            (value,) = self._values
            said.append(
                f"All {self.rewards.n:,} rewards are {value:g}: nothing can be learned from them. "
                "Send one for what did not succeed as well, or set a timeout and a default reward."
            )
        said += self._changes(now)
        if day.n_decided >= 4 * ENOUGH and day.all.n == 0:
            said.append(
                f"{day.n_decided:,} decisions in the last day, and no reward: check that rewards "
                "are reported, by the ids of decisions."
            )
        elif day.all.n >= ENOUGH:
            for label in labels:
                n = day.decided.get(label, 0)
                if n >= ENOUGH and label not in day.rewards:
                    said.append(
                        f"Action {shown(label)} was decided {n:,} times in the last day and never "
                        "rewarded, while others were: check what reports its rewards."
                    )
        recent, before = self.window(10, now), self.window(KEPT, now, before=10)
        if recent.all.n >= ENOUGH and before.all.n >= ENOUGH and recent.largest and before.largest:
            ratio = recent.largest / before.largest
            if ratio > SCALE or ratio < 1.0 / SCALE:
                said.append(
                    f"Rewards of the last 10 minutes are up to {recent.largest:g} in size, those "
                    f"before up to {before.largest:g}: did their unit change?"
                )
        return said

    def _changes(self, now: float) -> list[str]:
        """Whether the last hour is like the day before it."""
        hour, before = self.window(60, now), self.window(KEPT - 60, now, before=60)
        said = []
        if hour.all.n >= 4 * ENOUGH and before.all.n >= 4 * ENOUGH:
            apart = hour.all.mean - before.all.mean
            if abs(apart) > CHANGED * math.hypot(hour.all.error, before.all.error):
                said.append(
                    f"The average reward of the last hour is {hour.all.mean:.4g}, that of the day "
                    f"before it {before.all.mean:.4g}: the world has changed, or what is reported. "
                    "An agent with a half_life forgets what is no longer so."
                )
        if hour.n_decided >= 4 * ENOUGH and hour.all.n == 0 and before.all.n >= ENOUGH:
            said.append(
                f"{hour.n_decided:,} decisions in the last hour and no reward, while there were "
                "some before: the model does not learn any more; check what reports rewards."
            )
        return said


def cost(window: Minute) -> dict[str, float | None]:
    """What exploring costs a decision: the share of explored ones, times what they earn less.

    A first guess: contexts in which an agent explores are those that it knows least about.
    """
    n = window.all.n - window.explored.n
    if not window.n_decided or window.explored.n < ENOUGH or n < ENOUGH:
        return {"cost": None, "low": None, "high": None}
    rest = Sums()
    rest.n, rest.total = n, window.all.total - window.explored.total
    rest.squares = window.all.squares - window.explored.squares
    share = window.n_explored / window.n_decided
    value = share * (rest.mean - window.explored.mean)
    reach = share * _Z * math.hypot(rest.error, window.explored.error)
    return {"cost": value, "low": value - reach, "high": value + reach}
