"""Trials: other explorers beside an agent's own, each with a share of its decisions, or none.

A trial has a name, an explorer and a share. Whoever is decided about, a visitor or a decision, is
drawn into a trial, or stays with the agent, by a hash: the same one always alike. A trial with a
share is an agent of its own in the same journal, called `AGENT.TRIAL`, which learns from its own
rewards only: what one explorer finds out must not help the other, or they could not be told apart.
One with a share of 0 is a shadow: it never acts, and what it would have done is found by reading
the journal.

What trials there are is part of the agent, and their beginnings and ends are events.
"""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from melee.checks import read_id, unit_number
from melee.errors import DataError, InputError, shown
from melee.explorers import parse
from melee.journal import Event, Journal, events
from melee.journal.snapshots import check_agent

if TYPE_CHECKING:
    from melee.agent.agent import Agent

MOST = 16
"""Trials at a time."""


class Trial(NamedTuple):
    """Another explorer beside an agent's.

    Attributes
    ----------
    name
        By which it is called.
    explorer
        Its SPEC.
    share
        Of the decisions; 0 for a shadow.
    salt
        What makes its draw different from that of any other trial.
    """

    name: str
    explorer: str
    share: float
    salt: str


def draw(trials: Iterable[Trial], unit: str) -> Trial | None:
    """The trial that somebody, or a decision, is drawn into; None stays with the agent.

    Each trial has a draw of its own, by what the ones before it have left: whoever is in one stays
    there when a later one begins or ends.

    >>> some = [Trial("a", "uniform", 0.25, "x"), Trial("b", "uniform", 0.5, "y")]
    >>> drawn = [draw(some, f"visitor {i}") for i in range(1000)]
    >>> [sum(one is trial for one in drawn) for trial in (*some, None)]
    [269, 478, 253]
    """
    left = 1.0
    for trial in trials:
        if trial.share > 0.0:
            text = f"{trial.salt}\0{unit}".encode("utf-8", "surrogatepass")
            number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
            if number < trial.share / left * 2.0**64:
                return trial
            left -= trial.share
    return None


def check_trial(name: Any, explorer: Any, share: Any, others: Iterable[Trial]) -> Trial:
    """A new trial, without its salt, or one with another share."""
    check_agent(name)
    if not isinstance(explorer, str):
        raise InputError(f"explorer is {shown(explorer)}; expected its SPEC as a text")
    spec = parse(explorer).spec
    part = unit_number(share)
    if part is None or part == 1.0:
        raise InputError(
            f"share is {shown(share)}; expected a number from 0, for a shadow, to less than 1"
        )
    rest = [trial for trial in others if trial.name != name]
    if len(rest) >= MOST:
        raise InputError(f"there are {len(rest)} trials already; expected at most {MOST}")
    total = part + sum(trial.share for trial in rest)
    if not total < 1.0:
        raise InputError(
            f"the shares of all trials would be {total:g} together; expected less than 1, so that "
            "something is left for the agent itself"
        )
    return Trial(name, spec, part, "")


def agent_name(agent: str, trial: str) -> str:
    """What the agent of a trial is called in the journal."""
    return check_agent(f"{agent}.{trial}")


def acted(journal: Journal, agent: "Agent") -> list[str]:
    """The names of trials that have, or had, agents of their own in the agent's journal."""
    past = (event.content["trial"] for event in journal.store.turns(journal.name, events.TRIAL))
    known = set(journal.store.agents())
    names = dict.fromkeys((*past, *agent._trials))
    return [name for name in names if agent_name(journal.name, name) in known]


def note(agent: "Agent", event: Event) -> None:
    """Have trials begin, change and end, as an event says."""
    body = event.content
    try:
        change(agent, body["trial"], body.get("explorer"), body["share"], body.get("salt"))
    except (KeyError, TypeError, DataError) as error:
        raise events.unreadable(event, error) from None


def change(agent: "Agent", name: str, explorer: Any, share: Any, salt: Any) -> None:
    """Begin a trial, or give it another share; without a share it ends."""
    if share is None:
        del agent._trials[name]
    elif name in agent._trials:
        agent._trials[name] = agent._trials[name]._replace(share=_share(share))
    else:
        agent._trials[name] = Trial(read_id(name), read_id(explorer), _share(share), read_id(salt))


def to_json(trials: Iterable[Trial]) -> list[list[Any]]:
    """Trials as a file has them."""
    return [list(trial) for trial in trials]


def from_json(given: Any) -> dict[str, Trial]:
    """Trials that a file has."""
    found = {}
    for name, explorer, share, salt in given:
        found[name] = Trial(read_id(name), read_id(explorer), _share(share), read_id(salt))
    return found


def _share(given: Any) -> float:
    part = unit_number(given)
    if part is None or part == 1.0:
        raise DataError(f"a share of {shown(given)}")
    return part
