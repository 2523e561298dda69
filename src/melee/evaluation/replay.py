"""Replay: a policy lives through a log of another one, and meets what it would have met live.

Round by round the policy says what it would do, and it is shown a round's reward, and learns, only
if its choice is the logged one (Li, Chu, Langford and Wang, 2011). Those rounds are *accepted*; the
others never happened to it.

Here for any known probabilities: a logged round is accepted with chance share · π(a|x) / p(a|x),
where π is the policy's probability as it stands, p the logged one, and the share the smallest
probability of the log. This is a chance, as π is at most 1. Over the actions that the log may have
chosen it averages to the share itself, whatever the context. So accepted contexts are as they
came, accepted actions are drawn by the policy, and accepted rounds are distributed as a live run of
their number, which does not depend on the policy. In a uniform log the share is 1/K and the chance
π(a|x): the round is accepted if the policy's draw agrees with the log.

Accepting more, with chances cut at 1, would show a policy less of what the log rarely did, and its
exploration would be wrong by as much; so nothing is cut.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from melee.arrays import Floats, Ints
from melee.errors import InputError, MeleeWarning
from melee.evaluation.choices import fresh_agent, open_actions, place, teach
from melee.evaluation.log import EvaluatedLog
from melee.rng import generator

if TYPE_CHECKING:
    from melee.agent import Agent

LivePolicy: TypeAlias = "Agent | str"


class Replay(NamedTuple):
    """What happened to a policy that lived through a log, or the average of several such lives.

    Attributes
    ----------
    rows
        The logged rounds it met, m of them, in order.
    chosen, outside
        Its probabilities of the log's actions, (m, K), and of others, (m,), as it stood then.
    accepted
        1 where it was shown the reward, else 0; (m,).
    """

    rows: Ints
    chosen: Floats
    outside: Floats
    accepted: Floats


def accepted_share(log: EvaluatedLog) -> float:
    """Which share of the log's rounds a replay accepts: the smallest probability of any action.

    Of actions that could not be chosen nothing is known; `lacking` refuses policies that want them.
    """
    others = log.chances[log.chances > 0.0]
    return float(min(log.probabilities.min(), others.min(initial=1.0)))


def replay(log: EvaluatedLog, agent: "Agent", rows: Ints, seed: int, name: str) -> Replay:
    """Let an agent live through some rounds of a log; it learns those that are accepted.

    It learns them with the probability that it gave the action, as it would live.
    """
    share = accepted_share(log)
    draws = generator(seed, "replay", name).random(len(rows))
    chosen, outside = np.zeros((len(rows), log.chances.shape[1])), np.zeros(len(rows))
    accepted = np.zeros(len(rows))
    for j, i in enumerate(rows.tolist()):
        given = agent.pmf(log.contexts[i], actions=open_actions(log, agent, i))
        place(given, log.places[i], chosen[j], outside, j)
        own = float(chosen[j, log.actions[i]])
        if draws[j] * log.probabilities[i] < share * own:
            accepted[j] = 1.0
            teach(log, agent, i, own)
    return Replay(rows, chosen, outside, accepted)


def averaged(runs: Sequence[Replay]) -> Replay:
    """The average of several lives through the same rounds."""
    return Replay(
        runs[0].rows,
        np.mean([run.chosen for run in runs], axis=0),
        np.mean([run.outside for run in runs], axis=0),
        np.mean([run.accepted for run in runs], axis=0),
    )


def starts(log: EvaluatedLog, policy: LivePolicy, seed: int) -> "Callable[[int], Agent]":
    """What makes the agent of each life, by number: fresh ones of a SPEC, copies of an agent."""
    from melee.agent import Agent  # compiles kernels: not for those who ask the doctor only

    if isinstance(policy, str):
        return lambda number: fresh_agent(log, policy, _own_seed(seed, number))
    if not isinstance(policy, Agent):
        raise InputError(
            f"the policy is {policy!r:.60}; expected an Agent, or an explorer's SPEC such as "
            "'linucb:alpha=0.2': what does not learn is evaluated by melee.evaluate"
        )
    content = policy.to_bytes()

    def copy(number: int) -> Agent:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MeleeWarning)  # of its log, which a copy must not have
            return Agent.from_bytes(content)

    return copy


def _own_seed(seed: int, number: int) -> int:
    return int(generator(seed, "life", number).integers(2**63))
