"""An agent and its journal are brought together: a new one begins, or one goes on."""

import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from melee.agent.folding import CHANGEABLE, change_settings
from melee.agent.keeping import Keeper
from melee.agent.recovering import recover
from melee.errors import InputError, shown
from melee.journal import Event, Head, Journal, events
from melee.labels import label_to_json
from melee.version import __version__

if TYPE_CHECKING:
    from melee.agent.agent import Agent


def keep(agent: "Agent", journal: Journal) -> Keeper:
    """Have a new agent be the one of the journal, or have a new journal begin with it."""
    known = journal.store.latest_change(journal.name)
    mine = agent._parameters()
    if known is None and not journal.store.has(journal.name):
        return _create(journal, agent, _created(agent, {}))
    found, position = recover(journal, log=agent.log)
    settings = _changed(journal, mine, found)
    agent._knowledge, agent._pending, agent._ids = found._knowledge, found._pending, found._ids
    agent._first_labels, agent._trials = found._first_labels, found._trials
    for name in CHANGEABLE:
        setattr(agent, name, getattr(found, name))
    keeper = _go_on(agent, journal, position)
    _note_changes(keeper, settings, known)
    return keeper


def begin(agent: "Agent", journal: Journal) -> Keeper:
    """Have a new journal begin with an agent as it is: what it knows is part of the first event."""
    if journal.store.has(journal.name):
        raise InputError(
            f"{journal.where} has an agent {journal.name!r} already, which goes on by "
            "Agent(..., journal=...); give another place, or another name: Journal(place, name)"
        )
    return _create(journal, agent, first_event(agent))


def first_event(agent: "Agent", name: str | None = None) -> events.Draft:
    """The event that an agent begins with as it is; what it knows is part of it.

    `name` is the agent's in the journal, where another one notes the event.
    """
    return _created(agent, {"file": b64encode(agent.to_bytes()).decode()}, name)


def reopen(journal: Journal, *, note: bool = True) -> "Agent":
    """The agent of a journal, with the parameters that it has there; it goes on from now.

    What is otherwise than before (melee's version, the explorer's code) is noted, unless it is not
    to be.
    """
    agent, position = recover(journal)
    known = journal.store.latest_change(journal.name)
    keeper = _go_on(agent, journal, position)
    agent.journal = journal
    agent._hold(keeper)
    if note:
        _note_changes(keeper, {}, known)
    return agent


def _created(agent: "Agent", further: dict[str, str], name: str | None = None) -> events.Draft:
    body = {"parameters": agent._parameters(), **_about(agent), **further}
    return events.change(events.CREATED, time.time(), body, name)


def _create(journal: Journal, agent: "Agent", first: events.Draft) -> Keeper:
    """Write an agent's first event."""
    journal.wait(journal.append([first]))
    return Keeper(agent, journal, journal.head)


def _go_on(agent: "Agent", journal: Journal, position: Head) -> Keeper:
    """Keep an agent that is as the journal says."""
    keeper = Keeper(agent, journal, position)
    newest = max((snapshot.head.seq for snapshot in journal.snapshots()), default=0)
    keeper._since = position.seq - newest
    return keeper


def _note_changes(keeper: Keeper, settings: dict[str, Any], known: Event | None) -> None:
    """Note what is otherwise than before: parameters, the explorer's code, melee's version."""
    about = _about(keeper.agent)
    before = {} if known is None else known.content
    if settings or any(before.get(name) != value for name, value in about.items()):
        body = {"parameters": settings, **about}
        with keeper:
            keeper._unit.append(events.change(events.SETTINGS, time.time(), body))
            change_settings(keeper.agent, settings)


def _about(agent: "Agent") -> dict[str, str]:
    return {"policy": agent._policy, "melee": __version__}


def _changed(journal: Journal, mine: dict[str, Any], found: "Agent") -> dict[str, Any]:
    """The parameters that are to change; refuses those that cannot."""
    theirs = found._parameters()
    if theirs["actions"] is None and mine["actions"] is not None:
        raise InputError(
            f"the actions are {shown(mine['actions'])}, and those of the agent in {journal.where} "
            "come with each question; leave actions out, or give another place for a new agent"
        )
    now = [label_to_json(label) for label in found.actions_]
    if mine["actions"] not in (theirs["actions"], now):
        raise InputError(
            f"the actions are {shown(mine['actions'])}, and the agent in {journal.where} began "
            f"with {shown(theirs['actions'])} and has {shown(now)} now; give either of these, then "
            "use add_actions and remove_actions"
        )
    changed = {name: mine[name] for name in CHANGEABLE if mine[name] != theirs[name]}
    for name, value in mine.items():
        fixed = name not in (*CHANGEABLE, "actions")
        less = name == "max_pending" and name in changed and value < theirs[name]
        if (fixed or less) and value != theirs[name]:
            raise InputError(
                f"{name} is {shown(value)}, and the agent in {journal.where} has "
                f"{shown(theirs[name])}, which cannot {'become less' if less else 'change'}; give "
                "that, or another place for a new agent"
            )
    return changed
