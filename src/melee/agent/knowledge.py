"""What an agent knows: its actions, its features, and the models that were learned of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from melee.agent.arguments import is_in, read_labels
from melee.agent.file import Arrays, under
from melee.agent.model import Model
from melee.arrays import Floats, Ints
from melee.checks import RewardRange, read_number, read_whole
from melee.compiled import Program
from melee.contexts import Context
from melee.errors import DataError, InputError, shown
from melee.explorers import Explorer
from melee.features import FeatureMap
from melee.labels import Label, label_from_json, label_to_json

MAX_MODEL_BYTES = 2**31
"""The size of a model beyond which no action is added to it."""

MOST_EARNED = 1e120
"""More than all rewards together can be."""

CHUNK = 10_000
"""Rounds whose rows are in memory at a time."""

_MODELS = ("model", "young")
"""The names of the models in a file."""

Labels: TypeAlias = tuple[Label, ...]
Encoded: TypeAlias = tuple[int, Floats]
"""A context's row with nothing new in it, and the revision of the map that it is by."""


class Lesson(NamedTuple):
    """What a model learns from: a round, checked."""

    context: Context
    action: Label
    reward: float
    probability: float
    features: Context | None = None  # of the action, where actions have any


class Knowledge:
    """Decides by what it has learned; changes only by learning, and by changes of the actions.

    With a half-life there are two models. A young one starts each time that many rounds have been
    learned; it takes over when it is one half-life old, and another one starts. So decisions are
    by the last one to two half-lives of rounds.

    Parameters
    ----------
    labels
        Of the actions.
    explorer, floor
        How to explore, and the uniform exploration on top of it.
    seed, half_life, max_features, reward_range
        As of the agent.
    """

    def __init__(
        self,
        labels: Labels,
        explorer: Explorer,
        floor: float,
        seed: int,
        half_life: int | None,
        max_features: int,
        reward_range: RewardRange,
    ) -> None:
        self.reward_range = reward_range
        self.explorer, self.floor, self.seed, self.half_life = explorer, floor, seed, half_life
        self.features = FeatureMap(max_features)
        self.n_learned = self.version = 0
        self.total_reward = 0.0
        self.set_labels(labels, [0] * len(labels), [0.0] * len(labels))
        self.young: Model | None = None
        self.model = self._new_model(0)
        self._derive()

    def to_parts(self) -> tuple[dict[str, Any], Arrays]:
        """Everything in it, copied: what JSON can hold, and arrays by name."""
        about: dict[str, Any] = {
            "labels": [label_to_json(label) for label in self.labels],
            "plays": self.plays.copy(),
            "rewards": self.rewards.copy(),
            "n_learned": self.n_learned,
            "version": self.version,
            "total_reward": self.total_reward,
            "features": self.features.to_json(),
        }
        return about, self._models_to_parts(about)

    def _models_to_parts(self, about: dict[str, Any]) -> Arrays:
        """The arrays of the models by name; what JSON can hold of them goes to `about`."""
        arrays: Arrays = {}
        for name, model in zip(_MODELS, self.models, strict=False):
            about[name], parts = model.to_parts()
            arrays |= {f"{name}.{path}": array for path, array in parts.items()}
        return arrays

    @classmethod
    def from_parts(
        cls,
        about: Any,
        arrays: Arrays,
        explorer: Explorer,
        floor: float,
        seed: int,
        half_life: int | None,
        reward_range: RewardRange,
    ) -> Self:
        """What was written, of an agent with these parameters."""
        known = cls.__new__(cls)
        known.reward_range = reward_range
        known.explorer, known.floor, known.seed, known.half_life = explorer, floor, seed, half_life
        known.features = FeatureMap.from_json(about["features"])
        known.n_learned = read_whole(about["n_learned"], 0, 2**62)
        known.version = read_whole(about["version"], 0, 2**62)
        known.total_reward = read_number(about["total_reward"], -MOST_EARNED, MOST_EARNED)
        known._read_actions(about)
        models = [name for name in _MODELS if name == "model" or name in about]
        read = [known._read_model(about[name], under(name, arrays)) for name in models]
        known.model, known.young = read[0], read[1] if len(read) > 1 else None
        known._derive()
        return known

    def _read_actions(self, about: Any) -> None:
        """The actions that were written, and what is counted of each."""
        labels = tuple(read_labels([label_from_json(label) for label in about["labels"]], 1))
        plays = [read_whole(n, 0, 2**62) for n in about["plays"]]
        rewards = [read_number(r, -MOST_EARNED, MOST_EARNED) for r in about["rewards"]]
        if {len(plays), len(rewards)} != {len(labels)}:
            raise DataError("actions whose counts are missing")
        self.set_labels(labels, plays, rewards)

    def _read_model(self, about: Any, arrays: Arrays) -> Model:
        sizes = self.features.n_features, len(self.labels)
        if (about["n_features"], about["n_actions"]) != sizes:
            raise DataError("a model of another size")
        return Model.from_parts(self.explorer, self.seed, self.reward_range, about, arrays)

    def _derive(self) -> None:
        """What follows from the rest."""
        self.make_room()

    def set_labels(self, labels: Labels, plays: list[int], rewards: list[float]) -> None:
        """The actions there are, how often each was learned of, and what it earned in all."""
        self.labels, self.plays, self.rewards = labels, plays, rewards
        self.index = {label: i for i, label in enumerate(labels)}

    def make_room(self) -> None:
        """Memory for one round, so that single rounds need not ask for it."""
        self._rows = np.zeros((1, self.features.n_features))
        self._row = self._rows[0]
        self._pmf = np.zeros((1, len(self.labels)))
        self._draw, self._action = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._reward, self._probability = np.zeros(1), np.zeros(1)
        self.features.limit = self.model.most_features(MAX_MODEL_BYTES // 4)

    @property
    def average_reward(self) -> float:
        """Of all rounds learned."""
        return self.total_reward / max(self.n_learned, 1)

    @property
    def models(self) -> list[Model]:
        """The one that decides, and the young one."""
        return [self.model] if self.young is None else [self.model, self.young]

    @property
    def programs(self) -> list[Program]:
        """What decides and learns: interpreted at first, then machine code."""
        return [program for model in self.models for program in model.programs]

    def all_programs(self) -> list[Program]:
        """The same, and what will be needed when only some actions are open."""
        return [program for model in self.models for program in model.all_programs()]

    def number(self, label: Label) -> int:
        """The number of an action."""
        if not is_in(label, self.index):
            some = ", ".join(f"{shown(known)}" for known in self.labels[:10])
            more = ", ..." if len(self.labels) > 10 else ""
            raise InputError(
                f"action {shown(label)} does not exist: there are {len(self.labels)} actions, "
                f"{some}{more}; add it with add_actions"
            )
        return self.index[label]

    def labels_of(self, chosen: Ints | None) -> Labels:
        """Those of the open actions, None for all."""
        if chosen is None:
            return self.labels
        known = self.labels
        return tuple([known[i] for i in chosen.tolist()])

    # -- deciding ---------------------------------------------------------------------------

    def ready(self, context: Context, *, some: bool = False) -> None:
        """Be ready for contexts like this one, perhaps with only some actions open."""
        self.features.expect(context)
        if some and not self.model.some_closed:
            for model in self.models:
                model.close_some()
        if self.features.n_features != self.model.n_features:
            self._take_in_features()

    def encode_many(self, contexts: Sequence[Context]) -> Floats:
        """Contexts as rows."""
        if isinstance(contexts, np.ndarray):
            return contexts
        rows = np.empty((len(contexts), self.features.n_features))
        for row, context in zip(rows, contexts, strict=True):
            self.features.encode(context, row)
        return rows

    def decide(
        self, context: Context, draw: int, chosen: Ints | None
    ) -> tuple[Labels, list[float], int, Encoded | None]:
        """The open actions, their probabilities, the number of the one drawn, and the row.

        What `decide_many` does, with less ado; the row is for `learn_one`, if nothing in it is new.
        """
        if isinstance(context, dict):
            rows, encoded = self._rows, None
            if self.features.encode(context, self._row):
                encoded = (self.features.revision, rows.copy())
        else:
            rows = context.reshape(1, -1)
            encoded = (self.features.revision, rows)
        self._draw[0] = draw
        labels, pmf = self.labels, self._pmf
        if chosen is not None:
            labels, pmf = self.labels_of(chosen), pmf[:, : len(chosen)]
        self.model.act(rows, self._draw, self.floor, pmf, self._action, chosen)
        return labels, pmf.tolist()[0], self._action.item(), encoded

    def decide_many(
        self, rows: Floats, draws: Ints, chosen: Ints | None
    ) -> tuple[Labels, list[list[float]], list[int]]:
        """The open actions, and for every row their probabilities and the number of one drawn."""
        labels = self.labels_of(chosen)
        pmfs, drawn = np.empty((len(rows), len(labels))), np.empty(len(rows), np.int64)
        self.model.act(rows, draws, self.floor, pmfs, drawn, chosen)
        return labels, pmfs.tolist(), drawn.tolist()

    def pmf(self, context: Context, chosen: Ints | None) -> dict[Label, float]:
        """The probability of every open action; changes nothing."""
        if self.features.width is None:  # nothing is known: all contexts are alike
            rows = np.zeros((1, self.model.n_features))
        else:
            self.features.expect(context)
            rows = np.empty((1, self.model.n_features))
            self.features.encode(context, rows[0])
        labels = self.labels_of(chosen)
        pmfs = np.empty((1, len(labels)))
        self.model.peek(rows, self.floor, pmfs, chosen)
        return dict(zip(labels, pmfs[0].tolist(), strict=True))

    # -- learning ---------------------------------------------------------------------------

    def learn_one(self, lesson: Lesson, encoded: Encoded | None = None) -> bool:
        """Learn a round; False if its action is gone. What `learn` does, with less ado.

        `encoded` is what deciding made of it.
        """
        number = self.index.get(lesson.action)
        if number is None:
            return False
        features = self.features
        if encoded is not None and encoded[0] == features.revision:
            rows = encoded[1]
            features.n_learned += 1
        else:
            features.learn(lesson.context)
            if features.n_features != self.model.n_features:
                self._take_in_features()
            rows = self._rows
            features.encode(lesson.context, self._row)
        self._action[0] = number
        self._reward[0] = lesson.reward
        self._probability[0] = lesson.probability
        self._teach(rows, self._action, self._reward, self._probability)
        self._count(number, lesson.reward)
        return True

    def learn(self, lessons: Sequence[Lesson]) -> int:
        """Learn rounds in order; returns how many of their actions exist."""
        known = [lesson for lesson in lessons if lesson.action in self.index]
        for start in range(0, len(known), CHUNK):
            self._learn_chunk(known[start : start + CHUNK])
        return len(known)

    def _learn_chunk(self, known: Sequence[Lesson]) -> None:
        """Learn rounds together, but for where one brings new features or a generation ends."""
        if self.features.n_features != self.model.n_features:
            self._take_in_features()
        features, first = self.features, 0
        rows = np.empty((len(known), features.n_features))
        actions = np.array([self.index[lesson.action] for lesson in known], np.int64)
        rewards = np.array([lesson.reward for lesson in known])
        probabilities = np.array([lesson.probability for lesson in known])

        def learn_until(end: int) -> int:
            some = slice(first, end)
            if end > first:
                self._teach(rows[some], actions[some], rewards[some], probabilities[some])
            return end

        for i, lesson in enumerate(known):
            features.learn(lesson.context)
            if features.n_features != rows.shape[1]:
                first = learn_until(i)
                self._take_in_features()
                rows = np.empty((len(known), features.n_features))
            features.encode(lesson.context, rows[i])
            self._count(int(actions[i]), lesson.reward)
            if i - first + 1 == self._rounds_until_turn():
                first = learn_until(i + 1)
        learn_until(len(known))

    def _teach(self, rows: Floats, actions: Ints, rewards: Floats, probabilities: Floats) -> None:
        """Have the models learn rounds, of which only the last may end a generation."""
        self.model.learn(rows, actions, rewards, probabilities)
        if self.young is not None:
            self.young.learn(rows, actions, rewards, probabilities)
        if self.half_life is not None and self._rounds_until_turn() == self.half_life:
            self._turn()

    def _count(self, number: int, reward: float) -> None:
        self.plays[number] += 1
        self.rewards[number] += reward
        self.total_reward += reward
        self.n_learned += 1
        self.version += 1

    def _rounds_until_turn(self) -> int:
        """How many rounds may be learned before a generation ends."""
        if self.half_life is None:
            return 2**62
        return self.half_life - self.models[-1].n_learned % self.half_life

    def _turn(self) -> None:
        """Start a young model; the one before takes over, being one half-life old."""
        if self.young is not None:
            self.model = self.young
        self.young = self._new_model(self.model.generation + 1)
        if self.model.some_closed:
            self.young.close_some()

    def _new_model(self, generation: int) -> Model:
        sizes = self.features.n_features, len(self.labels)
        return Model(self.explorer, self.seed, generation, *sizes, self.reward_range)

    # -- growing ----------------------------------------------------------------------------

    def _take_in_features(self) -> None:
        self._resize(np.arange(len(self.labels)), len(self.labels))
        self.make_room()

    def _resize(self, kept: Ints, n_actions: int) -> None:
        """Have the models take in the features, and actions that moved."""
        for model in self.models:
            sizes = self.features.n_features, self.features.filled
            model.resize(*sizes, kept, n_actions, self.average_reward)

    def add(self, labels: Sequence[Label]) -> None:
        """Take in new actions."""
        known = [label for label in labels if is_in(label, self.index)]
        if known:
            raise InputError(f"action {shown(known[0])} exists already; add only new ones")
        n = len(self.labels)
        size = self.model.state.block.nbytes / n * (n + len(labels))
        if size > MAX_MODEL_BYTES:
            raise InputError(
                f"{n + len(labels)} actions with {self.features.n_features} features would take "
                f"{size / 2**30:.1f} GiB; use fewer, or an agent with all of them from the start, "
                "whose model is then a smaller one"
            )
        if labels:
            self._change((*self.labels, *labels), np.arange(n))

    def remove(self, labels: Sequence[Label]) -> None:
        """Let actions go, and what was learned about them."""
        gone = {self.number(label) for label in labels}
        if len(gone) == len(self.labels):
            raise InputError("no action would be left; expected at least one to stay")
        if gone:
            stays = [i for i in range(len(self.labels)) if i not in gone]
            kept = np.full(len(self.labels), -1)
            kept[stays] = np.arange(len(stays))
            self._change(tuple(self.labels[i] for i in stays), kept)

    def _change(self, labels: Labels, kept: Ints) -> None:
        self._resize(kept, len(labels))
        plays = dict(zip(self.labels, self.plays, strict=True))
        rewards = dict(zip(self.labels, self.rewards, strict=True))
        self.set_labels(
            labels,
            [plays.get(label, 0) for label in labels],
            [rewards.get(label, 0.0) for label in labels],
        )
        self.version += 1
        self.make_room()

    def summary(self) -> list[tuple[Label, int, float]]:
        """Every action with the rounds learned about it and their average reward."""
        averages = [r / max(n, 1) for n, r in zip(self.plays, self.rewards, strict=True)]
        return list(zip(self.labels, self.plays, averages, strict=True))

    def diagnostics(self, explorer: Explorer) -> dict[str, Any]:
        """Counts, and what the explorer says of itself."""
        n_changes = self.model.n_changes
        return {
            "learned": self.n_learned,
            "features": self.features.n_features,
            "average reward": self.average_reward,
            **({} if n_changes is None else {"changes noticed": n_changes}),
            **explorer.diagnostics(self.model.state),
        }
