"""What an agent has learned: an explorer's state that grows with its features and actions."""

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from melee import growth
from melee.agent.file import Arrays
from melee.agent.restoring import check_numbers, check_shapes, fill, read_settings
from melee.arrays import Floats, Ints, Within, Words
from melee.checks import RewardRange, read_whole
from melee.compiled import Program, compiling_makes_way, program
from melee.explorers import Explorer, Problem
from melee.explorers.base import Kind
from melee.explorers.ranged import FARTHEST, hoped
from melee.explorers.rescaled import N_KEPT, Rescaled, restart
from melee.learners.offers import OpenActions
from melee.loop import act_rows, learn_rows
from melee.rng import stream
from melee.scaling import Scaling

_SOME: Ints = np.zeros(1, np.int64)
"""Open actions, to tell their kind by."""


class Model:
    """One explorer's state, from its first round on.

    Until the scale of its contexts is settled, by 256 rounds, it keeps them all; a change of size
    then starts it again and has it learn them anew. Afterwards what it knows is transferred to a
    state of the new size (see `melee.growth`).

    Parameters
    ----------
    explorer, seed, generation
        Which explorer, and the random numbers that it learns with.
    n_features, n_actions
        Its size at first.
    reward_range
        The range of rewards, if it is declared.
    """

    _latest: tuple[Any, list[Floats]] = (None, [])  # of which state, and these arrays

    def __init__(
        self,
        explorer: Explorer,
        seed: int,
        generation: int,
        n_features: int,
        n_actions: int,
        reward_range: RewardRange = None,
    ) -> None:
        self.explorer, self.seed, self.generation = explorer, seed, generation
        self.reward_range = reward_range
        self.n_features, self.n_actions = n_features, n_actions
        self.n_learned = 0
        self.optimism: Floats = np.zeros(n_actions)  # what late actions were first expected to earn
        self.some_closed = False
        self._axes: growth.Axes | None = None
        self._rng: Words = stream(seed, "exploration", generation)
        self._make_room()
        self.state = self._start(n_features, n_actions)
        self._ready_programs()

    def _start(self, n_features: int, n_actions: int, kind: Kind | None = None) -> Rescaled:
        problem = Problem(n_features, n_actions, kind=kind, reward_range=self.reward_range)
        return self.explorer.begin_cold(problem)

    def _make_room(self) -> None:
        """What depends on the number of features alone."""
        self._scaling = Scaling.identity(self.n_features)
        self._x = np.zeros(self.n_features + 1)

    def _ready_programs(self) -> None:
        """What acts and learns: interpreted at first, then machine code."""
        self._act = self._acting_on(self._x)
        self._act_open = self._acting_on(self._open(_SOME)) if self.some_closed else None
        self._learn = self._learning()

    def _acting_on(self, offered: Any) -> Program:
        rows, ints = np.zeros((1, 1)), np.zeros(1, np.int64)
        head = (self.state, self._scaling, rows, offered, 1)
        return program(act_rows, *head, ints, 0.0, self._rng, rows, ints)

    def _learning(self) -> Program:
        rows, ints, reals = np.zeros((1, 1)), np.zeros(1, np.int64), np.zeros(1)
        head = (self.state, self._scaling, rows, self._x, 1)
        return program(learn_rows, *head, self._rng, ints, reals, reals)

    def _open(self, chosen: Ints) -> OpenActions:
        """Room for a context in which only these actions are open."""
        return OpenActions(self._x, chosen, self.n_actions)

    @property
    def programs(self) -> list[Program]:
        """Those that act, on some actions too once some were closed, and learn."""
        some = [] if self._act_open is None else [self._act_open]
        return [self._act, *some, self._learn]

    def all_programs(self) -> list[Program]:
        """The same, ready for a first time that some are closed."""
        if self._act_open is None:
            self._act_open = self._acting_on(self._open(_SOME))
        return self.programs

    def most_features(self, n_bytes: int) -> int:
        """How many features its matrices may have to take no more memory than that."""
        if not growth.kind_of(self.state).exact:
            return 2**31
        per_matrix = n_bytes / (8 * self.n_actions * self.explorer.n_models)
        return max(int(math.sqrt(per_matrix)) - getattr(self.explorer, "hidden", 0) - 1, 1)

    @property
    def action_bounds(self) -> tuple[int, int]:
        """The least number of an action in its rounds, and the one after the greatest."""
        return 0, self.n_actions

    @property
    def is_settled(self) -> bool:
        """Whether the scale of its contexts is found."""
        return int(self.state.kept[0]) >= N_KEPT

    def act(
        self,
        rows: Floats,
        draws: Ints,
        floor: float,
        pmfs: Floats,
        actions: Ints,
        chosen: Ints | None = None,
    ) -> None:
        """Fill the probabilities and draw an action for every row.

        Where only some actions are open, `pmfs` and `actions` are in terms of these.
        """
        acting, t = self._act, self.n_learned + 1
        offered: Any = self._x
        if chosen is not None:
            offered = self._open(chosen)
            if self._act_open is None:
                self._act_open = self._acting_on(offered)
            acting = self._act_open
        acting.run(
            self.state, self._scaling, rows, offered, t, draws, floor, self._rng, pmfs, actions
        )

    def peek(self, rows: Floats, floor: float, pmfs: Floats, chosen: Ints | None) -> None:
        """Fill the probabilities of every row, and forget that anyone asked."""
        noted = self.latest
        before = [array.copy() for array in noted]
        draws = np.zeros(len(rows), np.int64)
        self.act(rows, draws, floor, pmfs, draws.copy(), chosen)
        for array, content in zip(noted, before, strict=True):
            array[...] = content

    @property
    def latest(self) -> list[Floats]:
        """Where the state notes something of its latest decision for the reward to come."""
        if self._latest[0] is not self.state:
            self._latest = self.state, growth.latest(self.state)
        return self._latest[1]

    def close_some(self) -> None:
        """From now on not all actions are open in every round."""
        self.some_closed = True
        self.state = self.explorer.among_some(self.state)

    def learn(self, rows: Floats, actions: Ints, rewards: Floats, probabilities: Floats) -> None:
        """Absorb rounds in order."""
        first = self.n_learned
        self._learn.run(
            self.state,
            self._scaling,
            rows,
            self._x,
            first,
            self._rng,
            actions,
            rewards,
            probabilities,
        )
        self.n_learned = first + len(rows)

    @property
    def n_changes(self) -> int | None:
        """Changes of the world that its learner has noticed; None if it does not look."""
        found = [
            learner.changes[0]
            for learner in growth.learners(self.state)
            if hasattr(learner, "changes")
        ]
        return int(sum(found)) if found else None

    @property
    def axes(self) -> growth.Axes:
        """How the state's arrays grow; found on small states of the same kind."""
        if self._axes is None:
            kind = growth.kind_of(self.state)
            self._axes = growth.axes_of(lambda d, k: self._start(d, k, kind), 3, 3)
        return self._axes

    @compiling_makes_way()
    def resize(
        self, n_features: int, filled: list[float], kept: Ints, n_actions: int, average: float
    ) -> None:
        """Take in new features, new actions, or let actions go.

        Parameters
        ----------
        n_features, filled
            How many features there are now, and what the past had in the new ones.
        kept, n_actions
            Where each action is now (-1: gone), and how many there are.
        average
            The average reward so far. New actions are expected to earn halfway from there to the
            best that is known, unless nothing was learned so far.
        """
        stays = kept >= 0
        optimism = np.zeros(n_actions)
        optimism[kept[stays]] = self.optimism[stays]
        if self.n_learned:
            new = np.ones(n_actions, np.bool_)
            new[kept[stays]] = False
            optimism[new] = hoped(self.state.range, average)
        old, settled, before = self.state, self.is_settled, self.n_features
        fresh = self._start(n_features, n_actions, growth.kind_of(old) if settled else None)
        _encourage(fresh, optimism)
        if settled:
            sizes = (before, n_features)
            fresh = growth.transfer(old, fresh, self.axes, sizes, kept, n_actions)
        if self.some_closed:
            fresh = self.explorer.among_some(fresh)
        self.state, self.optimism = fresh, optimism
        self.n_features, self.n_actions = n_features, n_actions
        self._make_room()
        if not settled:
            self._axes = None
            self._ready_programs()
            actions = kept[old.rounds[: int(old.kept[0]), 1]]
            self._learn_again(old, before, filled, actions, np.flatnonzero(actions >= 0))

    def _learn_again(
        self, old: Rescaled, before: int, filled: Sequence[float], actions: Ints, stay: Ints
    ) -> None:
        """Learn the rounds that the old state has kept, but for those of actions that are gone.

        `actions` are where their actions are now, and `stay` the numbers of those that stay.
        """
        if len(stay) == 0:
            return
        common = min(before, self.n_features)
        rows = np.zeros((len(stay), self.n_features))
        rows[:, :common] = old.contexts[stay, :common]
        if self.n_features > before:
            rows[:, before:] = filled[before:]
        times, actions = old.rounds[stay, 0], actions[stay]
        rewards, probabilities = old.rewards[stay], old.probabilities[stay]
        past = slice(None, -1)
        restart(
            self.state, rows[past], times[past], actions[past], rewards[past], probabilities[past]
        )
        self._learn.run(
            self.state,
            self._scaling,
            rows[-1:],
            self._x,
            int(times[-1]) - 1,
            self._rng,
            actions[-1:],
            rewards[-1:],
            probabilities[-1:],
        )

    def to_parts(self) -> tuple[dict[str, Any], Arrays]:
        """Everything in it, copied: what JSON can hold, and arrays by their place in the state."""
        kind = growth.kind_of(self.state)
        about = {
            "generation": self.generation,
            "n_features": self.n_features,
            "n_actions": self.n_actions,
            "n_learned": self.n_learned,
            "some_closed": self.some_closed,
            "kind": [kind.exact, kind.hidden],
            "settings": {
                path: float(value).hex() for path, value in growth.settings(self.state).items()
            },
        }
        arrays = {"optimism": self.optimism.copy()}
        for path, array in growth.named(self.state, lasting=True):
            arrays[path] = array.copy()
        return about, arrays

    @classmethod
    def from_parts(
        cls, explorer: Explorer, seed: int, reward_range: RewardRange, about: Any, arrays: Arrays
    ) -> Self:
        """The model that was written.

        An array or a number that the file does not have is as in a fresh state: it was written
        before there was such a thing. One that the state does not have is refused.
        """
        model = cls._blank(about)
        model.explorer, model.seed, model.reward_range = explorer, seed, reward_range
        model.generation = read_whole(about["generation"], 0, 2**31)
        model.n_features = read_whole(about["n_features"], 1)
        model.n_actions = read_whole(about["n_actions"], 1)
        model.n_learned = read_whole(about["n_learned"], 0, 2**62)
        model.some_closed = about["some_closed"] is True
        model._axes = None
        model._rng = stream(seed, "exploration", model.generation)
        exact, hidden = about["kind"]
        kind = Kind(exact is True, hidden is True)
        check_shapes(model, kind, arrays)
        model._make_room()
        state = model._start(model.n_features, model.n_actions, kind)
        model.optimism = np.zeros(model.n_actions)
        fill(
            {"optimism": model.optimism}, arrays, {"optimism": Within(-2 * FARTHEST, 2 * FARTHEST)}
        )
        _encourage(state, model.optimism)
        fill(dict(growth.named(state, lasting=True)), arrays, growth.bounds(state))
        model.state = growth.with_settings(state, read_settings(model, state, about["settings"]))
        check_numbers(model)
        model._ready_programs()
        return model

    @classmethod
    def _blank(cls, about: Any) -> Self:
        """A model of which nothing is read yet."""
        return cls.__new__(cls)


def _encourage(fresh: Rescaled, optimism: Floats) -> None:
    """Have a fresh state begin, and begin again after a rescaling, with hope for late actions."""
    for action in np.flatnonzero(optimism):
        growth.encourage(fresh.inner, [int(action)], len(optimism), float(optimism[action]))
    fresh.initial[:] = fresh.block
