"""A model of candidates: the state of an explorer over pairs of a context and a candidate."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from melee import growth
from melee.agent.file import Arrays
from melee.agent.model import Model
from melee.arrays import Floats, Ints
from melee.checks import RewardRange, read_whole
from melee.compiled import Program, compiling_makes_way, program
from melee.errors import DataError
from melee.explorers import Explorer, Problem
from melee.explorers.base import Kind
from melee.explorers.candidates import N_RECORDS, Pairs, join_late
from melee.explorers.rescaled import Rescaled
from melee.loop import act_pairs

LEAST_ROOM = 16
"""Candidates that there is room for at least."""
MANY = 1000
"""Candidates that take longer to decide among, if that is interpreted, than to load its program."""


class PairModel(Model):
    """One explorer's state over pairs, from its first round on.

    Parameters
    ----------
    explorer, seed, generation, reward_range
        As of a `Model`.
    sides, numbers
        What the columns of pairs are (see `melee.explorers.candidates.PairUnits.draw`).
    room
        How many candidates it has room for.
    """

    def __init__(
        self,
        explorer: Explorer,
        seed: int,
        generation: int,
        sides: Sequence[int],
        numbers: Sequence[bool],
        room: int,
        reward_range: RewardRange = None,
    ) -> None:
        self.sides = np.array(sides, np.int64)
        self.numbers = tuple(numbers)
        super().__init__(explorer, seed, generation, len(sides), room, reward_range)

    def _make_room(self) -> None:
        super()._make_room()
        self.pair = np.zeros(self.n_features)  # of the latest decision, as it came
        self._inputs, self._own = np.zeros((0, 0)), np.zeros((0, 4))
        self._room: tuple[Floats, ...] = (self._own,)

    def _start(self, n_features: int, n_actions: int, kind: Kind | None = None) -> Rescaled:
        problem = Problem(n_features, n_actions, kind=kind, reward_range=self.reward_range)
        sides, numbers = self.sides.tolist(), self.numbers
        if len(sides) != n_features:  # one that shows how states grow: any columns will do
            sides, numbers = [-(i % 2) for i in range(n_features)], (False,) * n_features
        return self.explorer.begin_paired(problem, sides, numbers)

    def _acting_on(self, offered: Any) -> Program:
        offered = self.offer(np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.int64))
        return program(act_pairs, self.state, offered, 1, 1, 0.0, self._rng, np.zeros(1))

    def all_programs(self) -> list[Program]:
        """Candidates are open or not there."""
        return self.programs

    @property
    def action_bounds(self) -> tuple[int, int]:
        """Where records are, or -1."""
        return -1, N_RECORDS

    def offer(self, context: Floats, table: Floats, records: Ints) -> Pairs:
        """What is offered, and room for what becomes of it."""
        n = len(records)
        if len(self._room[-1]) != n:
            n_inputs = self.state.inner.inputs.shape[1]
            if self._inputs.shape != (self.n_actions, n_inputs):
                self._inputs = np.zeros((self.n_actions, n_inputs))
                self._own = np.zeros((self.n_actions, 4))
            self._room = self.pair, self._x, self._inputs[:n], self._own[:n]
        return Pairs(context, table, records, self.sides, self._scaling, *self._room)

    def decide(
        self, context: Floats, table: Floats, records: Ints, draw: int, floor: float, pmf: Floats
    ) -> int:
        """Fill the probabilities of candidates and draw one; `pair` is then that of it."""
        offered, t = self.offer(context, table, records), self.n_learned + 1
        if len(records) >= MANY:
            self._act.load()
        return int(self._act.run(self.state, offered, t, draw, floor, self._rng, pmf))

    def look(
        self, context: Floats, table: Floats, records: Ints, floor: float, pmf: Floats
    ) -> None:
        """Fill the probabilities, and forget that anyone asked."""
        noted = growth.latest(self.state)
        before = [array.copy() for array in noted]
        self.decide(context, table, records, 0, floor, pmf)
        for array, content in zip(noted, before, strict=True):
            array[...] = content

    @compiling_makes_way()
    def take_in(
        self, sides: Sequence[int], numbers: Sequence[bool], filled: Sequence[float], room: int
    ) -> None:
        """Take in new columns, at the end, or room for more candidates.

        `filled` says what pairs of the past had in the columns.
        """
        old, settled, before = self.state, self.is_settled, self.n_features
        self.sides, self.numbers = np.array(sides, np.int64), tuple(numbers)
        n_features = len(sides)
        fresh = self._start(n_features, room, growth.kind_of(old) if settled else None)
        if settled:
            kept, sizes = np.arange(self.n_actions), (before, n_features)
            fresh = growth.transfer(old, fresh, self.axes, sizes, kept, room)
            join_late(fresh.inner.units, list(sides), before)
        self.state, self.optimism = fresh, np.zeros(room)
        self.n_features, self.n_actions = n_features, room
        self._make_room()
        if not settled:
            self._axes = None
            self._ready_programs()
            n = int(old.kept[0])
            self._learn_again(old, before, filled, old.rounds[:n, 1], np.arange(n))

    def forget(self, record: int) -> None:
        """Let a record go, for that of another candidate."""
        paired, n = self.state.inner, int(self.state.kept[0])
        paired.counts[record] = paired.earned[record] = 0.0
        paired.sums[record] = 0.0
        rounds = self.state.rounds[:n, 1]
        rounds[rounds == record] = -1

    def to_parts(self) -> tuple[dict[str, Any], Arrays]:
        """Everything in it, copied."""
        about, arrays = super().to_parts()
        about["sides"] = self.sides.tolist()
        about["numbers"] = list(self.numbers)
        return about, arrays

    @classmethod
    def _blank(cls, about: Any) -> "PairModel":
        model = cls.__new__(cls)
        model.sides = np.array([read_whole(side, -(10**6), 10**6) for side in about["sides"]])
        model.numbers = tuple(value is True for value in about["numbers"])
        if len(model.sides) != about["n_features"] or len(model.numbers) != len(model.sides):
            raise DataError("columns that do not exist")
        return model
