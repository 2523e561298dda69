"""Rehearsals: a task played by an agent, which meets its rows as production would send them.

`simulate` plays numbers: levels became columns by a look at the whole table, and thirty labelled
rows gave everyone a scaling and a learning rate. An agent has none of that. It meets one row after
the other, as names and values, and finds levels, gaps and scales on the way. A rehearsal plays the
same rows in the same order through an `Agent`, so the two mean rewards tell what that costs.

An agent can also live through what no table of numbers shows: actions that come and go, and rewards
that come late.
"""

import time
import warnings

import numpy as np

from melee.agent import Agent, compile_now
from melee.arrays import Ints
from melee.compiled import programs
from melee.errors import MeleeError, MeleeWarning, whole_number
from melee.explorers import Explorer, Problem, parse
from melee.loop import Run
from melee.preparation import Prepared, prepare
from melee.rng import check_seed, generator
from melee.shares import Mask
from melee.task import Task

MAX_PENDING = 100_000
"""Decisions that may wait for their rewards, unless more have to."""


def rehearse(
    task: Task | Prepared,
    explorer: str | Explorer = "melee",
    *,
    seed: int = 0,
    max_rounds: int | None = None,
    floor: float = 0.0,
    features: bool = True,
) -> Run:
    """Play a task from start to end with an agent, one row of names and values after the other.

    The agent starts from nothing and is not shown the labelled rows; they are left out all the
    same, so that rounds are those of `simulate`. Each round is decided, rewarded and learned
    before the next, unless the task says that its rewards come late. Of actions that come and go,
    those that can be chosen are offered; one joins before the first round in which it can be
    chosen, and leaves after the last.

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
    features
        Whether the agent is shown the features of actions, where the task has any: then actions
        are candidates to it. An explorer that does not take candidates is not shown them.

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
    shown = features and prepared.task.action_rows is not None and chosen.takes_candidates
    # Datasets share no luck, whatever the seed.
    own_seed = int(generator(seed, "rehearsal", prepared.task.number).integers(2**63))
    changes = _Changes(prepared.task.open, prepared.order, prepared.task.n_actions)
    offers = _Offers(prepared.task)
    delays = None if prepared.task.delays is None else prepared.task.delays[order].tolist()
    longest = min(max(delays), len(order)) if delays else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)  # of the floor: no one evaluates this log
        agent = Agent(
            None if shown else changes.at_start,
            chosen,
            seed=own_seed,
            floor=floor,
            max_pending=max(longest + 1, MAX_PENDING),
        )
    actions = np.empty(len(order), np.int64)
    earned, probabilities = np.empty(len(order)), np.empty(len(order))
    late: dict[int, list[tuple[str, float]]] = {}  # by the round in which they are known
    compile_now(agent)
    began, waited = time.perf_counter(), programs.seconds_waited()
    for i, row in enumerate(order):
        offered = offers.of(row) if shown else changes.before(agent, i)
        decision = agent.act(rows[row], actions=offered)
        reward = rewards.item(row, decision.action)
        if delays is None:
            agent.learn(decision.id, reward)
        else:
            late.setdefault(i + delays[i], []).append((decision.id, reward))
            for id, known in late.pop(i, []):
                agent.learn(id, known)
        actions[i], earned[i], probabilities[i] = decision.action, reward, decision.probability
    seconds = time.perf_counter() - began - (programs.seconds_waited() - waited)
    diagnostics = {name: value for name, value in agent.diagnostics().items() if name in said}
    return Run(chosen, prepared, seed, actions, earned, probabilities, seconds, diagnostics)


class _Offers:
    """The candidates of every row, with their features."""

    def __init__(self, task: Task) -> None:
        self.task = task
        own = task.action_rows
        self.kept = [] if own is None or len(own) != task.n_actions else list(own)

    def of(self, row: int) -> dict[int, dict[str, float | str | None]]:
        can = self.task.open
        there = range(self.task.n_actions) if can is None else np.flatnonzero(can[row]).tolist()
        if self.kept:
            return {a: self.kept[a] for a in there}
        return {a: self.task.features_of(row, a) for a in there}


class _Changes:
    """Which actions there are, and which of them can be chosen, round by round."""

    def __init__(self, can: Mask | None, order: Ints, n_actions: int) -> None:
        self.open = None if can is None else can[order]
        self.joining: dict[int, list[int]] = {}
        self.leaving: dict[int, list[int]] = {}
        self.at_start: list[int] = []
        if self.open is None:
            self.at_start = list(range(n_actions))
            return
        for action in np.flatnonzero(self.open.any(axis=0)).tolist():
            rounds = np.flatnonzero(self.open[:, action])
            first, last = int(rounds[0]), int(rounds[-1])
            if first == 0:
                self.at_start.append(action)
            else:
                self.joining.setdefault(first, []).append(action)
            self.leaving.setdefault(last + 1, []).append(action)
        self.n_there = len(self.at_start)

    def before(self, agent: Agent, i: int) -> list[int] | None:
        """Add and remove the actions that join and leave before a round; those that are open."""
        if self.open is None:
            return None
        joining, leaving = self.joining.get(i, []), self.leaving.get(i, [])
        if joining:
            agent.add_actions(joining)
        if leaving:
            agent.remove_actions(leaving)
        self.n_there += len(joining) - len(leaving)
        offered: list[int] = np.flatnonzero(self.open[i]).tolist()
        return offered if len(offered) < self.n_there else None


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
