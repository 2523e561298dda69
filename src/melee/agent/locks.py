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
_ONE_FORK = threading.Lock()
"""Held from before a fork to after it: threads that fork at once take turns."""


def new_lock() -> Any:
    """A lock that its holder may take again."""
    return threading.RLock()


def guard_against_forks(agent: Any) -> None:
    """See that an agent's lock and ids are right on both sides of a fork."""
    _AGENTS.add(agent)


def _before() -> None:
    _ONE_FORK.acquire()
    for agent in _agents():
        agent._lock.acquire()
        _HELD.append(agent)


def _agents() -> list[Any]:
    while True:
        try:
            return list(_AGENTS)
        except RuntimeError:  # another thread makes or drops one
            continue


def _in_parent() -> None:
    while _HELD:
        _HELD.pop()._lock.release()
    _ONE_FORK.release()


def _in_child() -> None:
    while _HELD:
        agent = _HELD.pop()
        agent._lock = new_lock()
        agent._hold(agent._keeper)
        if agent._keeper is not None:
            agent._keeper.abandon()
        agent._ids.prefix = os.urandom(4).hex()
    _ONE_FORK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
