"""The parameters of an agent: checked, and what follows from them."""

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from melee.agent.arguments import check_seconds, read_labels, read_path
from melee.agent.knowledge import Labels
from melee.checks import RewardRange, check_reward, check_reward_range, read_text, unit_number
from melee.errors import InputError, warn_caller, whole_number
from melee.explorers import Explorer, parse
from melee.history import Log
from melee.labels import Label, label_from_json, label_to_json
from melee.rng import check_seed

if TYPE_CHECKING:
    from melee.agent.agent import Agent

DEFAULT_FLOOR = 0.02
"""Uniform exploration on top of the explorer's own: enough for a log to be evaluated."""
PARAMETERS = (
    "actions",
    "explorer",
    "seed",
    "floor",
    "half_life",
    "timeout",
    "default_reward",
    "reward_range",
    "max_pending",
    "max_features",
    "log",
    "journal",
)
_PLAIN = tuple(name for name in PARAMETERS if name not in ("actions", "explorer", "log", "journal"))
"""Parameters that are numbers, or pairs of them."""
_NUMBERS = tuple(name for name in _PLAIN if name != "reward_range")


class Derived(NamedTuple):
    """What follows from parameters that are fine."""

    explorer: Explorer  # as it was asked for
    inside: Explorer  # without the uniform exploration that `floor` counts
    floor: float
    range: RewardRange
    policy: str  # what decisions and logs call the explorer
    log: Log | None


def check_parameters(agent: "Agent") -> Derived:
    """Refuse parameters that cannot be used; all but the actions and the journal."""
    check_seed(agent.seed)
    floor = unit_number(agent.floor)
    if floor is None:
        raise InputError(f"floor is {agent.floor!r}; expected a number in [0, 1], such as 0.02")
    if floor == 0.0:
        warn_caller(
            "floor is 0: actions that the explorer does not choose have probability 0, and a "
            "log of such decisions cannot be used to evaluate other policies"
        )
    for name in ("half_life", "max_pending", "max_features"):
        if name != "half_life" or agent.half_life is not None:
            whole_number(name, getattr(agent, name), 1)
    if agent.timeout is not None:
        check_seconds("timeout", agent.timeout)
    reward_range = check_reward_range(agent.reward_range)
    if agent.default_reward is not None:
        check_reward(agent.default_reward, reward_range)
        if agent.timeout is None:
            raise InputError(
                f"default_reward is {agent.default_reward} without a timeout: hardly any "
                "decision would get it; give the timeout, in seconds, after which no reward "
                "means that one"
            )
    explorer = parse(agent.explorer)
    digest = hashlib.sha256(explorer.identity.encode()).hexdigest()
    policy = f"{explorer.short_spec}@{digest[:12]}"
    log = None if agent.log is None else Log(read_path("log", agent.log))
    return Derived(explorer, *explorer.with_floor(floor), reward_range, policy, log)


def read_actions(actions: Any, least: int, *, written: bool) -> list[Label]:
    """Labels of new actions, which a log or a journal has to be able to hold if it is `written`."""
    labels = read_labels(actions, least)
    if written:
        check_written(labels)
    return labels


def check_written(labels: Labels | list[Label]) -> None:
    """Refuse labels that a file cannot hold."""
    for label in labels:
        label_to_json(label)


def to_json(agent: "Agent") -> dict[str, Any]:
    """The parameters as JSON has them, but for where to log."""
    first = agent._first_labels
    return {
        **{name: _plain(getattr(agent, name)) for name in _NUMBERS},
        "actions": None if first is None else [label_to_json(label) for label in first],
        "explorer": agent._chosen.spec,
        "reward_range": None if agent._range is None else list(agent._range),
    }


def from_json(agent: "Agent", given: Any) -> None:
    """Give an agent the parameters that were written, unchecked."""
    for name in _PLAIN:
        setattr(agent, name, given[name])
    agent.actions = None
    if given["actions"] is not None:
        agent.actions = [label_from_json(label) for label in given["actions"]]
    agent.explorer = parse(read_text(given["explorer"])).short_spec


def _plain(value: Any) -> Any:
    """A number of any type as JSON has it."""
    if value is None or type(value) in (int, float, str, list):
        return value
    return int(value) if hasattr(value, "__index__") else float(value)
