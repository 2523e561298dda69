"""What a policy would have done in the rounds of a log, whatever kind of policy it is."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from melee.arrays import Floats
from melee.errors import InputError
from melee.evaluation.log import EvaluatedLog
from melee.history import repetitions
from melee.labels import Label

if TYPE_CHECKING:
    from melee.agent import Agent

Policy: TypeAlias = "Agent | str | Callable[..., Any]"


def name_of(policy: Policy) -> str:
    """What a policy is called where nobody names it; a refusal of what is none."""
    if isinstance(policy, str):
        return policy
    if hasattr(policy, "pmf"):
        return "the agent"
    if not callable(policy):
        raise InputError(
            f"the policy is {policy!r:.60}; expected an Agent, a function of a context, or an "
            "explorer's SPEC such as 'linucb:alpha=0.2'"
        )
    name = getattr(policy, "__name__", "")
    return "the policy" if name in ("", "<lambda>") else name


def choices(log: EvaluatedLog, policy: Policy, seed: int) -> tuple[Floats, Floats]:
    """The policy's probabilities of the log's actions, (n, K), and those of others, (n,).

    A SPEC's agent answers for a round before it learns it, so that its weight does not depend on
    the round's own reward and the estimates stay unbiased. It learns a round as often as the round
    stands for others.
    """
    learner: Agent | None = None
    if isinstance(policy, str):
        policy = learner = fresh_agent(log, policy, seed)
    chosen, outside = np.zeros(log.chances.shape), np.zeros(log.n_rounds)
    times = repetitions(log.stands_for)
    shelf = log.shelf if callable(policy) and takes_candidates(policy) else None
    for i, context in enumerate(log.contexts):
        given: Mapping[Label, float]
        if callable(policy):
            own = dict(context) if isinstance(context, dict) else context.copy()
            given = _distribution(
                policy(own) if shelf is None else policy(own, shelf.offered(i)), i
            )
        else:
            given = policy.pmf(context, actions=open_actions(log, policy, i))
        place(given, log.places[i], chosen[i], outside, i)
        if learner is not None:
            for _ in range(times[i]):
                teach(log, learner, i, float(log.probabilities[i]))
    return chosen, outside


def place(
    given: Mapping[Label, float],
    places: Mapping[Label, int],
    row: Floats,
    outside: Floats,
    i: int,
) -> None:
    """Put a policy's probabilities into the columns of a round, and those of others outside."""
    for label, chance in given.items():
        position = places.get(label)
        if position is None:
            outside[i] += chance
        else:
            row[position] = chance


def teach(log: EvaluatedLog, agent: "Agent", i: int, probability: float) -> None:
    """Have an agent learn a logged round, in which the action had that probability."""
    lesson = log.contexts[i], log.played[i], float(log.rewards[i]), probability
    if _has_own_actions(agent):
        agent.learn(*lesson)
    else:
        agent.learn(*lesson, features=None if log.shelf is None else log.shelf.chosen(i))


def open_actions(log: EvaluatedLog, agent: "Agent", i: int) -> Any:
    """What an agent is offered in a round; None for all that it has."""
    pmf = log.pmfs[i]
    if not _has_own_actions(agent):
        return list(log.places[i]) if log.shelf is None else log.shelf.offered(i)
    # All are open unless the log says otherwise; saying so costs an agent time.
    if pmf is None or len(pmf) == len(log.labels) == len(agent.actions_):
        return None
    known = set(agent.actions_)
    some = [label for label in pmf if label in known]
    if not some:
        raise InputError(
            f"the agent has none of the actions that could be chosen in round {i}; expected at "
            "least one: evaluate it on a log of its own actions"
        )
    return some


def _has_own_actions(agent: "Agent") -> bool:
    return getattr(agent, "actions", ()) is not None


def fresh_agent(log: EvaluatedLog, spec: str, seed: int) -> "Agent":
    """An agent with the actions of a log that has not learned anything."""
    from melee.agent import Agent  # compiles kernels: not for those who ask the doctor only

    actions = log.labels if log.shelf is None else None
    return Agent(actions, explorer=spec, seed=seed, reward_range=log.reward_range)


def takes_candidates(policy: Callable[..., Any]) -> bool:
    """Whether a function needs two arguments: a context, and candidates."""
    try:
        parameters = inspect.signature(policy).parameters.values()
    except (TypeError, ValueError):
        return False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        sum(
            parameter.kind in by_place and parameter.default is parameter.empty
            for parameter in parameters
        )
        == 2
    )


def _distribution(given: Any, i: int) -> Mapping[Label, float]:
    """What a function answered for the context of a round, as probabilities."""
    if not isinstance(given, Mapping):
        try:
            hash(given)
        except TypeError:
            raise InputError(
                f"the policy answered {given!r:.60} in round {i}; expected an action, or a dict "
                "of actions' probabilities"
            ) from None
        return {given: 1.0}
    try:
        chances = np.array([float(chance) for chance in given.values()])
    except (TypeError, ValueError):
        chances = np.array([np.nan])
    if not ((chances >= 0.0).all() and abs(chances.sum() - 1.0) <= 1e-6):
        raise InputError(
            f"the policy answered {dict(given)!r:.80} in round {i}; expected probabilities of "
            "0 or larger that sum to 1"
        )
    return given
