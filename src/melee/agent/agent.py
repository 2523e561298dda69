"""`Agent`: a contextual bandit to put into production."""

import hashlib
import os
import time
import warnings
import zlib
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from melee.agent import storing
from melee.agent.decision import Decision
from melee.agent.locks import guard_against_forks, new_lock
from melee.agent.model import Model
from melee.agent.pending import Lesson, Pending, Waiting
from melee.agent.show import as_html, as_text
from melee.arrays import Floats, Ints
from melee.checks import check_probability, check_reward, unit_number
from melee.contexts import Context, read_context, read_contexts
from melee.errors import InputError, MeleeWarning, whole_number
from melee.explorers import Explorer, parse
from melee.features import FeatureMap
from melee.history import Round
from melee.history.jsonl import append_lines
from melee.labels import Label, check_label
from melee.rng import check_seed

DEFAULT_FLOOR = 0.02
"""Uniform exploration on top of the explorer's own: enough for a log to be evaluated."""
MAX_MODEL_BYTES = 2**31
"""The size of a model beyond which no action is added to it."""
_PARAMETERS = (
    "actions",
    "explorer",
    "seed",
    "floor",
    "half_life",
    "timeout",
    "default_reward",
    "max_pending",
    "max_features",
    "log",
)
_UNSET: Any = object()


class Agent:
    """Decides, learns from rewards whenever they come, and can be saved at any time.

    Contexts are dicts of numbers, texts, booleans, lists of texts and None (missing); rows of
    pandas or polars tables; or rows of numbers. Names and levels may appear at any time. Rewards
    are in [0, 1]. Safe to share between threads.

    Not for batches of labelled data (see `simulate`), and not for rewards that depend on earlier
    decisions, as in games: each decision is one of its own.

    Parameters
    ----------
    actions
        The labels of the actions, any hashable values. They may change: `add_actions`,
        `remove_actions`, and `act(context, actions=[...])` for one decision.
    explorer
        How to explore: an explorer or its SPEC text. The default, `melee`, learned it beforehand
        and needs no tuning.
    seed
        Of all randomness: with the state, the seed and a decision's id, its action is determined.
    floor
        Probability of a uniform action on top of what the explorer does: every open action has at
        least floor / n_actions. It is what makes a log worth evaluating; with 0 most explorers
        leave actions without any probability.
    half_life
        For a drifting world: each time this many rounds have been learned, the older half of what
        the agent knows is dropped. By default nothing is.
    timeout, default_reward
        Seconds that a decision waits for its reward, and the reward that is learned when they
        are over; by default decisions wait as long as there is room, and teach nothing when they
        are given up.
    max_pending
        Decisions that may wait; beyond, the oldest is given up as if its time were over. As many
        ids of the past are remembered.
    max_features
        The cap on the features of named contexts; beyond, new names and levels share some.
    log
        A file to which every round is appended as a line of JSON when its reward is known.

    Examples
    --------
    >>> agent = Agent(actions=["sports", "politics", "science"])
    >>> decision = agent.act({"age": 31, "device": "phone", "hour": 20})
    >>> decision.action in agent.actions_, decision.probability > 0.0
    (True, True)
    >>> agent.learn(decision.id, reward=1.0)
    True
    """

    def __init__(
        self,
        actions: Sequence[Hashable],
        explorer: str | Explorer = "melee",
        *,
        seed: int = 0,
        floor: float = DEFAULT_FLOOR,
        half_life: int | None = None,
        timeout: float | None = None,
        default_reward: float | None = None,
        max_pending: int = 100_000,
        max_features: int = 200,
        log: str | os.PathLike[str] | None = None,
    ) -> None:
        self.actions = actions
        self.explorer = explorer
        self.seed = seed
        self.floor = floor
        self.half_life = half_life
        self.timeout = timeout
        self.default_reward = default_reward
        self.max_pending = max_pending
        self.max_features = max_features
        self.log = log
        self._begin()

    def _begin(self) -> None:
        """Check the parameters, and start from nothing."""
        self._read_parameters()
        self._labels: tuple[Label, ...] = tuple(_check_labels(self.actions, 1))
        self._index = {label: i for i, label in enumerate(self._labels)}
        self._plays = [0] * len(self._labels)
        self._rewards = [0.0] * len(self._labels)
        self._features = FeatureMap(self.max_features)
        self._pending = Pending(self.max_pending)
        self._n_acted = self._n_learned = self._n_given_up = self._version = 0
        self._warned_full = self._all_known = False
        self._young: Model | None = None
        self._model = self._new_model(0)
        self._make_room()

    def _read_parameters(self) -> None:
        """Check what does not change, and derive from it."""
        check_seed(self.seed)
        floor = unit_number(self.floor)
        if floor is None:
            raise InputError(f"floor is {self.floor!r}; expected a number in [0, 1], such as 0.02")
        if floor == 0.0:
            warnings.warn(
                "floor is 0: actions that the explorer does not choose have probability 0, and a "
                "log of such decisions cannot be used to evaluate other policies",
                MeleeWarning,
                stacklevel=4,
            )
        for name in ("half_life", "max_pending", "max_features"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1)
        if self.timeout is not None and not (_is_number(self.timeout) and self.timeout > 0):
            raise InputError(f"timeout is {self.timeout!r}; expected a number of seconds, above 0")
        if self.default_reward is not None:
            check_reward(self.default_reward)
        self._chosen = parse(self.explorer)
        self._inside, self._floor = self._chosen.with_floor(floor)
        digest = hashlib.sha256(self._chosen.identity.encode()).hexdigest()
        self._policy = f"{self._chosen.short_spec}@{digest[:12]}"
        self._lineage = hashlib.blake2b(f"lineage {self.seed}".encode(), digest_size=3).hexdigest()
        self._log_path = None if self.log is None else Path(self.log)
        self._lock = new_lock()
        guard_against_forks(self)

    # -- deciding ---------------------------------------------------------------------------

    def act(
        self,
        context: Any,
        *,
        actions: Iterable[Hashable] | None = None,
        id: str | None = None,
    ) -> Decision:
        """Choose an action for a context.

        Parameters
        ----------
        context
            A dict, a row of a table, or numbers.
        actions
            The actions that are open this time; by default all are.
        id
            A name for the decision that is not taken yet; by default one is made.
        """
        read = read_context(context)
        with self._lock:
            chosen = None if actions is None else self._find(actions)
            if id is not None:
                self._check_id(id)
            self._features.expect(read)
            if chosen is not None:
                self._close_some()
            now = time.time()
            if self.timeout is not None:
                self._give_up(now)
            self._fit()
            name = self._name(id)
            self._one_draw[0] = zlib.crc32(name.encode("utf-8", "surrogatepass"))
            rows = self._encoded(read)
            if chosen is None:
                labels, pmfs, drawn = self._labels, self._one_pmf, self._one_action
                self._model.act(rows, self._one_draw, self._floor, pmfs, drawn)
            else:
                labels, pmfs, drawn = self._play(rows, self._one_draw, chosen)
            pmf, encoded = pmfs.tolist()[0], None
            if type(read) is dict and self._all_known:  # learning need not look at it again
                encoded = (self._features.revision, rows.copy())
            return self._decided(read, name, labels, pmf, drawn.item(), now, encoded)

    def act_many(
        self,
        contexts: Any,
        *,
        actions: Iterable[Hashable] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Choose an action for each of many contexts: the same decisions as one by one, faster.

        Parameters
        ----------
        contexts
            A table, a two-dimensional array, or a list of contexts.
        actions
            The actions that are open for all of them.
        ids
            Names for the decisions.
        """
        read = read_contexts(contexts)
        if ids is not None and len(ids) != len(read):
            raise InputError(f"{len(ids)} ids for {len(read)} contexts; expected one for each")
        with self._lock:
            chosen = None if actions is None else self._find(actions)
            for id in ids or ():
                self._check_id(id)
            if ids is not None and len(set(ids)) != len(ids):
                raise InputError("an id occurs twice; expected ids that differ")
            self._check_alike(read)
            if not len(read):
                return []
            self._features.expect(read[0])
            if chosen is not None:
                self._close_some()
            now = time.time()
            self._give_up(now)
            self._fit()
            rows = np.empty((len(read), self._features.n_features))
            if isinstance(read, np.ndarray):
                rows[:] = read
            else:
                for row, context in zip(rows, read, strict=True):
                    self._features.encode(context, row)
            names = [self._name(None if ids is None else ids[i]) for i in range(len(read))]
            draws = np.array(
                [zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in names], np.int64
            )
            labels, pmfs, drawn = self._play(rows, draws, chosen)
            return [
                self._decided(context, name, labels, pmf, action, now)
                for context, name, pmf, action in zip(
                    read, names, pmfs.tolist(), drawn.tolist(), strict=True
                )
            ]

    def pmf(self, context: Any, *, actions: Iterable[Hashable] | None = None) -> dict[Label, float]:
        """The probability of every open action in a context; decides and changes nothing."""
        read = read_context(context)
        with self._lock:
            chosen = None if actions is None else self._find(actions)
            if self._features.width is None:  # nothing is known: all contexts are alike
                rows = np.zeros((1, self._model.n_features))
            else:
                self._features.expect(read)
                self._fit()
                rows = np.empty((1, self._features.n_features))
                self._features.encode(read, rows[0])
            labels, pmfs, _ = self._play(rows, np.zeros(1, np.int64), chosen)
            return dict(zip(labels, pmfs[0].tolist(), strict=True))

    def _play(
        self, rows: Floats, draws: Ints, chosen: Ints | None
    ) -> tuple[tuple[Label, ...], Floats, Ints]:
        """The open actions, their probabilities in every row, and the number of the one drawn."""
        n, drawn = len(rows), np.empty(len(rows), np.int64)
        if chosen is None:
            pmfs = np.empty((n, len(self._labels)))
            self._model.act(rows, draws, self._floor, pmfs, drawn)
            return self._labels, pmfs, drawn
        pmfs = np.empty((n, len(chosen)))
        self._model.act_among(rows, draws, self._floor, pmfs, drawn, chosen)
        return tuple(self._labels[i] for i in chosen), pmfs, drawn

    def _decided(
        self,
        context: Context,
        id: str,
        labels: tuple[Label, ...],
        pmf: list[float],
        action: int,
        now: float,
        encoded: tuple[int, Floats] | None = None,
    ) -> Decision:
        """The decision, which waits for its reward from now on."""
        decision = Decision(
            id, labels[action], pmf[action], self._policy, self._version, labels, tuple(pmf)
        )
        logged = decision.pmf if self._log_path is not None else None
        _, label, probability, _, version, _, _ = decision
        waiting = self._pending.waiting
        waiting[id] = Waiting(context, label, probability, now, version, logged, encoded)
        if len(waiting) > self.max_pending:
            self._warn_full()
            self._give_up(now)
        return decision

    def _check_id(self, id: Any) -> None:
        if id is None:
            return
        if not isinstance(id, str) or not 0 < len(id) <= 200:
            raise InputError(f"id is {id!r:.60}; expected a text of 1 to 200 characters")
        if self._pending.knows(id):
            raise InputError(f"id {id!r} is taken by an earlier decision; expected a new one")

    def _name(self, id: str | None) -> str:
        """The id of the next decision."""
        self._n_acted += 1
        if id is not None:
            return id
        made = f"{self._lineage}-{self._n_acted}"
        while self._pending.knows(made):
            self._n_acted += 1
            made = f"{self._lineage}-{self._n_acted}"
        return made

    def _find(self, actions: Iterable[Hashable]) -> Ints:
        labels = _check_labels(actions, 1)
        return np.array([self._number(label) for label in labels], np.int64)

    def _number(self, label: Label) -> int:
        if label not in self._index:
            some = ", ".join(repr(known) for known in self._labels[:10])
            more = ", ..." if len(self._labels) > 10 else ""
            raise InputError(
                f"action {label!r:.60} does not exist: there are {len(self._labels)} actions, "
                f"{some}{more}; add it with add_actions"
            )
        return self._index[label]

    def _check_alike(self, contexts: Sequence[Context]) -> None:
        """Refuse contexts of several kinds before anything is done."""
        if isinstance(contexts, np.ndarray):
            return
        widths = {0 if isinstance(one, dict) else len(one) for one in contexts}
        if len(widths) > 1:
            raise InputError(
                "the contexts are of several kinds; expected all dicts, or rows of "
                "as many numbers each"
            )

    # -- learning ---------------------------------------------------------------------------

    @overload
    def learn(self, subject: str | Decision, reward: float, /) -> bool: ...

    @overload
    def learn(self, subject: str | Decision, /, *, reward: float) -> bool: ...

    @overload
    def learn(
        self, subject: Any, /, action: Hashable, reward: float, probability: float
    ) -> bool: ...

    def learn(
        self,
        subject: Any,
        /,
        action: Any = _UNSET,
        reward: Any = _UNSET,
        probability: Any = _UNSET,
    ) -> bool:
        """Learn a decision's reward: `learn(id, reward)`.

        Rewards may come in any order, at any time. A reward that came before is not learned
        again; another one for the same decision is refused.

        A decision that was not made here, or that is forgotten, is learned from its full record:
        `learn(context, action, reward, probability)`.

        Returns
        -------
        bool
            Whether anything was learned: False for a repeated reward, and for that of an action
            that was removed since.
        """
        if isinstance(subject, str | Decision):
            if reward is _UNSET and probability is _UNSET:
                action, reward = _UNSET, action
            if reward is _UNSET or action is not _UNSET or probability is not _UNSET:
                raise InputError(
                    "a decision's id takes a reward and nothing else: learn(id, reward); a full "
                    "record begins with its context"
                )
            return self._learn_decision(subject, reward)
        if any(one is _UNSET for one in (action, reward, probability)):
            raise InputError(
                "a full record needs a context, an action, a reward and the probability that the "
                "action had: learn(context, action, reward, probability)"
            )
        context = read_context(subject)
        lesson = Lesson(context, action, check_reward(reward), check_probability(probability))
        with self._lock:
            self._number(check_label(action))
            self._features.expect(context)
            self._give_up(time.time())
            self._write([lesson], [None])
            return self._absorb_one(*lesson)

    def learn_many(
        self,
        subjects: Any,
        /,
        actions: Any = None,
        rewards: Any = None,
        probabilities: Any = None,
    ) -> int:
        """Learn many rounds: the same as one by one, faster. All are checked before any is learned.

        Parameters
        ----------
        subjects
            Ids of decisions, or decisions, with `rewards`; or contexts, with all the others.
        actions, rewards, probabilities
            One of each per round.

        Returns
        -------
        int
            How many rounds were learned.
        """
        if actions is not None and rewards is None and probabilities is None:
            actions, rewards = None, actions
        if rewards is None:
            raise InputError("there are no rewards; expected one for each decision or context")
        numbers = [check_reward(one) for one in _listed(rewards, "rewards")]
        if actions is None and probabilities is None:
            return self._learn_decisions(_listed(subjects, "ids"), numbers)
        if actions is None or probabilities is None:
            raise InputError(
                "full records need contexts, actions, rewards and probabilities: "
                "learn_many(contexts, actions, rewards, probabilities)"
            )
        contexts = read_contexts(subjects)
        labels = [check_label(one) for one in _listed(actions, "actions")]
        chances = [check_probability(one) for one in _listed(probabilities, "probabilities")]
        _check_lengths(contexts, actions=labels, rewards=numbers, probabilities=chances)
        rounds = zip(contexts, labels, numbers, chances, strict=True)
        return self._learn_lessons([Lesson(*one) for one in rounds], [None] * len(labels))

    def learn_rounds(self, rounds: Iterable[Round]) -> int:
        """Learn full records, such as a history: a warm start from the log of any policy.

        A round whose id has been learned before is left out.

        Returns
        -------
        int
            How many rounds were learned.
        """
        given = list(rounds)
        lessons = [
            Lesson(
                read_context(one.context),
                check_label(one.action),
                check_reward(one.reward),
                check_probability(one.probability),
            )
            for one in given
        ]
        return self._learn_lessons(lessons, [one.id for one in given])

    def _learn_lessons(self, lessons: list[Lesson], ids: Sequence[str | None]) -> int:
        with self._lock:
            for action in {one.action for one in lessons}:
                self._number(action)
            self._check_alike([one.context for one in lessons])
            if lessons:
                self._features.expect(lessons[0].context)
            self._give_up(time.time())
            fresh: dict[str | int, int] = {}  # by id, or by number where there is none
            for i, id in enumerate(ids):
                if id is None:
                    fresh[i] = i
                elif not self._pending.knows(id):
                    fresh.setdefault(id, i)
            chosen = [lessons[i] for i in fresh.values()]
            names = [ids[i] for i in fresh.values()]
            self._write(chosen, names)
            self._absorb(chosen)
            for name, one in zip(names, chosen, strict=True):
                if name is not None:
                    self._pending.finish(name, one.reward)
            return len(chosen)

    def _learn_decision(self, subject: str | Decision, reward: Any) -> bool:
        number = check_reward(reward)
        id = subject.id if isinstance(subject, Decision) else subject
        with self._lock:
            if self.timeout is not None:
                self._give_up(time.time())
            one = self._pending.waiting.get(id)
            if one is None:
                return not self._pending.repeats(id, number)
            context, label, probability = one.context, one.action, one.probability
            if self._log_path is not None:
                self._write([Lesson(context, label, number, probability)], [id])
            learned = self._absorb_one(context, label, number, probability, one.encoded)
            self._pending.finish(id, number)
            return learned

    def _learn_decisions(self, subjects: list[Any], rewards: list[float]) -> int:
        _check_lengths(subjects, rewards=rewards)
        new: dict[str, float] = {}
        with self._lock:
            self._give_up(time.time())
            for subject, reward in zip(subjects, rewards, strict=True):
                id = subject.id if isinstance(subject, Decision) else subject
                if not isinstance(id, str):
                    raise InputError(f"id is {id!r:.60}; expected the text of a decision's id")
                if id in new and new[id] != reward:
                    raise InputError(f"decision {id!r} has two rewards here; send the final one")
                if id not in new and not self._pending.repeats(id, reward):
                    new[id] = reward
            return self._finish(list(new.items()))

    def _finish(self, rewards: Sequence[tuple[str, float]]) -> int:
        """Learn the rewards of waiting decisions."""
        waiting = self._pending.waiting
        lessons = []
        for id, reward in rewards:
            one = waiting[id]
            lessons.append(Lesson(one.context, one.action, reward, one.probability))
        self._write(lessons, [id for id, _ in rewards])
        learned = self._absorb(lessons)
        for id, reward in rewards:
            self._pending.finish(id, reward)
        return learned

    def give_up(self, now: float | None = None) -> int:
        """Give up decisions whose time is over (`timeout`); act and learn do so by themselves.

        Parameters
        ----------
        now
            Seconds since the epoch; by default the time it is.

        Returns
        -------
        int
            How many were given up.
        """
        with self._lock:
            return self._give_up(time.time() if now is None else now)

    def _give_up(self, now: float) -> int:
        if self.timeout is None and len(self._pending.waiting) <= self.max_pending:
            return 0
        n = 0
        while (id := self._pending.too_old(now, self.timeout)) is not None:
            if self.default_reward is None:
                self._pending.finish(id, None)
            else:
                self._finish([(id, float(self.default_reward))])
            n += 1
        self._n_given_up += n
        return n

    def _absorb_one(
        self,
        context: Context,
        label: Label,
        reward: float,
        probability: float,
        encoded: tuple[int, Floats] | None = None,
    ) -> bool:
        """Have the models learn a round; False if its action is gone.

        What `_absorb` does for one round, with less ado.
        """
        number = self._index.get(label)
        if number is None:
            return False
        if encoded is not None and encoded[0] == self._features.revision:
            rows = encoded[1]
            self._features.n_learned += 1
        else:
            self._features.learn(context)
            self._fit()
            rows = self._encoded(context)
        self._one_action[0] = number
        self._one_reward[0] = reward
        self._one_probability[0] = probability
        round_ = (rows, self._one_action, self._one_reward, self._one_probability)
        self._model.learn(*round_)
        self._model.total_reward += reward
        self._plays[number] += 1
        self._rewards[number] += reward
        self._n_learned += 1
        self._version += 1
        if self.half_life is not None:
            if self._young is not None:
                self._young.learn(*round_)
                self._young.total_reward += reward
            if self._until_turn() == self.half_life:
                self._turn()
        return True

    def _absorb(self, lessons: Sequence[Lesson]) -> int:
        """Have the models learn full records, in order; returns how many of their actions exist.

        They go through the kernels together, but for where a context brings new features or a
        generation ends.
        """
        known = [one for one in lessons if one.action in self._index]
        self._fit()
        features, first = self._features, 0
        rows = np.empty((len(known), features.n_features))
        actions = np.array([self._index[one.action] for one in known], np.int64)
        rewards = np.array([one.reward for one in known])
        probabilities = np.array([one.probability for one in known])

        def learn_until(end: int) -> None:
            some = slice(first, end)
            self._learn_rows(rows[some], actions[some], rewards[some], probabilities[some])

        for i, one in enumerate(known):
            features.learn(one.context)
            if features.n_features != rows.shape[1]:
                learn_until(i)
                first = i
                self._fit()
                rows = np.empty((len(known), features.n_features))
            features.encode(one.context, rows[i])
            if i - first + 1 == self._until_turn():
                learn_until(i + 1)
                first = i + 1
                self._turn()
        learn_until(len(known))
        return len(known)

    def _learn_rows(
        self, rows: Floats, actions: Ints, rewards: Floats, probabilities: Floats
    ) -> None:
        earned = rewards.tolist()
        for model in self._models():
            model.learn(rows, actions, rewards, probabilities)
            for reward in earned:  # one by one: rounds learned singly give the same sum
                model.total_reward += reward
        for number, reward in zip(actions.tolist(), earned, strict=True):
            self._plays[number] += 1
            self._rewards[number] += reward
        self._n_learned += len(rows)
        self._version += len(rows)

    def _write(self, lessons: Sequence[Lesson], ids: Sequence[str | None]) -> None:
        """Append rounds to the log, before they are learned: a failure leaves both as they were."""
        if self._log_path is None or not lessons:
            return
        rounds = []
        for lesson, id in zip(lessons, ids, strict=True):
            waiting = None if id is None else self._pending.waiting.get(id)
            if waiting is None:
                rounds.append(Round(*lesson, id))
            else:
                version = str(waiting.version)
                rounds.append(Round(*lesson, id, waiting.time, waiting.pmf, self._policy, version))
        append_lines(self._log_path, rounds)

    # -- models -----------------------------------------------------------------------------

    def _models(self) -> list[Model]:
        return [self._model] if self._young is None else [self._model, self._young]

    def _close_some(self) -> None:
        """Have the models know that not all actions are open in every round."""
        if not self._model.some_closed:
            for model in self._models():
                model.close_some()

    def _new_model(self, generation: int) -> Model:
        n = self._features.n_features
        return Model(self._inside, self.seed, generation, n, len(self._labels))

    def _until_turn(self) -> int:
        """How many rounds may be learned before a generation ends."""
        if self.half_life is None:
            return 2**62
        return self.half_life - self._models()[-1].n_learned % self.half_life

    def _turn(self) -> None:
        """Start a young model; the one before takes over, being one half-life old."""
        if self._young is not None:
            self._model = self._young
        self._young = self._new_model(self._model.generation + 1)
        if self._model.some_closed:
            self._young.close_some()

    def _fit(self) -> None:
        """Have the models take in features that are new."""
        n = self._features.n_features
        if n != self._model.n_features:
            same = np.arange(len(self._labels))
            for model in self._models():
                model.resize(n, self._features.filled, same, len(self._labels))
            self._make_room()

    def _encoded(self, context: Context) -> Floats:
        """A context as the only row of a matrix."""
        if isinstance(context, dict):
            self._all_known = self._features.encode(context, self._row)
            return self._rows
        return context.reshape(1, -1)

    def _make_room(self) -> None:
        """Memory for one row, so that single calls need not ask for it."""
        self._rows = np.zeros((1, self._features.n_features))
        self._row = self._rows[0]
        self._one_pmf = np.zeros((1, len(self._labels)))
        self._one_draw = np.zeros(1, np.int64)
        self._one_action = np.zeros(1, np.int64)
        self._one_reward = np.zeros(1)
        self._one_probability = np.zeros(1)

    def add_actions(self, actions: Iterable[Hashable]) -> None:
        """Take in new actions; they are tried where they might be better than the known ones."""
        labels = _check_labels(actions, 0)
        with self._lock:
            known = [label for label in labels if label in self._index]
            if known:
                raise InputError(f"action {known[0]!r:.60} exists already; add only new ones")
            if not labels:
                return
            n = len(self._labels)
            size = self._model.state.block.nbytes / n * (n + len(labels))
            if size > MAX_MODEL_BYTES:
                raise InputError(
                    f"{n + len(labels)} actions with {self._features.n_features} features would "
                    f"take {size / 2**30:.1f} GiB; use fewer, or an agent with all of them from "
                    "the start, whose model is then a smaller one"
                )
            self._change_actions((*self._labels, *labels), np.arange(n))

    def remove_actions(self, actions: Iterable[Hashable]) -> None:
        """Let actions go, and what was learned about them; their late rewards teach nothing."""
        labels = _check_labels(actions, 0)
        with self._lock:
            gone = {self._number(label) for label in labels}
            if len(gone) == len(self._labels):
                raise InputError("no action would be left; expected at least one to stay")
            if not gone:
                return
            stays = [i for i in range(len(self._labels)) if i not in gone]
            kept = np.full(len(self._labels), -1)
            kept[stays] = np.arange(len(stays))
            self._change_actions(tuple(self._labels[i] for i in stays), kept)

    def _change_actions(self, labels: tuple[Label, ...], kept: Ints) -> None:
        self._fit()
        for model in self._models():
            n = self._features.n_features
            model.resize(n, self._features.filled, kept, len(labels))
        plays = dict(zip(self._labels, self._plays, strict=True))
        rewards = dict(zip(self._labels, self._rewards, strict=True))
        self._plays = [plays.get(label, 0) for label in labels]
        self._rewards = [rewards.get(label, 0.0) for label in labels]
        self._labels = labels
        self._index = {label: i for i, label in enumerate(labels)}
        self._version += 1
        self._make_room()

    def _warn_full(self) -> None:
        if not self._warned_full:
            self._warned_full = True
            warnings.warn(
                f"more than {self.max_pending} decisions wait for their rewards: the oldest are "
                "given up. Set a timeout, report rewards earlier, or raise max_pending",
                MeleeWarning,
                stacklevel=4,
            )

    # -- keeping ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which is there whole or not at all."""
        storing.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The agent that was saved; it goes on as if it had never stopped."""
        return storing.load(cls, path)

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        with self._lock:
            return storing.to_bytes(self)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """What `load` reads."""
        return storing.from_bytes(cls, content, "the content")

    @property
    def fingerprint(self) -> str:
        """A checksum of everything that the agent knows: equal agents have equal ones."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def __reduce__(self) -> Any:
        return type(self).from_bytes, (self.to_bytes(),)

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self).from_bytes(self.to_bytes())

    # -- looking ----------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as in scikit-learn."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **params: Any) -> Self:
        """Change parameters of an agent that has not decided or learned anything yet."""
        for name in params:
            if name not in _PARAMETERS:
                raise InputError(f"unknown parameter '{name}'; known: {', '.join(_PARAMETERS)}")
        with self._lock:
            if self._n_acted or self._n_learned:
                raise InputError(
                    "the agent has decided or learned already; make a new one, as by "
                    "sklearn.base.clone(agent).set_params(...)"
                )
            for name, value in params.items():
                setattr(self, name, value)
            self._begin()
        return self

    @property
    def actions_(self) -> list[Label]:
        """The actions there are now."""
        return list(self._labels)

    @property
    def policy_(self) -> str:
        """The explorer, and the first letters of its checksum."""
        return self._policy

    @property
    def n_learned_(self) -> int:
        """How many rounds it has learned."""
        return self._n_learned

    @property
    def n_pending_(self) -> int:
        """How many decisions wait for their reward."""
        return len(self._pending)

    @property
    def feature_names_(self) -> list[str]:
        """What the numbers of a row stand for."""
        return list(self._features.names)

    def diagnostics(self) -> dict[str, float]:
        """What one may want to watch: counts, and what the explorer says of itself."""
        with self._lock:
            return {
                "acted": self._n_acted,
                "learned": self._n_learned,
                "pending": len(self._pending),
                "given up": self._n_given_up,
                "features": self._features.n_features,
                "average reward": self._model.average_reward,
                **self._chosen.diagnostics(self._model.state),
            }

    def summary(self) -> list[tuple[Label, int, float]]:
        """Every action with the rounds learned about it and their average reward."""
        with self._lock:
            averages = [r / max(n, 1) for n, r in zip(self._plays, self._rewards, strict=True)]
            return list(zip(self._labels, self._plays, averages, strict=True))

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _check_labels(actions: Any, least: int) -> list[Label]:
    if isinstance(actions, str | bytes | dict) or not isinstance(actions, Iterable):
        raise InputError(f"actions are {actions!r:.60}; expected a list of labels")
    labels = [check_label(label) for label in actions]
    if len(labels) < least:
        raise InputError("there are no actions; expected at least one")
    if len(set(labels)) != len(labels):
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise InputError(f"action {twice!r:.60} is given twice; give each once")
    return labels


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18


def _listed(given: Any, name: str) -> list[Any]:
    if isinstance(given, str | bytes | dict) or not isinstance(given, Iterable):
        raise InputError(f"{name} are {given!r:.60}; expected a list, one for each round")
    return list(given)


def _check_lengths(first: Sequence[Any], **others: Sequence[Any]) -> None:
    for name, other in others.items():
        if len(other) != len(first):
            raise InputError(f"{len(other)} {name} for {len(first)} rounds; expected one for each")
