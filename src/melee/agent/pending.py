"""Decisions whose rewards are still to come, and those of the recent past."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from melee.agent.arguments import read_labels
from melee.agent.file import Arrays
from melee.agent.knowledge import Encoded, Labels
from melee.arrays import Floats
from melee.checks import (
    check_probability,
    check_reward,
    is_unicode,
    read_id,
    read_number,
    read_whole,
)
from melee.contexts import Context, read_context
from melee.decision import Decision
from melee.errors import DataError, InputError, shown
from melee.labels import Label, check_label, label_from_json, label_to_json

ORDINARY = 1e12
"""Rewards up to which nothing has to be asked of them one by one."""


class Waiting(NamedTuple):
    """A decision that waits for its reward."""

    context: Context
    action: Label
    probability: float
    time: float
    version: int
    actions: Labels | None  # those that were open, and their probabilities, if there is a log
    probabilities: Floats | None
    encoded: Encoded | None
    features: Context | None = None  # of the action, where actions have any
    others: tuple[Context, ...] | None = None  # of all that were open, if there is a log


class Pending:
    """Decisions by id: those that wait, oldest first, and the rewards of those that are done.

    Both are bounded by `limit`. A done decision has the reward that was learned, or None where it
    was given up without one.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.waiting: OrderedDict[str, Waiting] = OrderedDict()
        self.done: OrderedDict[str, float | None] = OrderedDict()
        self.n_given_up = 0
        self.warned_full = False

    def __len__(self) -> int:
        return len(self.waiting)

    def knows(self, id: str) -> bool:
        """Whether the id is taken."""
        return id in self.waiting or id in self.done

    def finish(self, id: str, reward: float | None) -> None:
        """Note that a decision is done; forget the oldest of those when there are too many."""
        self.waiting.pop(id, None)
        self.done[id] = reward
        if len(self.done) > self.limit:
            self.done.popitem(last=False)

    def overdue(self, now: float, timeout: float | None) -> list[str]:
        """The ids of decisions to be given up, oldest first: late, or too many."""
        too_many = len(self.waiting) - self.limit
        if timeout is None and too_many <= 0:
            return []
        over = []
        for i, (id, waiting) in enumerate(self.waiting.items()):
            if i < too_many or (timeout is not None and now - waiting.time > timeout):
                over.append(id)
            elif waiting.time <= now:  # one of the future, by a clock that was set, holds up nobody
                break
        return over

    def repeats(self, id: str, reward: float) -> bool:
        """Whether this reward was learned before; refuses another one, and unknown ids."""
        if id in self.waiting:
            return False
        if id not in self.done:
            if self.knows(f"{id}/1"):
                raise InputError(is_ranking(id))
            raise InputError(
                f"decision {shown(id)} is not known: it was not made here, or its reward came long "
                "ago; learn from the full record: learn(context, action, reward, probability)"
            )
        known = self.done[id]
        if known is None:
            raise InputError(
                f"decision {shown(id)} was given up before its reward came; learn from the full "
                "record, learn(context, action, reward, probability), or give it more time"
            )
        if known != reward:
            raise InputError(
                f"decision {shown(id)} has the reward {known:g} already, sent or assumed when its "
                f"time was over, and now gets {reward:g}; a decision is rewarded once: send the "
                "final reward only"
            )
        return True

    def noted(self) -> "NotedPending":
        """Everything in it, noted in a few milliseconds, to be written at leisure."""
        # A dict's own lists are twenty times as fast as an OrderedDict's, and in the same order
        # as long as nothing is moved.
        return NotedPending(
            list(dict.keys(self.waiting)),
            list(dict.values(self.waiting)),
            list(dict.keys(self.done)),
            list(dict.values(self.done)),
            {"n_given_up": self.n_given_up, "warned_full": self.warned_full},
        )

    @classmethod
    def from_parts(
        cls, about: Any, arrays: Arrays, waiting: Any, done: Any, limit: int, width: int | None
    ) -> "Pending":
        """What was written; `width` is that of contexts that are numbers, if they are."""
        pending = cls(limit)
        pending.n_given_up = read_whole(about["n_given_up"], 0, 2**62)
        pending.warned_full = about["warned_full"] is True
        if max(len(waiting), len(done)) > limit:
            raise DataError(f"more than {limit} decisions")
        lists = [tuple(read_labels(map(label_from_json, labels), 1)) for labels in about["actions"]]
        sets = [
            tuple(read_context(_with_tuples(features)) for features in each)
            for each in about.get("features", ())
        ]
        empty = np.zeros(0)
        rows, chances = arrays.pop("contexts", empty), arrays.pop("probabilities", empty)
        n_rows = len(waiting) if width else 0
        if arrays or rows.shape != ((n_rows, width) if n_rows else (0,)):
            raise DataError("contexts of other decisions than wait")
        used = 0
        for number, (id, named, action, probability, time, version, which, *more) in enumerate(
            waiting
        ):
            features = read_context(_with_tuples(more[0])) if more else None
            others = sets[read_whole(more[1], 0, len(sets))] if len(more) > 1 else None
            context = read_context(rows[number] if width else _with_tuples(named))
            actions, probabilities = None, None
            if which is not None:
                actions = lists[read_whole(which, 0, len(lists))]
                probabilities = chances[used : used + len(actions)].copy()
                used += len(actions)
            pending.waiting[read_id(id)] = Waiting(
                context,
                check_label(label_from_json(action)),
                check_probability(probability),
                read_number(time),
                read_whole(version, 0),
                actions,
                probabilities,
                None,
                features,
                others,
            )
            if others is not None and len(others) != len(actions or ()):
                raise DataError("features of other actions than were open")
        fine = chances.shape == (used,) and chances.dtype == np.float64
        if not fine or not ((chances >= 0.0) & (chances <= 1.0)).all():
            raise DataError("probabilities of other actions than were open")
        if _are_plain(done):
            pending.done.update(done)
        else:
            for id, reward in done:
                pending.done[read_id(id)] = None if reward is None else check_reward(reward)
        return pending


def is_ranking(id: str) -> str:
    """What is said where the reward of a decision comes for a ranking."""
    first = f"{id}/1"
    return (
        f"{shown(id)} is a ranking, whose places have rewards of their own; send that of each: "
        f"{shown(first)} and so on"
    )


def check_same(decision: Decision, waiting: Waiting) -> None:
    """Refuse another agent's decision that happens to have the same id."""
    if (decision.action, decision.probability) != (waiting.action, waiting.probability):
        raise InputError(
            f"decision {shown(decision.id)} is not the one that was made here under this id; "
            "report it to the agent that made it"
        )


class NotedPending(NamedTuple):
    """What there was at one moment; nothing in it changes any more."""

    ids: list[str]
    waiting: list[Waiting]
    done: list[str]
    rewards: list[float | None]
    about: dict[str, Any]

    def to_parts(self) -> tuple[dict[str, Any], Arrays, Iterator[Any], Iterator[Any]]:
        """What JSON can hold, arrays, and the rows of those that wait and of those that are done.

        Lists of actions are written once, and decisions have their number.
        """
        lists, sets = _Lists(label_to_json), _Lists(_plain)
        numbers = [lists.number(waiting.actions) for waiting in self.waiting]
        of_features = [sets.number(waiting.others) for waiting in self.waiting]
        arrays: Arrays = {}
        contexts = [
            waiting.context for waiting in self.waiting if not isinstance(waiting.context, dict)
        ]
        if contexts:
            arrays["contexts"] = _joined(contexts).reshape(len(contexts), -1)
        chances = [
            waiting.probabilities for waiting in self.waiting if waiting.probabilities is not None
        ]
        if chances:
            arrays["probabilities"] = _joined(chances)
        waiting = map(_to_json, self.ids, self.waiting, numbers, of_features)
        about = {**self.about, "actions": lists.written}
        if sets.written:
            about["features"] = sets.written
        return (
            about,
            arrays,
            waiting,
            zip(self.done, self.rewards, strict=True),
        )


def _are_plain(done: Any) -> bool:
    """Whether all of many are texts with numbers of ordinary size, or None: checked at once."""
    if not done or {type(pair) for pair in done} != {list} or {len(pair) for pair in done} != {2}:
        return False
    ids, rewards = zip(*done, strict=True)
    numbers = [reward for reward in rewards if reward is not None]
    if {type(id) for id in ids} != {str} or not {type(reward) for reward in numbers} <= {float}:
        return False
    return is_unicode("".join(ids)) and bool((np.abs(numbers) <= ORDINARY).all())


class _Lists:
    """Lists of actions, or of their features, each once."""

    def __init__(self, plain: Callable[[Any], Any]) -> None:
        self._plain = plain
        self.written: list[list[Any]] = []
        self._by_content: dict[str, int] = {}
        self._by_identity: dict[int, int] = {}

    def number(self, given: tuple[Any, ...] | None) -> int | None:
        if given is None:
            return None
        number = self._by_identity.get(id(given))
        if number is None:
            content = [self._plain(part) for part in given]
            number = self._by_content.setdefault(repr(content), len(self.written))
            if number == len(self.written):
                self.written.append(content)
            self._by_identity[id(given)] = number
        return number


def _to_json(id: str, waiting: Waiting, number: int | None, of_features: int | None) -> list[Any]:
    context = waiting.context if isinstance(waiting.context, dict) else None
    action = label_to_json(waiting.action)
    more: list[Any] = [] if waiting.features is None else [_plain(waiting.features)]
    if of_features is not None:
        more.append(of_features)
    return [id, context, action, waiting.probability, waiting.time, waiting.version, number, *more]


def _plain(features: Context) -> Any:
    """Features as JSON has them."""
    return features if isinstance(features, dict) else features.tolist()


def _joined(parts: list[Floats]) -> Floats:
    """Arrays one after the other; a thousand at a time, so that other threads may run between."""
    pieces = [np.concatenate(parts[i : i + 1000]) for i in range(0, len(parts), 1000)]
    return np.concatenate(pieces)


def _with_tuples(context: Any) -> Any:
    if isinstance(context, list):
        return context
    return {k: tuple(v) if isinstance(v, list) else v for k, v in context.items()}
