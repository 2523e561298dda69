"""Rehearsals: a task played by an agent, which meets its rows as production would send them.

`simulate` plays numbers: levels became columns by a look at the whole table, and thirty labelled
rows gave everyone a scaling and a learning rate. An agent has none of that. It meets one row after
the other, as names and values, and finds levels, gaps and scales on the way. A rehearsal plays the
same rows in the same order through an `Agent`, so the two mean rewards tell what that costs.
"""

import time
import warnings

import numpy as np

from melee.agent import Agent, compile_now
from melee.compiled import programs
from melee.errors import MeleeError, MeleeWarning, whole_number
from melee.explorers import Explorer, Problem, parse
from melee.loop import Run
from melee.preparation import Prepared, prepare
from melee.rng import check_seed, generator
from melee.task import Task


def rehearse(
    task: Task | Prepared,
    explorer: str | Explorer = "melee",
    *,
    seed: int = 0,
    max_rounds: int | None = None,
    floor: float = 0.0,
) -> Run:
    """Play a task from start to end with an agent, one row of names and values after the other.

    The agent starts from nothing and is not shown the labelled rows; they are left out all the
    same, so that rounds are those of `simulate`. Each round is decided, rewarded and learned
    before the next.

    Parameters
    ----------
    task
        A task, or a prepared one. Its rows are met as they were read where they were kept, as by
        `read_table(path, keep_rows=True)`; else as numbers under the names of their features.
    explorer
        An explorer or its SPEC string. Those that need labelled rows, or every action's reward,
        are refused, as by any agent.
    seed
        Of the order, unless the task is prepared, and of the agent's randomness.
    max_rounds
        Stop after this many rounds.
    floor
        Uniform exploration on top of the explorer's own. An agent's default is 0.02; here it is 0,
        as `simulate` adds none.

    Examples
    --------
    >>> from melee.datasets import rectangles
    >>> run = rehearse(rectangles(n_rows=300, bayes_error=0.0, seed=0), "linucb")
    >>> run.mean_reward > 0.8
    True
    """
    chosen = parse(explorer)
    check_seed(seed)
    if max_rounds is not None:
        max_rounds = whole_number("max_rounds", max_rounds, 1)
    # What an explorer says of itself goes by these names; an agent has more to say.
    said = chosen.diagnostics(chosen.begin_cold(Problem(1, 2)))
    prepared = task if isinstance(task, Prepared) else prepare(task, seed=seed)
    order = prepared.order[:max_rounds].tolist()
    rows, rewards = prepared.task.named_rows(), prepared.task.rewards
    # Datasets share no luck, whatever the seed.
    own_seed = int(generator(seed, "rehearsal", prepared.task.number).integers(2**63))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)  # of the floor: no one evaluates this log
        agent = Agent(range(prepared.task.n_actions), chosen, seed=own_seed, floor=floor)
    actions = np.empty(len(order), np.int64)
    earned, probabilities = np.empty(len(order)), np.empty(len(order))
    compile_now(agent)
    began, waited = time.perf_counter(), programs.seconds_waited()
    for i, row in enumerate(order):
        decision = agent.act(rows[row])
        reward = rewards.item(row, decision.action)
        agent.learn(decision.id, reward)
        actions[i], earned[i], probabilities[i] = decision.action, reward, decision.probability
    seconds = time.perf_counter() - began - (programs.seconds_waited() - waited)
    diagnostics = {name: value for name, value in agent.diagnostics().items() if name in said}
    return Run(chosen, prepared, seed, actions, earned, probabilities, seconds, diagnostics)


def refusal(explorer: str | Explorer) -> str:
    """Why agents do not take an explorer; empty if they do.

    >>> refusal("linucb")
    ''
    >>> refusal("full-information")
    'full-information: ...'
    """
    chosen = parse(explorer)
    try:
        chosen.begin_cold(Problem(1, 2))
    except MeleeError as error:
        return str(error)
    return ""
