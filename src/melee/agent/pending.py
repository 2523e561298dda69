"""Decisions whose rewards are still to come, and those of the recent past."""

from collections import OrderedDict
from typing import NamedTuple

from melee.agent.knowledge import Encoded, Labels
from melee.arrays import Floats
from melee.contexts import Context
from melee.errors import InputError, shown
from melee.labels import Label


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


class Pending:
    """Decisions by id: those that wait, oldest first, and the rewards of those that are done.

    Both are bounded by `limit`. A done decision has the reward that was learned, or None where it
    was given up without one.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.waiting: OrderedDict[str, Waiting] = OrderedDict()
        self.done: OrderedDict[str, float | None] = OrderedDict()

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
        for i, (id, one) in enumerate(self.waiting.items()):
            if i < too_many or (timeout is not None and now - one.time > timeout):
                over.append(id)
            elif one.time <= now:  # one of the future, by a clock that was set, holds up nobody
                break
        return over

    def repeats(self, id: str, reward: float) -> bool:
        """Whether this reward was learned before; refuses another one, and unknown ids."""
        if id in self.waiting:
            return False
        if id not in self.done:
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
