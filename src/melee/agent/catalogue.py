"""What an agent knows of candidates: their features and records, and the models of both.

Memory is bounded. Of the candidates that were learned from latest, as many as models have records
of, it remembers what each earned; any other one, new or forgotten, is judged by its features alone.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from melee.agent.familiar import Familiar
from melee.agent.file import Arrays
from melee.agent.knowledge import MAX_MODEL_BYTES, MOST_EARNED, Encoded, Knowledge, Labels, Lesson
from melee.agent.offered import MOST_CANDIDATES, Offered, offer
from melee.agent.pairs import LEAST_ROOM, PairModel
from melee.arrays import Floats, Ints
from melee.checks import RewardRange, read_number, read_whole
from melee.contexts import Context
from melee.errors import DataError, InputError, shown
from melee.explorers import Explorer
from melee.explorers.candidates import N_RECORDS, N_UNITS
from melee.features import FeatureMap
from melee.labels import Label, check_label, label_from_json, label_to_json

_NONE = (-1,)


class Catalogue(Knowledge):
    """Decides among candidates by what it has learned of others like them, and of themselves.

    Parameters
    ----------
    explorer, floor, seed, half_life, max_features, reward_range
        As of `Knowledge`; contexts and candidates have as many features each.
    """

    model: PairModel
    young: PairModel | None

    def __init__(
        self,
        explorer: Explorer,
        floor: float,
        seed: int,
        half_life: int | None,
        max_features: int,
        reward_range: RewardRange,
    ) -> None:
        explorer.check_candidates()
        self.reward_range = reward_range
        self.explorer, self.floor, self.seed, self.half_life = explorer, floor, seed, half_life
        # A candidate's level has a feature sooner: only those of chosen ones are learned from.
        self.features, self.traits = FeatureMap(max_features), FeatureMap(max_features, rare=2)
        self.n_learned = self.version = 0
        self.total_reward = 0.0
        self.items: OrderedDict[Label, list[Any]] = OrderedDict()  # record, rounds, their rewards
        self.sides = [0, -1]
        self.room = LEAST_ROOM
        self.young = None
        self.model = self._new_model(0)
        self._derive()

    def _derive(self) -> None:
        """What follows from the rest."""
        taken = {record for record, _, _ in self.items.values()}
        self._free = [record for record in range(N_RECORDS - 1, -1, -1) if record not in taken]
        self.familiar = Familiar(self.traits)
        self._found: tuple[Offered, Ints] | None = None  # records of what was offered the last time
        self._is_known = False  # whether learning the latest context would find nothing new
        self._action, self._reward = np.zeros(1, np.int64), np.zeros(1)
        self._probability = np.zeros(1)
        # Half of the columns are of contexts, and half of candidates.
        most = self.model.most_features(MAX_MODEL_BYTES // 4) - N_UNITS
        self.features.limit = self.traits.limit = max(most // 2, 1)

    @property
    def labels(self) -> Labels:  # type: ignore[override]
        """The candidates of which there is a record, the latest last."""
        return tuple(self.items)

    @property
    def columns(self) -> list[bool]:
        """Of every column of pairs: whether it is a number, and not a 0 or 1."""
        here, there = _numbers(self.features), _numbers(self.traits)
        return [side in here if side >= 0 else -1 - side in there for side in self.sides]

    def _new_model(self, generation: int) -> PairModel:
        own = (self.explorer, self.seed, generation, self.sides, self.columns, self.room)
        return PairModel(*own, self.reward_range)

    def to_parts(self) -> tuple[dict[str, Any], Arrays]:
        """Everything in it, copied."""
        about: dict[str, Any] = {
            "items": [[label_to_json(label), *item] for label, item in self.items.items()],
            "sides": self.sides.copy(),
            "room": self.room,
            "n_learned": self.n_learned,
            "version": self.version,
            "total_reward": self.total_reward,
            "features": self.features.to_json(),
            "traits": self.traits.to_json(),
        }
        return about, self._models_to_parts(about)

    def _read_actions(self, about: Any) -> None:
        """The candidates that were written, and the columns of pairs."""
        self.explorer.check_candidates()
        self.traits = FeatureMap.from_json(about["traits"])
        self.room = read_whole(about["room"], 1, 2 * MOST_CANDIDATES)
        sizes = self.features.n_features, self.traits.n_features
        self.sides = [read_whole(side, -sizes[1], sizes[0]) for side in about["sides"]]
        if sorted(self.sides) != list(range(-sizes[1], sizes[0])):
            raise DataError("columns that do not exist")
        self.items = OrderedDict()
        for label, record, rounds, earned in about["items"]:
            self.items[check_label(label_from_json(label))] = [
                read_whole(record, 0, N_RECORDS),
                read_whole(rounds, 0, 2**62),
                read_number(earned, -MOST_EARNED, MOST_EARNED),
            ]
        if len({record for record, _, _ in self.items.values()}) < len(about["items"]):
            raise DataError("two candidates with one record")

    def _read_model(self, about: Any, arrays: Arrays) -> PairModel:
        if (about["sides"], about["n_actions"]) != (self.sides, self.room):
            raise DataError("a model of another size")
        return PairModel.from_parts(self.explorer, self.seed, self.reward_range, about, arrays)

    def number(self, label: Label) -> int:
        """Refused: candidates are known by what they are offered with."""
        raise InputError(
            f"action {shown(label)} comes without its features; this agent has no actions of its "
            "own: give them with the question, act(context, actions={label: features})"
        )

    # -- deciding ---------------------------------------------------------------------------

    def read(self, actions: Any) -> Offered:
        """The candidates that a caller offers; changes nothing that matters."""
        return self.familiar.read(actions)

    def ready(self, context: Context, *, some: bool = False) -> None:
        """Nothing is to be done before a round is learned: learning it takes in what is new."""

    def ready_for(self, context: Context, offered: Offered) -> None:
        """Be ready for a context and candidates like these; refuse other kinds than before."""
        if self.familiar.is_latest(offered) and not self._is_behind:
            self.features.expect(context)
            return
        self.check_kinds([offered])  # before anything is fixed by the first ones
        self.features.expect(context)
        self.traits.expect(offered.features[0])
        room = self._room_for(offered)
        if room != self.room or self._is_behind:
            self.room = room
            self._grow()

    def check_kinds(self, offers: Sequence[Offered]) -> None:
        """Refuse candidates of several kinds, or of another one than before; changes nothing."""
        if not offers:
            return
        widths = {
            0 if isinstance(features, dict) else len(features)
            for offered in {id(offered): offered for offered in offers}.values()
            for features in offered.features
        }
        if len(widths) > 1:
            raise InputError(
                "the candidates' features are of several kinds; expected all dicts, or rows of as "
                "many numbers each"
            )
        width = widths.pop()
        if self.traits.width not in (None, width):
            kinds = [f"{n} numbers" if n else "a dict" for n in (width, self.traits.width or 0)]
            raise InputError(
                f"the candidates' features are {kinds[0]}; expected {kinds[1]}, as the first ones "
                "were: make a new agent for others"
            )

    def _room_for(self, offered: Offered) -> int:
        room = self.room
        while room < len(offered.labels):
            room *= 2
        return room

    @property
    def _is_behind(self) -> bool:
        """Whether there are features that the models have not taken in."""
        return len(self.sides) != self.features.n_features + self.traits.n_features

    def rows(self, context: Context, offered: Offered) -> tuple[Floats, Floats, Ints]:
        """The context's row, the candidates' rows, and where their records are."""
        row, records = np.zeros(self.features.n_features), self._records_of(offered)
        self._is_known = False
        if self.traits.width is None or self.features.width is None:  # all are alike
            return row, np.zeros((len(records), self.traits.n_features)), records
        self._is_known = self.features.encode(context, row)
        return row, self.familiar.rows(offered), records

    def _records_of(self, offered: Offered) -> Ints:
        """Where the records of candidates are, -1 for none."""
        if self._found is None or self._found[0] is not offered:
            items, none = self.items, _NONE
            records = [items.get(label, none)[0] for label in offered.labels]
            self._found = offered, np.array(records, np.int64)
        return self._found[1]

    def choose(
        self, context: Context, offered: Offered, draw: int
    ) -> tuple[list[float], int, Encoded | None]:
        """The probabilities of candidates, the number of the one drawn, and its pair.

        The pair is for `learn_one`, if nothing in it is new.
        """
        pmf = np.empty(len(offered.labels))
        row, table, records = self.rows(context, offered)
        action = self.model.decide(row, table, records, draw, self.floor, pmf)
        if not (self._is_known and self.familiar.is_known(offered.labels[action])):
            return pmf.tolist(), action, None
        revision = self.features.revision + self.traits.revision
        return pmf.tolist(), action, (revision, self.model.pair.copy())

    def probabilities(self, context: Context, offered: Offered) -> list[float]:
        """The probabilities of candidates; changes nothing that matters."""
        self.check_kinds([offered])
        if self.features.width is not None:
            self.features.expect(context)
        pmf, room, model = np.empty(len(offered.labels)), self._room_for(offered), self.model
        if room > self.room:
            model = PairModel.from_parts(
                self.explorer, self.seed, self.reward_range, *model.to_parts()
            )
            model.take_in(self.sides, self.columns, self._filled, room)
        model.look(*self.rows(context, offered), self.floor, pmf)
        return pmf.tolist()

    # -- learning ---------------------------------------------------------------------------

    def learn(self, lessons: Sequence[Lesson]) -> int:
        """Learn rounds in order."""
        for lesson in lessons:
            self.learn_one(lesson)
        return len(lessons)

    def check_lessons(self, lessons: Sequence[Lesson]) -> None:
        """Refuse records of other kinds than those before, or of several; changes nothing."""
        given: list[Context] = [
            {} if lesson.features is None else lesson.features for lesson in lessons
        ]
        if given:
            self.check_kinds([offer((), tuple(given))])
        if self.features.width is not None:
            for lesson in lessons:
                self.features.expect(lesson.context)

    def learn_one(self, lesson: Lesson, encoded: Encoded | None = None) -> bool:
        """Learn a round, of which `encoded` is what `choose` made; True."""
        given: Context = {} if lesson.features is None else lesson.features
        features, traits = self.features, self.traits
        if encoded is not None and encoded[0] == features.revision + traits.revision:
            features.n_learned += 1
            traits.n_learned += 1
            row = encoded[1]
        else:
            features.learn(lesson.context)
            traits.learn(given)
            if self._is_behind:
                self._grow()
            n_here, n_there = features.n_features, traits.n_features
            both = np.zeros(n_here + n_there)  # what is the candidate's from the end backwards
            features.encode(lesson.context, both[:n_here])
            traits.encode(given, both[: -n_there - 1 : -1])
            row = both[self.model.sides]
        item = self._item(lesson.action)
        self._action[0], self._reward[0] = item[0], lesson.reward
        self._probability[0] = lesson.probability
        self._teach(row[None], self._action, self._reward, self._probability)
        item[1] += 1
        item[2] += lesson.reward
        self.total_reward += lesson.reward
        self.n_learned += 1
        self.version += 1
        return True

    def _item(self, label: Label) -> list[Any]:
        """A candidate's record, which may take the place of the one that is oldest."""
        item = self.items.get(label)
        if item is None:
            self._found = None
            if not self._free:
                _, (record, _, _) = self.items.popitem(last=False)
                for model in self.models:
                    model.forget(record)  # type: ignore[attr-defined]
                self._free.append(record)
            item = self.items[label] = [self._free.pop(), 0, 0.0]
        self.items.move_to_end(label)
        return item

    # -- growing ----------------------------------------------------------------------------

    def _grow(self) -> None:
        """Have the models take in features that are new, on either side, and room."""
        n_here = sum(side >= 0 for side in self.sides)
        here, there = self.features.n_features, self.traits.n_features
        self.sides += range(n_here, here)
        self.sides += [-1 - i for i in range(len(self.sides) - here, there)]
        for model in self.models:
            model.take_in(self.sides, self.columns, self._filled, self.room)  # type: ignore[attr-defined]
        self.familiar.clear()

    @property
    def _filled(self) -> list[float]:
        """What pairs of the past had in every column."""
        here, there = self.features.filled or [0.0], self.traits.filled or [0.0]
        return [here[side] if side >= 0 else there[-1 - side] for side in self.sides]

    def add(self, labels: Sequence[Label]) -> None:
        """Refused."""
        raise InputError(
            "this agent has no actions of its own; offer new ones with act(context, actions={...})"
        )

    def remove(self, labels: Sequence[Label]) -> None:
        """Let the records of candidates go."""
        self._found = None
        for label in labels:
            if label in self.items:
                record, _, _ = self.items.pop(label)
                for model in self.models:
                    model.forget(record)  # type: ignore[attr-defined]
                self._free.append(record)
                self.version += 1

    def summary(self) -> list[tuple[Label, int, float]]:
        """Every candidate of which there is a record, with its rounds and their average reward."""
        return [(label, n, total / max(n, 1)) for label, (_, n, total) in self.items.items()]

    def diagnostics(self, explorer: Explorer) -> dict[str, Any]:
        """Counts, and what the explorer says of itself."""
        return {
            **super().diagnostics(explorer),
            "candidate features": self.traits.n_features,
            "records": len(self.items),
        }


def _numbers(features: FeatureMap) -> set[int]:
    """The features that are numbers."""
    if features.width:
        return set(range(features.width))
    return {column.number for column in features.columns.values()}
