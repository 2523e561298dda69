"""What can be told of a service and its agents: in a few words, in full, as alarms, as metrics."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.labels import label_to_json
from melee.serve import trying
from melee.serve.metrics import family
from melee.serve.served import Served
from melee.serve.watching import SLOW

if TYPE_CHECKING:
    from melee.serve.service import Service

OLD = 10.0
"""Seconds since a look at the journal after which something is wrong."""
METRICS = {
    "melee_decisions_total": ("counter", "Decisions that were made."),
    "melee_rewards_total": ("counter", "Rewards that came."),
    "melee_rewards_sum": ("gauge", "Sum of the rewards that came."),
    "melee_given_up_total": ("counter", "Decisions that were given up."),
    "melee_pending_decisions": ("gauge", "Decisions that wait for their rewards."),
    "melee_learned_rounds_total": ("counter", "Rounds that the model has learned from."),
    "melee_alarms": ("gauge", "Alarms that the page shows."),
    "melee_journal_events": ("gauge", "Number of the journal's last event."),
    "melee_journal_syncs_total": ("counter", "Times that events were forced to the disk."),
    "melee_journal_failures_total": ("counter", "Times that events could not be written."),
    "melee_model_behind_events": ("gauge", "Events of others that the last look has brought."),
    "melee_model_age_seconds": ("gauge", "Seconds since the last look at the journal."),
    "melee_lease_held": ("gauge", "1 where this service writes the snapshots."),
    "melee_workers": ("gauge", "Processes that take requests."),
    "melee_start_time_seconds": ("gauge", "When the service was started, in seconds since 1970."),
}
"""Beside those of requests: what each is, and what it says."""


def about(served: Served) -> dict[str, Any]:
    """An agent in a few words."""
    agent = served.agent
    return {
        "agent": served.name,
        "policy": agent.policy_,
        "actions": [label_to_json(label) for label in agent.actions_],
        "learned": agent.n_learned_,
        "waiting": agent.n_pending_,
        "version": agent._knowledge.version,
    }


def status(service: "Service", served: Served) -> dict[str, Any]:
    """All that one may want to watch of an agent."""
    agent, watch, now = served.agent, served.watch, time.time()
    labels = agent.actions_
    diagnostics = {
        name: float(value)
        for name, value in agent.diagnostics().items()
        if isinstance(value, int | float | np.number) and np.isfinite(value)
    }
    return {
        **about(served),
        "parameters": agent._parameters(),
        "compiled": agent.ready,
        "last_reward": watch.last_reward,
        "time": now,
        "event": service.last_event,
        "model": service.freshness(),
        "diagnostics": diagnostics,
        "alarms": alarms(service, served, now),
        "trials": served.compared if trying.is_read(served) else [],
        **watch.to_json(labels, now),
    }


def can_decide(service: "Service") -> bool:
    """Whether it can decide, and keep what it decides."""
    is_there = service.freshness()["seconds"] <= OLD
    return service.is_ready and is_there and not service.journal.has_failed


def alarms(service: "Service", served: Served, now: float) -> list[str]:
    """What is wrong, in words."""
    agent = served.agent
    said = []
    if service.journal.has_failed:
        said.append("The journal could not be written: make room on its disk, or mend it.")
    age = service.freshness()["seconds"]
    if age > OLD:
        said.append(
            f"The journal could not be reached for {age:.0f} seconds: nothing is decided until "
            "its database answers."
        )
    said += served.watch.alarms(agent.actions_, now)
    if agent.n_pending_ > 0.9 * agent.max_pending:
        said.append(
            f"{agent.n_pending_:,} decisions wait for rewards, and {agent.max_pending:,} may: "
            "the oldest are given up. Set a timeout, or report rewards earlier."
        )
    slow = service.requests.quantile("/v1/decisions", 0.99)
    if slow is not None and slow > SLOW:
        said.append(
            f"One decision of 100 takes more than {SLOW * 1000:g} ms: see "
            "melee_http_request_duration_seconds, and the load of the machine."
        )
    return said


def metrics(service: "Service") -> str:
    """Everything that Prometheus may want."""
    lines, fresh = list(service.requests.lines()), service.freshness()
    of_agents: dict[str, Callable[[Served], float]] = {
        "melee_decisions_total": lambda s: s.watch.n_decided,
        "melee_rewards_total": lambda s: s.watch.rewards.n,
        "melee_rewards_sum": lambda s: s.watch.rewards.total,
        "melee_given_up_total": lambda s: s.agent._pending.n_given_up,
        "melee_pending_decisions": lambda s: s.agent.n_pending_,
        "melee_learned_rounds_total": lambda s: s.agent.n_learned_,
        "melee_alarms": lambda s: len(alarms(service, s, time.time())),
    }
    for name, value in of_agents.items():
        rows = [({"agent": served.name}, value(served)) for served in service.agents.values()]
        lines.extend(family(name, *METRICS[name], rows))
    for name, number in {
        "melee_journal_events": service.last_event,
        "melee_journal_syncs_total": service.journal.n_syncs,
        "melee_journal_failures_total": service.journal.n_failures,
        "melee_model_behind_events": fresh["behind"],
        "melee_model_age_seconds": fresh["seconds"],
        "melee_lease_held": int(fresh["lease"]),
        "melee_workers": service.n_workers,
        "melee_start_time_seconds": service.started,
    }.items():
        lines.extend(family(name, *METRICS[name], [({}, number)]))
    return "\n".join(lines) + "\n"
