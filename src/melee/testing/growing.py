"""The checks of an explorer that agents can have: it grows, shrinks, is saved and goes on."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from melee import growth
from melee.agent import Agent
from melee.agent.model import Model
from melee.arrays import Floats, Ints
from melee.explorers import Explorer
from melee.explorers.rescaled import Rescaled
from melee.testing.checks import require, require_close, require_distribution

YOUNG, SETTLED = 20, 300
"""Rounds before and after the scale of its contexts is found."""


def features_join(explorer: Explorer) -> None:
    """Features that were always zero change no decision when they join a settled model."""
    for n_rounds in (YOUNG, SETTLED):
        model, rows = _model(explorer, n_rounds), _rows(20, 4, seed=3)
        before = _pmfs(model, rows)
        model.resize(6, [0.0] * 6, np.arange(3), 3, 0.5)
        if n_rounds == SETTLED:
            after = _pmfs(model, np.hstack([rows, np.zeros((20, 2))]))
            require_close(after, before, "two features of zeros joined, and it decides otherwise")
        _goes_on(model)


def actions_join(explorer: Explorer) -> None:
    """What was known of the others stays as it was when one joins a settled model."""
    for n_rounds in (YOUNG, SETTLED):
        model, rows = _model(explorer, n_rounds), _rows(20, 4, seed=3)
        before = _pmfs(model, rows)
        model.resize(4, [0.0] * 4, np.array([0, 1, 3]), 4, 0.5)
        if n_rounds == SETTLED:
            among = _pmfs(model, rows, np.array([0, 1, 3]))
            require_close(among, before, "an action joined, and it decides otherwise among the old")
        _goes_on(model)


def actions_leave(explorer: Explorer) -> None:
    """Without one of its actions a settled model decides as it did among the others."""
    for n_rounds in (YOUNG, SETTLED):
        model, rows = _model(explorer, n_rounds), _rows(20, 4, seed=3)
        among = _pmfs(model, rows, np.array([0, 2]))
        model.resize(4, [0.0] * 4, np.array([0, -1, 1]), 2, 0.5)
        if n_rounds == SETTLED:
            require_close(_pmfs(model, rows), among, "an action left, and it decides otherwise")
        _goes_on(model)


def some_actions_are_open(explorer: Explorer) -> None:
    """Among some actions it decides as if there were no others; asking about them leaves no trace.

    All of them are no subset, whatever their order.
    """
    hint = "ask pmf.shape[0] how many there are, and choice(x, a).model which action a is"
    for n_rounds in (0, YOUNG, SETTLED):
        model, rows = _model(explorer, n_rounds, n_actions=5), _rows(10, 4, seed=5)
        of_all = _pmfs(model, rows)
        before = [array.copy() for array in growth.arrays(model.state)]
        require_close(_pmfs(model, rows, np.arange(5)), of_all, "all actions were named", atol=0.0)
        order = np.array([2, 0, 4, 3, 1])
        reordered = _pmfs(model, rows, order)
        require_close(reordered, of_all[:, order], "named in another order", atol=1e-12)
        for some in ([3], [1, 4], [4, 0, 3], [0, 1, 2, 3]):
            found = _pmfs(model, rows, np.array(some))
            for pmf in found:
                require_distribution(pmf, f"of the open actions {some}")
            alone = _pmfs_of_only(model, rows, np.array(some))
            when = f"only actions {some} are open; {hint}"
            require_close(found, alone, when, atol=1e-12)
        _pmfs(model, rows)  # scratch is what it was
        pairs = zip(before, growth.arrays(model.state), strict=True)
        require(all((a == b).all() for a, b in pairs), "asking about some actions left a trace")


def scratch_means_nothing_between_calls(explorer: Explorer) -> None:
    """Fields that are declared `Scratch` may hold anything when a call begins."""
    for n_rounds in (YOUNG, SETTLED):
        plain, other = _model(explorer, n_rounds), _model(explorer, n_rounds)
        rows, when = _rows(10, 4, seed=6), "scratch was overwritten: it matters"
        for _ in range(3):
            _overwrite_scratch(other)
            require_close(_pmfs(other, rows), _pmfs(plain, rows), when, atol=0.0)
            _overwrite_scratch(other)
            for model in (plain, other):
                _teach(model, 5, seed=8)


def peeking_leaves_no_trace(explorer: Explorer) -> None:
    """Whoever asks for probabilities changes nothing that lasts."""
    model, rows, seen = _model(explorer, YOUNG), _rows(10, 4, seed=5), np.empty((10, 3))
    before = [array.copy() for array in growth.arrays(model.state, lasting=True)]
    model.peek(rows, 0.0, seen, None)
    pairs = zip(before, growth.arrays(model.state, lasting=True), strict=True)
    same = all((a == b).all() for a, b in pairs)
    require(same, "its state changed; what lasts only within a call belongs into Scratch")
    require_close(seen, _pmfs(model, rows), "asked again", atol=0.0)


def a_saved_agent_goes_on_as_if_never_saved(explorer: Explorer) -> None:
    """From a file, to the bit, through contexts and actions that come and go."""
    agent = Agent(["a", "b", "c"], explorer.spec, seed=3)
    for number in range(SETTLED):
        _live(agent, number)
        if number in (YOUNG, SETTLED - 1):
            again = Agent.from_bytes(agent.to_bytes())
            require(again.fingerprint == agent.fingerprint, "what was read is not what was saved")
            _live_alike(agent, again, number + 1)
            agent = again
            agent.add_actions([f"late {number}"])
    agent.remove_actions(["b"])
    _live_alike(agent, Agent.from_bytes(agent.to_bytes()), SETTLED)


CHECKS: tuple[Callable[[Any], None], ...] = (
    features_join,
    actions_join,
    actions_leave,
    some_actions_are_open,
    scratch_means_nothing_between_calls,
    peeking_leaves_no_trace,
    a_saved_agent_goes_on_as_if_never_saved,
)


# --- models and agents --------------------------------------------------------------------------


def _model(explorer: Explorer, n_rounds: int, n_actions: int = 3) -> Model:
    model = Model(explorer, 0, 0, 4, n_actions)
    _teach(model, n_rounds)
    return model


def _rows(n: int, n_features: int, seed: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(n, n_features))


def _teach(model: Model, n_rounds: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rounds, model.n_features))
    actions = rng.integers(model.n_actions, size=n_rounds)
    rewards = (rows[:, 0] * (actions - 1) + rng.normal(size=n_rounds) > 0).astype(float)
    model.learn(rows, actions, rewards, np.full(n_rounds, 0.5))


def _overwrite_scratch(model: Model) -> None:
    lasting = {id(array) for array in growth.arrays(model.state, lasting=True)}
    for array in growth.arrays(model.state):
        if id(array) not in lasting:
            array[...] = 0.123


def _pmfs(model: Model, rows: Floats, chosen: Ints | None = None) -> Floats:
    n_actions = model.n_actions if chosen is None else len(chosen)
    pmfs, actions = np.empty((len(rows), n_actions)), np.empty(len(rows), np.int64)
    model.act(rows, np.arange(len(rows)), 0.0, pmfs, actions, chosen)
    return pmfs


def _pmfs_of_only(model: Model, rows: Floats, chosen: Ints) -> Floats:
    """The same by the definition: those of a model that knows these actions alone."""
    smaller = copy(model)
    smaller.state = of_only(model.state, model.axes, chosen, model.n_actions)
    smaller.n_actions = len(chosen)
    return _pmfs(smaller, rows)


def of_only(state: Any, axes: growth.Axes, chosen: Ints, n_actions: int) -> Any:
    """The state of a world with only these actions; what is not per action is shared."""
    kinds = iter(axes)

    def taken(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            for number, axis in enumerate(next(kinds)):
                if axis.per_action:
                    blocks = np.arange(axis.per_action)[:, None]
                    part = part.take((blocks * n_actions + chosen).ravel(), axis=number)
            return part
        if isinstance(part, Rescaled):
            inside = {
                name: value if name in ("block", "initial") else taken(value)
                for name, value in zip(part._fields, part, strict=True)
            }
            return Rescaled(**inside)
        if isinstance(part, tuple):
            return type(part)(*(taken(inner) for inner in part))
        return part

    return taken(state)


def _goes_on(model: Model) -> None:
    _teach(model, 30, seed=4)
    for pmf in _pmfs(model, _rows(5, model.n_features, seed=7)):
        require(len(pmf) == model.n_actions, f"{len(pmf)} of {model.n_actions} actions")
        require_distribution(pmf, "after it has grown and learned")


def _context(number: int) -> dict[str, Any]:
    rng = np.random.default_rng([number, 1])
    context = {"size": float(rng.normal()), "kind": f"kind {rng.integers(2 + number // 100)}"}
    return context | ({"late": float(rng.normal())} if number > YOUNG else {})


def _live(agent: Agent, number: int) -> tuple[Any, ...]:
    """One round of an agent's life: what it decided, and what it then knew."""
    context = _context(number)
    open_now = agent.actions_[:2] if number % 7 == 3 else None
    decision = agent.act(context, actions=open_now)
    favourite = agent.actions_[int(context["size"] > 0.0)]
    agent.learn(decision.id, 0.9 if decision.action == favourite else 0.1)
    return decision.id, decision.action, decision.probability


def _live_alike(original: Agent, other: Agent, first: int) -> None:
    for number in range(first, first + 15):
        ours, theirs = _live(original, number), _live(other, number)
        require(ours == theirs, f"{theirs} was decided where {ours} was expected")
    require(
        original.fingerprint == other.fingerprint, "both decide alike and differ in what they know"
    )
