"""Locks that a fork does not break.

A process may fork while another of its threads uses an agent. So all agents are locked for the
moment of the fork, and the child gets locks of its own. Its decisions get ids of their own too:
parent and child would otherwise give the same ids to different decisions.
"""

import os
import threading
import weakref
from typing import Any

_AGENTS: "weakref.WeakSet[Any]" = weakref.WeakSet()
_HELD: list[Any] = []


def new_lock() -> Any:
    """A lock that its holder may take again."""
    return threading.RLock()


def guard_against_forks(agent: Any) -> None:
    """See that an agent's lock and ids are right on both sides of a fork."""
    _AGENTS.add(agent)


def _before() -> None:
    for agent in list(_AGENTS):
        agent._lock.acquire()
        _HELD.append(agent)


def _in_parent() -> None:
    while _HELD:
        _HELD.pop()._lock.release()


def _in_child() -> None:
    while _HELD:
        agent = _HELD.pop()
        agent._lock = new_lock()
        agent._lineage = os.urandom(4).hex()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
