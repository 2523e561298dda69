"""Going back to what an agent knew after an event of the past.

A journal only grows, so going back is an event, too: from then on the agent knows what it knew
after the event `to`, actions included. What happened since stays what happened: decisions wait as
they do, those that are done stay done, ids stay taken. What was learned since is either forgotten,
or learned again: rewards that came after an event, each with the decision that it is of,
in the order in which they came. So a stretch of wrong rewards, or a mistaken removal of actions,
can be taken out and the rest kept.

It is a function of the events before it, and so is all that comes after: an agent that is
recovered, or replayed by an audit, goes back in the same way.
"""

from typing import TYPE_CHECKING

from melee.agent.folding import fold
from melee.agent.recovering import recover
from melee.errors import InputError, shown
from melee.journal import Event, Head, Journal, events

if TYPE_CHECKING:
    from melee.agent.agent import Agent
    from melee.agent.knowledge import Knowledge

_LEARNED = (events.REWARD, events.RECORD, events.TIME_OUT)
"""Kinds of events that teach something."""


class Past:
    """An agent as it was after an event, led through what came since as a rollback does.

    Parameters
    ----------
    journal
        It is only read.
    to
        The event whose knowledge is wanted.
    relearn_after
        Rewards after this event are learned again; by default none are.
    """

    def __init__(self, journal: Journal, to: int, relearn_after: int | None = None) -> None:
        self.journal, self.to, self.relearn_after = journal, to, relearn_after
        self.agent, _ = recover(journal, until=to)
        self.place = _head_at(journal, to)

    def come_near(self, most: int) -> None:
        """Go through what came up to now, but for so many events at most."""
        while (end := self.journal.head.seq) - self.place.seq > most:
            self.go_on(end)

    def go_on(self, until: int) -> None:
        """Go through what came up to an event."""
        some: list[Event] = []
        for event in self.journal.events(after=self.place, until=until):
            self.place = event.head
            if event.kind in (events.ACTIONS, events.ROLLBACK):
                continue  # undone
            if event.kind in _LEARNED and (
                self.relearn_after is None or event.seq <= self.relearn_after
            ):
                fold(self.agent, some, self.journal)
                some = []
                finish_only(self.agent, event)
            else:
                some.append(event)
        fold(self.agent, some, self.journal)
        if until > self.place.seq:  # events of other agents
            self.place = _head_at(self.journal, until)


def known_after(event: Event, journal: Journal) -> "Knowledge":
    """What an agent knows after a rollback: a function of the events before it."""
    past = Past(journal, *events.read_rollback(event))
    past.go_on(event.seq - 1)
    return past.agent._knowledge


def take_over(agent: "Agent", known: "Knowledge") -> None:
    """Have an agent know this instead; its version goes on, so that no two models have the same."""
    known.version = agent._knowledge.version + 1
    agent._knowledge = known
    waiting = agent._pending.waiting
    for id, made in list(waiting.items()):
        if made.encoded is not None:  # by the map of features that is gone
            waiting[id] = made._replace(encoded=None)


def check_place(journal: Journal, to: int, relearn_after: int | None) -> None:
    """Refuse to go where there is nothing."""
    end, first = journal.head.seq, journal.first
    least = (
        first.seq
        if first is not None
        else min((snapshot.head.seq for snapshot in journal.snapshots()), default=end)
    )
    if type(to) is not int or not least <= to <= end:
        raise InputError(
            f"to is {shown(to)}; expected the number of an event from {least}, before which "
            f"nothing is known of {journal.name}, to {end}, the last: melee journal show lists "
            "them, melee journal snapshots those with a snapshot"
        )
    if relearn_after is not None and (
        type(relearn_after) is not int or not to <= relearn_after <= end
    ):
        raise InputError(
            f"relearn_after is {shown(relearn_after)}; expected the number of an event "
            f"from {to}, to which it goes back, to {end}, the last; rewards after it are learned "
            "again"
        )


def _head_at(journal: Journal, seq: int) -> Head:
    checksum = journal.store.checksum_at(seq)
    if checksum is None:
        raise InputError(f"{journal.where}: event {seq} is not in the journal")
    return Head(seq, checksum)


def finish_only(agent: "Agent", event: Event) -> None:
    """Note what became of decisions, and learn nothing."""
    body, pending = event.content, agent._pending
    try:
        if event.kind == events.REWARD:
            pending.finish(str(event.id), body["reward"])
        elif event.kind == events.RECORD:
            if event.id is not None:
                agent._ids.are_others = True
                pending.finish(event.id, body["reward"])
        else:
            for id in body["ids"]:
                pending.finish(id, agent.default_reward)
            pending.n_given_up += len(body["ids"])
            pending.warned_full = pending.warned_full or body.get("full") is True
    except (KeyError, TypeError) as error:
        raise events.unreadable(event, error) from None
