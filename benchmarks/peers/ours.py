"""MELEE's side: a whole pass, and the same rows one at a time."""

import time
from typing import NamedTuple

from melee.agent import Agent, compile_now
from melee.bandit import Bandit
from melee.loop import simulate
from melee.preparation import Prepared


class Timing(NamedTuple):
    """How long the rows took, and what was earned on them."""

    seconds: float
    mean_reward: float


def whole_pass(prepared: Prepared, spec: str) -> Timing:
    """The compiled pass of `simulate`."""
    run = simulate(prepared, spec, seed=0)
    return Timing(run.seconds, run.mean_reward)


def one_at_a_time(prepared: Prepared, spec: str) -> Timing:
    """`act` and `learn` from Python, row by row; drawing the action is part of `act`."""
    contexts = list(prepared.task.contexts[prepared.order])
    rewards = prepared.task.rewards[prepared.order].tolist()
    bandit = Bandit.for_prepared(prepared, spec, seed=0)
    bandit.wait()
    total = 0.0
    began = time.perf_counter()
    for x, row in zip(contexts, rewards, strict=True):
        action, probability = bandit.act(x)
        reward = row[action]
        bandit.learn(x, action, reward, probability)
        total += reward
    seconds = time.perf_counter() - began
    return Timing(seconds, total / len(rewards))


def agent(prepared: Prepared, spec: str, *, named: bool) -> Timing:
    """`Agent.act` and `Agent.learn` by the decision's id, on rows of numbers or on dicts."""
    rows = list(prepared.task.contexts[prepared.order])
    contexts = [named_context(row.tolist()) for row in rows] if named else rows
    rewards = prepared.task.rewards[prepared.order].tolist()
    made = Agent(range(prepared.task.n_actions), spec)
    compile_now(made)
    total = 0.0
    began = time.perf_counter()
    for context, row in zip(contexts, rewards, strict=True):
        decision = made.act(context)
        reward = row[decision.action]
        made.learn(decision.id, reward)
        total += reward
    seconds = time.perf_counter() - began
    return Timing(seconds, total / len(rewards))


def named_context(row: list[float]) -> dict[str, float]:
    """A row of numbers as people have it: a name for each."""
    return {f"feature_{i}": value for i, value in enumerate(row)}
