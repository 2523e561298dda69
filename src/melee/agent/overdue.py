"""Decisions that are given up: their time is over, or there is no room for more."""

import time
from typing import TYPE_CHECKING

from melee.agent import folding, recording
from melee.errors import warn_caller

if TYPE_CHECKING:
    from melee.agent.agent import Agent


def now() -> float:
    """The time it is, in seconds since the epoch."""
    return time.time()


def give_up(agent: "Agent", now: float) -> int:
    """Give up what is overdue; how many. They teach the default reward, if there is one."""
    over = agent._pending.overdue(now, agent.timeout)
    if over:
        if agent.default_reward is not None:
            recording.write_rewards(agent, dict.fromkeys(over, float(agent.default_reward)))
        if agent._keeper is not None:
            full = len(agent._pending.waiting) > agent.max_pending
            agent._keeper.gave_up(over, now, full=full)
        folding.give_up(agent, over)
    return len(over)


def keep_room(agent: "Agent", now: float) -> None:
    """Give up the oldest decisions if there are too many."""
    if len(agent._pending.waiting) > agent.max_pending:
        give_up(agent, now)
        _warn_full(agent)


def _warn_full(agent: "Agent") -> None:
    if not agent._pending.warned_full:
        agent._pending.warned_full = True
        warn_caller(
            f"more than {agent.max_pending} decisions wait for their rewards: the oldest are "
            "given up. Set a timeout, report rewards earlier, or raise max_pending"
        )
