"""Deriving past decisions again: whether a journal's agent, replayed, decides as it did."""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from melee.agent import Agent
from melee.agent.catalogue import Catalogue
from melee.agent.folding import fold, fold_decision, get_ready
from melee.agent.recalling import decision_of, offered_in
from melee.agent.recovering import FEW, earliest, newest
from melee.errors import shown
from melee.journal import Event, Journal, events
from melee.labels import Label


class Differs(NamedTuple):
    """A decision that comes out otherwise: its event, its id, and what differs."""

    seq: int
    id: str
    sentence: str


class Audit(NamedTuple):
    """What replaying has shown.

    Attributes
    ----------
    n_decisions
        How many decisions were derived again.
    after, until
        The event that replaying began after, and the last one.
    difference
        The first decision that differs, None if none does; nothing after it was derived.
    fingerprint
        Of the agent at the end.
    """

    n_decisions: int
    after: int
    until: int
    difference: Differs | None
    fingerprint: str


def audit(
    journal: Journal,
    *,
    after: int | None = None,
    until: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    """Replay a journal and compare action, probabilities, policy and version of every decision.

    Parameters
    ----------
    journal
        It is only read, and every link of its chain is checked on the way.
    after, until
        The first event is that after the newest snapshot of no later than `after`; by default the
        first that there is. The last is `until`; by default the last that there is.
    progress
        Is called with the number of each event.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     agent = Agent(["a", "b"], "linucb", journal=directory)
    ...     for i in range(5):
    ...         _ = agent.learn(agent.act({"hour": i}), reward=i % 2)
    ...     agent.close()
    ...     found = audit(Journal(directory, writing=False))
    >>> found.n_decisions, found.difference
    (5, None)
    """
    end = journal.head.seq if until is None else until
    agent, place = earliest(journal)
    if after is not None and after > place.seq:
        agent, place = newest(journal, until=after)
    if end - place.seq > FEW:
        for program in agent._programs:
            program.wait()
    n, difference = 0, None
    between: list[Event] = []
    for event in journal.events(after=place, until=end):
        if progress is not None:
            progress(event.seq)
        if event.kind != events.DECISION:
            between.append(event)
            continue
        fold(agent, between, journal)
        between = []
        n += 1
        sentence = _derive(agent, event, journal)
        if sentence is not None:
            difference = Differs(event.seq, str(event.id), sentence)
            break
    fold(agent, between, journal)
    return Audit(n, place.seq, end, difference, agent.fingerprint)


def _derive(agent: Agent, event: Event, journal: Journal) -> str | None:
    """Make a decision again and fold it; what differs, if anything does."""
    offer = offered_in(event, journal)
    decision, decided = decision_of(event, journal, offer)
    knowledge = agent._knowledge
    offered = get_ready(agent, decided, offer)
    if "given" in decided.about:  # the caller's
        fold_decision(agent, event, decided, offer)
        same = decided.version == knowledge.version
        return None if same else _differs("version", decided.version, knowledge.version)
    draw = zlib.crc32(decision.id.encode())
    chosen = None
    if decided.some:
        gone = [label for label in decision.actions if label not in knowledge.index]
        if gone:
            return f"{shown(gone[0])} was offered, which is not among the actions"
        numbers = [knowledge.index[label] for label in decision.actions]
        chosen = np.array(numbers, np.int64)
    labels: tuple[Label, ...]
    if offered is not None and isinstance(knowledge, Catalogue):
        labels = offered.labels
        pmf, action, _ = knowledge.choose(decided.context, offered, draw)
    else:
        labels, pmf, action, _ = knowledge.decide(decided.context, draw, chosen)
    fold_decision(agent, event, decided, offer)
    pairs = {
        "version": (decided.version, knowledge.version),
        "policy": (decided.policy, agent.policy_),
        "actions": (decision.actions, labels),
        "probabilities": (decision.probabilities, tuple(pmf)),
        "action": (decision.action, labels[action]),
    }
    for name, (then, now) in pairs.items():
        if then != now:
            return _differs(name, then, now)
    return None


def _differs(name: str, then: Any, now: Any) -> str:
    return f"its {name} was {shown(then)}, and comes out as {shown(now)}"
