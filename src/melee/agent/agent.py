"""`Agent`: a contextual bandit to put into production."""

import hashlib
import os
import time
import warnings
import zlib
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Self, overload

import numpy as np

from melee.agent import folding, storing
from melee.agent.arguments import (
    check_alike,
    check_lengths,
    check_seconds,
    read_labels,
    read_list,
    read_path,
)
from melee.agent.catalogue import Catalogue, Offered
from melee.agent.decision import Decision, Ranking
from melee.agent.explaining import (
    Question,
    answer,
    answer_offered,
    note,
    note_offered,
    recall,
    recall_offered,
)
from melee.agent.explanation import Explanation
from melee.agent.file import Arrays, under, unpack
from melee.agent.ids import Ids, check_new, check_text, is_id, read_new
from melee.agent.keeping import Keeper, explain_past, keep
from melee.agent.knowledge import Encoded, Knowledge, Labels, Lesson
from melee.agent.locks import guard_against_forks, new_lock
from melee.agent.pending import Pending, Waiting, check_same
from melee.agent.show import as_html, as_text
from melee.arrays import Ints
from melee.checks import (
    RewardRange,
    check_probability,
    check_reward,
    check_reward_range,
    read_text,
    unit_number,
)
from melee.compiled import Program
from melee.contexts import Context, read_context, read_contexts, read_features
from melee.errors import DataError, InputError, MeleeWarning, shown, whole_number
from melee.explorers import Explorer, parse
from melee.history import Log, Round, check_stands_for, repetitions
from melee.journal import Journal
from melee.labels import Label, check_label, label_from_json, label_to_json
from melee.rng import check_seed

DEFAULT_FLOOR = 0.02
"""Uniform exploration on top of the explorer's own: enough for a log to be evaluated."""
_PARAMETERS = (
    "actions",
    "explorer",
    "seed",
    "floor",
    "half_life",
    "timeout",
    "default_reward",
    "reward_range",
    "max_pending",
    "max_features",
    "log",
    "journal",
)
_PLAIN = tuple(
    name for name in _PARAMETERS if name not in ("actions", "explorer", "log", "journal")
)
"""Parameters that are numbers, or pairs of them."""
_NUMBERS = tuple(name for name in _PLAIN if name != "reward_range")
_RECORD = ("action", "reward", "probability")
"""What a full record has beside its context."""
_new: Any = tuple.__new__


class Agent:
    """Decides, learns from rewards whenever they come, and can be saved at any time.

    Contexts are dicts of numbers, texts, booleans, lists of texts and None (missing); rows of
    pandas or polars tables; or rows of numbers. Names and levels may appear at any time. Rewards
    are any numbers, in any unit: clicks, revenue, seconds saved. Safe to share between threads.

    Not for batches of labelled data (see `simulate`), and not for rewards that depend on earlier
    decisions, as in games: each decision is one of its own.

    Parameters
    ----------
    actions
        The labels of the actions, any hashable values. They may change: `add_actions`,
        `remove_actions`, and `act(context, actions=[...])` for one decision. Left out, actions are
        candidates that come with each question and have features of their own.
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
        For a drifting world: a fresh model starts each time this many rounds have been learned, and
        takes over after as many more. So decisions are by the last one to two half-lives of
        rounds. By default nothing is forgotten.
    timeout, default_reward
        Seconds that a decision waits for its reward, and the reward that is learned when they
        are over, or when the decision is given up for want of room; only a timeout can have one.
        By default decisions wait as long as there is room, and teach nothing when they are given
        up.
    reward_range
        The least and the greatest reward there can be, if you know them. By default their range is
        found on the way; decisions do not depend on the unit, and an outlier is cut.
    max_pending
        Decisions that may wait; beyond, the oldest is given up as if its time were over. As many
        ids of the past are remembered.
    max_features
        The cap on the features of named contexts; beyond, new names and levels share some.
    log
        A file to which every round is appended as a line of JSON when its reward is known (see
        `melee.history.Log`).
    journal
        A directory, or the address of a PostgreSQL database, in which everything that the agent
        does is on disk before it is answered (see `melee.journal.Journal`). If an agent is there
        already, this one goes on as that one.

    Examples
    --------
    >>> agent = Agent(actions=["sports", "politics", "science"])
    >>> decision = agent.act({"age": 31, "device": "phone", "hour": 20})
    >>> decision.action in agent.actions_, decision.probability > 0.0
    (True, True)
    >>> agent.learn(decision.id, reward=1.0)
    True

    Actions that have features, such as articles, come with the question:

    >>> agent = Agent()
    >>> decision = agent.act({"age": 31}, actions={
    ...     "a17": {"topic": "sport", "hours old": 3}, "a18": {"topic": "film", "hours old": 40}})
    >>> agent.learn(decision.id, reward=1.0)
    True
    """

    def __init__(
        self,
        actions: Sequence[Hashable] | None = None,
        explorer: str | Explorer = "melee",
        *,
        seed: int = 0,
        floor: float = DEFAULT_FLOOR,
        half_life: int | None = None,
        timeout: float | None = None,
        default_reward: float | None = None,
        reward_range: RewardRange = None,
        max_pending: int = 100_000,
        max_features: int = 200,
        log: str | os.PathLike[str] | None = None,
        journal: str | os.PathLike[str] | Journal | None = None,
    ) -> None:
        self.actions = actions
        self.explorer = explorer
        self.seed = seed
        self.floor = floor
        self.half_life = half_life
        self.timeout = timeout
        self.default_reward = default_reward
        self.reward_range = reward_range
        self.max_pending = max_pending
        self.max_features = max_features
        self.log = log
        self.journal = journal
        self._begin()
        if journal is not None:
            self._keep(journal)

    def _begin(self) -> None:
        """Check the parameters, and start from nothing."""
        self._read_parameters()
        own = (self._inside, self._floor, self.seed, self.half_life, self.max_features, self._range)
        self._first_labels: Labels | None = None
        if self.actions is None:
            self._knowledge: Knowledge = Catalogue(*own)
        else:
            self._first_labels = tuple(self._read_labels(self.actions, 1))
            self._knowledge = Knowledge(self._first_labels, *own)
        self._pending = Pending(self.max_pending)
        self._ids = Ids(self.seed)

    def _keep(self, given: Any) -> None:
        """Go on as the agent of a journal does, or begin a new one."""
        if self._first_labels is None:
            raise InputError(
                "journal is given, and no actions: an agent whose candidates come with the "
                "question keeps no journal; give the actions, or leave journal out and use log"
            )
        for label in self._first_labels:
            label_to_json(label)
        journal = given if isinstance(given, Journal) else Journal(given)
        try:
            self._hold(keep(self, journal))
        except BaseException:
            if journal is not given:
                journal.close()
            raise

    def _hold(self, keeper: Keeper | None) -> None:
        """Have a journal kept, or none; what calls that change something hold follows from it."""
        self._keeper = keeper
        self._guard: Any = self._lock if keeper is None else keeper

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
            if name != "half_life" or self.half_life is not None:
                whole_number(name, getattr(self, name), 1)
        if self.timeout is not None:
            check_seconds("timeout", self.timeout)
        self._range = check_reward_range(self.reward_range)
        if self.default_reward is not None:
            check_reward(self.default_reward, self._range)
            if self.timeout is None:
                raise InputError(
                    f"default_reward is {self.default_reward} without a timeout: hardly any "
                    "decision would get it; give the timeout, in seconds, after which no reward "
                    "means that one"
                )
        self._chosen = parse(self.explorer)
        self._inside, self._floor = self._chosen.with_floor(floor)
        digest = hashlib.sha256(self._chosen.identity.encode()).hexdigest()
        self._policy = f"{self._chosen.short_spec}@{digest[:12]}"
        self._log = None if self.log is None else Log(read_path("log", self.log))
        self._lock = new_lock()
        self._hold(None)
        guard_against_forks(self)

    # -- deciding ---------------------------------------------------------------------------

    @overload
    def act(
        self, context: Any, *, actions: Any = None, id: str | None = None, top: None = None
    ) -> Decision: ...

    @overload
    def act(
        self, context: Any, *, actions: Any = None, id: str | None = None, top: int
    ) -> Ranking: ...

    def act(
        self,
        context: Any,
        *,
        actions: Any = None,
        id: str | None = None,
        top: int | None = None,
    ) -> Decision | Ranking:
        """Choose an action for a context.

        Parameters
        ----------
        context
            A dict, a row of a table, or numbers.
        actions
            The actions that are open this time; by default all are. Of an agent without actions of
            its own they are candidates: a dict of labels and their features, or a table whose
            index, or column `id`, has the labels. Features are as contexts are; what a candidate
            does not have is missing.
        id
            A name for the decision that is not taken yet; by default one is made.
        top
            Choose so many, best first: a `Ranking`, whose places are decisions with rewards of
            their own.
        """
        if top is not None:
            return self._rank(context, actions, id, top)
        if isinstance(self._knowledge, Catalogue):
            return self._choose(context, actions, id, self._knowledge)
        read = read_context(context)
        with self._guard:
            chosen = None if actions is None else self._find(actions)
            if id is not None:
                check_new(id, self._pending)
                if self._keeper is not None:
                    self._keeper.check_new(id)
            self._knowledge.ready(read, chosen)
            now = time.time()
            if self.timeout is not None:
                self._give_up(now)
            names = self._ids if self._keeper is None else self._keeper.ids
            name = names.name(id, read, chosen, self._pending)
            draw = zlib.crc32(name.encode())
            labels, pmf, action, encoded = self._knowledge.decide(read, draw, chosen)
            decision = self._decided(read, name, labels, pmf, action, now, encoded)
            if len(self._pending.waiting) > self.max_pending:
                self._keep_room(now)
            return decision

    def _choose(self, context: Any, actions: Any, id: str | None, known: Catalogue) -> Decision:
        """Choose one of the candidates that come with the question."""
        read = read_context(context)
        with self._lock:
            offered = self._offered(actions, known)
            if id is not None:
                check_new(id, self._pending)
            known.ready_for(read, offered)
            now = time.time()
            self._give_up(now)
            return self._decide_among(read, offered, id, known, now)

    def _offered(self, actions: Any, known: Catalogue) -> Offered:
        """The candidates of a question, which a log has to be able to hold if there is one."""
        if actions is None:
            raise InputError(
                "there are no candidates; this agent has no actions of its own: give them with the "
                "question, act(context, actions={label: features, ...})"
            )
        offered = known.read(actions)
        if self._log is not None:
            for label in offered.labels:
                label_to_json(label)
        return offered

    def _decide_among(
        self, context: Context, offered: Offered, id: str | None, known: Catalogue, now: float
    ) -> Decision:
        labels = offered.labels
        name = self._ids.name(id, context, offered.content, self._pending)
        pmf, action = known.choose(context, offered, zlib.crc32(name.encode()))
        decision = self._decided(context, name, labels, pmf, action, now, None, offered)
        if len(self._pending.waiting) > self.max_pending:
            self._keep_room(now)
        return decision

    def _rank(self, context: Any, actions: Any, id: str | None, top: int) -> Ranking:
        """Choose several, each among what is left."""
        top = whole_number("top", top, 1)
        with self._lock:
            known = self._knowledge
            if isinstance(known, Catalogue):
                offered = self._offered(actions, known)
                left = dict(zip(offered.labels, offered.features, strict=True))
            else:
                left = dict.fromkeys(known.labels if actions is None else read_labels(actions, 1))
                for label in left:
                    known.number(label)
            if top > len(left):
                raise InputError(
                    f"top is {top} and there are {len(left)} actions to choose from; expected at "
                    "most as many"
                )
            if top > self.max_pending:
                raise InputError(f"top is {top}, and only {self.max_pending} decisions may wait")
            read = read_context(context)
            if id is None:
                made = self._ids if self._keeper is None else self._keeper.ids
                id = made.name(None, read, None, self._pending)
            names = [f"{id}/{place + 1}" for place in range(top)]
            for name in names:
                check_new(name, self._pending)
            places = []
            for name in names:
                given: Any = left if isinstance(known, Catalogue) else list(left)
                places.append(self.act(read, actions=given, id=name))
                del left[places[-1].action]
            return Ranking(id, tuple(places))

    def act_many(
        self,
        contexts: Any,
        *,
        actions: Any = None,
        ids: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Choose an action for each of many contexts: the same decisions as one by one, faster.

        Parameters
        ----------
        contexts
            A table, a two-dimensional array, or a list of contexts.
        actions
            The actions that are open for all of them. Of an agent without actions of its own the
            candidates: the same for all, as `act` takes them, or a list with those of each.
        ids
            Names for the decisions.
        """
        if isinstance(self._knowledge, Catalogue):
            return self._choose_many(contexts, actions, ids, self._knowledge)
        read = read_contexts(contexts)
        with self._guard:
            chosen = None if actions is None else self._find(actions)
            given = [None] * len(read) if ids is None else read_new(ids, len(read), self._pending)
            if ids is not None and self._keeper is not None:
                for id in ids:
                    self._keeper.check_new(id)
            check_alike(read)
            if len(read) > self.max_pending:
                raise InputError(
                    f"{len(read)} contexts, and only {self.max_pending} decisions may wait for "
                    "their rewards; raise max_pending, or decide about fewer at a time"
                )
            now = time.time()
            self._give_up(now)
            if len(read) == 0:
                return []
            self._knowledge.ready(read[0], chosen)
            rows = self._knowledge.encode_many(read)
            made = self._ids if self._keeper is None else self._keeper.ids
            names = [
                made.name(id, one, chosen, self._pending)
                for id, one in zip(given, read, strict=True)
            ]
            draws = np.array([zlib.crc32(name.encode()) for name in names], np.int64)
            labels, pmfs, drawn = self._knowledge.decide_many(rows, draws, chosen)
            decisions = []
            for context, name, pmf, action in zip(read, names, pmfs, drawn, strict=True):
                own = context if isinstance(context, dict) else context.copy()
                decisions.append(self._decided(own, name, labels, pmf, action, now))
            self._keep_room(now)
            return decisions

    def _choose_many(
        self, contexts: Any, actions: Any, ids: Sequence[str] | None, known: Catalogue
    ) -> list[Decision]:
        read = read_contexts(contexts)
        with self._lock:
            given = [None] * len(read) if ids is None else read_new(ids, len(read), self._pending)
            check_alike(read)
            if len(read) > self.max_pending:
                raise InputError(
                    f"{len(read)} contexts, and only {self.max_pending} decisions may wait for "
                    "their rewards; raise max_pending, or decide about fewer at a time"
                )
            each = isinstance(actions, list | tuple) and not all(
                isinstance(one, str | int | float) for one in actions
            )
            if each and len(actions) != len(read):
                raise InputError(
                    f"{len(actions)} lists of candidates for {len(read)} contexts; expected one "
                    "for each, or one dict or table for all"
                )
            if each:
                offers = [self._offered(one, known) for one in actions]
            else:
                offers = [self._offered(actions, known)] * len(read) if len(read) else []
            now = time.time()
            self._give_up(now)
            decisions = []
            for context, offered in zip(read, offers, strict=True):
                known.ready_for(context, offered)
            for context, offered, id in zip(read, offers, given, strict=True):
                own = context if isinstance(context, dict) else context.copy()
                decisions.append(self._decide_among(own, offered, id, known, now))
            return decisions

    def pmf(self, context: Any, *, actions: Any = None) -> dict[Label, float]:
        """The probability of every open action in a context; decides and changes nothing."""
        read = read_context(context)
        with self._lock:
            if isinstance(self._knowledge, Catalogue):
                offered = self._offered(actions, self._knowledge)
                chances = self._knowledge.probabilities(read, offered)
                return dict(zip(offered.labels, chances, strict=True))
            chosen = None if actions is None else self._find(actions)
            return self._knowledge.pmf(read, chosen)

    def explain(self, subject: Any, /, *, actions: Any = None) -> Explanation:
        """Why a decision was made, or would be in a context; decides and changes nothing.

        For every open action: its probability, the reward that is predicted and how sure that is,
        what exploring adds to it, and the names of the context that matter most to it.

        Parameters
        ----------
        subject
            A decision that waits for its reward, or its id; or a context. What is predicted is what
            the agent would predict now, even of an earlier decision. With a journal, also a
            decision that waits no longer: then all is as the agent was when it made it.
        actions
            The actions that are open in a context; by default all are. Of a decision only where the
            agent has no log and the id alone is given. Of an agent without actions of its own the
            candidates, of a decision too unless there is a log.

        Examples
        --------
        >>> agent = Agent(actions=["sports", "politics"], reward_range=(0.0, 1.0))
        >>> decision = agent.act({"device": "phone"})
        >>> why = agent.explain(decision)
        >>> [(one.action, one.probability) for one in why.actions]
        [('sports', 0.5), ('politics', 0.5)]
        """
        context = None if isinstance(subject, str | Decision) else read_context(subject)
        if isinstance(self._knowledge, Catalogue):
            return self._explain_offered(subject, context, actions, self._knowledge)
        labels = None if actions is None else tuple(read_labels(actions, 1))
        if context is None and labels is None and (past := self._explain_past(subject)):
            return past
        with self._lock:
            if context is None:
                asked = recall(subject, labels, self._pending, self._knowledge.version)
            else:
                asked = Question(context, labels)
            noted = note(asked, self._knowledge)
        return answer(noted, self._policy)

    def _explain_past(self, subject: str | Decision) -> Explanation | None:
        """Why a decision that waits no longer was made, if there is a journal that knows."""
        id = subject.id if isinstance(subject, Decision) else subject
        if self._keeper is None or id in self._pending.waiting:
            return None
        return explain_past(self._keeper.journal, id)

    def _explain_offered(
        self, subject: Any, context: Context | None, actions: Any, known: Catalogue
    ) -> Explanation:
        """The same among candidates."""
        with self._lock:
            if context is None:
                given = None if actions is None else self._offered(actions, known)
                asked, offered = recall_offered(subject, given, self._pending, known.version)
            else:
                offered = self._offered(actions, known)
                asked = Question(context, offered.labels)
            noted, rows = note_offered(asked, known, offered)
        return answer_offered(noted, rows, self._policy)

    def _decided(
        self,
        context: Context,
        id: str,
        labels: Labels,
        pmf: list[float],
        action: int,
        now: float,
        encoded: Encoded | None = None,
        offered: Offered | None = None,
    ) -> Decision:
        """The decision, which waits for its reward from now on."""
        label, probability, version = labels[action], pmf[action], self._knowledge.version
        # As Decision(...) and Waiting(...), in half the time.
        decision: Decision = _new(
            Decision, (id, label, probability, self._policy, version, labels, tuple(pmf))
        )
        features = None if offered is None else offered.features[action]
        kept = (context, label, probability, now, version, None, None, encoded, features, None)
        one: Waiting = _new(Waiting, kept)
        if self._log is not None:
            others = None if offered is None else offered.features
            one = one._replace(actions=labels, probabilities=np.array(pmf), others=others)
        self._pending.waiting[id] = one
        if self._keeper is not None:
            self._keeper.decided(id, one, labels, pmf, action)
        return decision

    def _keep_room(self, now: float) -> None:
        """Give up the oldest decisions if there are too many."""
        if len(self._pending.waiting) > self.max_pending:
            self._give_up(now)
            self._warn_full()

    def _find(self, actions: Iterable[Hashable]) -> Ints:
        """The numbers of the actions that are open."""
        labels = read_labels(actions, 1)
        numbers = [self._knowledge.number(label) for label in labels]
        return np.array(sorted(numbers), np.int64)  # in what order they came does not matter

    # -- learning ---------------------------------------------------------------------------

    @overload
    def learn(self, subject: str | Decision, reward: float, /) -> bool: ...

    @overload
    def learn(self, subject: str | Decision, /, *, reward: float) -> bool: ...

    @overload
    def learn(
        self,
        subject: Any,
        /,
        action: Hashable,
        reward: float,
        probability: float,
        *,
        features: Any = None,
    ) -> bool: ...

    def learn(self, subject: Any, /, *values: Any, **named: Any) -> bool:
        """Learn a decision's reward: `learn(id, reward)`.

        Rewards may come in any order, at any time. A reward that came before is not learned
        again; another one for the same decision is refused.

        A decision that was not made here, or that is forgotten, is learned from its full record:
        `learn(context, action, reward, probability)`; of an agent without actions of its own with
        the features of the action, `features={...}`.

        Returns
        -------
        bool
            Whether anything was learned: False for a repeated reward, and for that of an action
            that was removed since.
        """
        n_given = len(values) + len(named)
        if isinstance(subject, str | Decision):
            if n_given != 1 or not named.keys() <= {"reward"}:
                raise InputError(
                    "a decision's id takes a reward and nothing else: learn(id, reward); a full "
                    "record begins with its context"
                )
            return self._learn_decision(subject, values[0] if values else named["reward"])
        features = self._read_features([named.pop("features", None)])[0]
        n_given = len(values) + len(named)
        record = {**dict(zip(_RECORD, values, strict=False)), **named}
        if n_given != len(_RECORD) or record.keys() != set(_RECORD):
            raise InputError(
                "a full record needs a context, an action, a reward and the probability that the "
                "action had: learn(context, action, reward, probability)"
            )
        action, reward, probability = (record[name] for name in _RECORD)
        context, label = read_context(subject), check_label(action)
        numbers = check_reward(reward, self._range), check_probability(probability)
        lesson = Lesson(context, label, *numbers, features)
        return self._learn_lessons([lesson], [None], write=True) == 1

    def _read_features(self, given: Sequence[Any]) -> list[Context | None]:
        """The features of actions in full records."""
        if not isinstance(self._knowledge, Catalogue):
            if any(one is not None for one in given):
                raise InputError(
                    "features are given, and the actions of this agent have none; leave them out, "
                    "or make an agent without actions, to which they come with the question"
                )
            return [None] * len(given)
        return [read_features(one, "an action") for one in given]

    def learn_many(
        self,
        subjects: Any,
        /,
        *values: Any,
        actions: Any = None,
        rewards: Any = None,
        probabilities: Any = None,
        features: Any = None,
    ) -> int:
        """Learn many rounds: the same as one by one, faster. All are checked before any is learned.

        Parameters
        ----------
        subjects
            Ids of decisions, or decisions, with `rewards`; or contexts, with all the others.
        values
            The rewards of decisions; or actions, rewards and probabilities, in this order.
        actions, rewards, probabilities
            The same by name, one of each per round.
        features
            Of the actions, in full records for an agent without actions of its own.

        Returns
        -------
        int
            How many rounds were learned.
        """
        named = (actions, rewards, probabilities)
        if len(values) == 1 and all(one is None for one in named):
            rewards = values[0]
        elif values:
            actions, rewards, probabilities = (*values, *named[len(values) :])[:3]
        if rewards is None:
            raise InputError("there are no rewards; expected one for each decision or context")
        numbers = [check_reward(one, self._range) for one in read_list(rewards, "rewards")]
        if actions is None and probabilities is None and features is None:
            return self._learn_decisions(read_list(subjects, "ids"), numbers)
        if actions is None or probabilities is None or len(values) > 3:
            raise InputError(
                "full records need contexts, actions, rewards and probabilities: "
                "learn_many(contexts, actions, rewards, probabilities)"
            )
        contexts = read_contexts(subjects)
        labels = [check_label(one) for one in read_list(actions, "actions")]
        chances = [check_probability(one) for one in read_list(probabilities, "probabilities")]
        known = [None] * len(labels) if features is None else read_list(features, "features")
        check_lengths(
            contexts, actions=labels, rewards=numbers, probabilities=chances, features=known
        )
        own = self._read_features(known)
        rounds = zip(contexts, labels, numbers, chances, own, strict=True)
        lessons = [Lesson(*one) for one in rounds]
        return self._learn_lessons(lessons, [None] * len(lessons), write=True)

    def learn_rounds(self, rounds: Iterable[Round]) -> int:
        """Learn full records, such as a history: a warm start from the log of any policy.

        A round whose id is known already is left out. They have a log, and are not written to
        this agent's. A round that stands for several, of which the others were dropped from the
        log, is learned so often: what was dropped was like it, so the agent ends up about where
        the whole log would have led it, at the whole log's cost, whatever its explorer.

        Returns
        -------
        int
            How many rounds were learned.
        """
        given = read_list(rounds, "rounds")
        for one in given:
            if not isinstance(one, Round):
                raise InputError(f"a round is {shown(one)}; expected rounds, as of a History")
            if one.id is not None and not is_id(one.id):
                raise InputError(f"a round's id is {shown(one.id)}; expected a text")
        lessons = [
            Lesson(
                read_context(one.context),
                check_label(one.action),
                check_reward(one.reward, self._range),
                check_probability(one.probability),
                None if one.features is None else one.features.get(one.action),
            )
            for one in given
        ]
        times = repetitions(check_stands_for(one.stands_for) for one in given)
        return self._learn_lessons(lessons, [one.id for one in given], write=False, times=times)

    def _learn_lessons(
        self,
        lessons: list[Lesson],
        ids: Sequence[str | None],
        *,
        write: bool,
        times: Sequence[int] | None = None,
    ) -> int:
        """Learn full records, each once or so many times, but for those whose id is known."""
        with self._guard:
            check_alike([one.context for one in lessons])
            if isinstance(self._knowledge, Catalogue):
                for one in lessons:
                    self._knowledge.check_lesson(one)
            else:
                for action in dict.fromkeys(one.action for one in lessons):
                    self._knowledge.number(action)
                if lessons:
                    self._knowledge.ready(lessons[0].context, None)
            self._give_up(time.time())
            fresh: dict[str | int, int] = {}  # by id, or by number where there is none
            for i, id in enumerate(ids):
                if id is None:
                    fresh[i] = i
                elif id not in self._pending.done:  # one that waits gets its reward
                    fresh.setdefault(id, i)
            chosen = [lessons[i] for i in fresh.values()]
            names = [ids[i] for i in fresh.values()]
            if write:
                self._write(chosen, names)
            often = [1 if times is None else times[i] for i in fresh.values()]
            if self._keeper is not None:
                self._keeper.learned(chosen, names, often)
            folding.learn(self, chosen, names, often)
            self._tell()
            return len(chosen)

    def _learn_decision(self, subject: str | Decision, reward: Any) -> bool:
        number = check_reward(reward, self._range)
        id = subject.id if isinstance(subject, Decision) else subject
        check_text(id)
        with self._guard:
            if self.timeout is not None:
                self._give_up(time.time())
            one = self._pending.waiting.get(id)
            if one is None:
                return not self._pending.repeats(id, number)
            if isinstance(subject, Decision):
                check_same(subject, one)
            lesson = (one.context, one.action, number, one.probability)
            if self._log is not None:
                self._write([Lesson(*lesson, one.features)], [id])
            if self._keeper is not None:
                self._keeper.rewarded({id: number})
            if isinstance(self._knowledge, Catalogue):
                learned = self._knowledge.learn([Lesson(*lesson, one.features)]) == 1
            else:
                learned = self._knowledge.learn_one(*lesson, one.encoded)
            self._pending.finish(id, number)
            if self._knowledge.features.notice is not None:
                self._tell()
            return learned

    def _learn_decisions(self, subjects: list[Any], rewards: list[float]) -> int:
        check_lengths(subjects, rewards=rewards)
        new: dict[str, float] = {}
        with self._guard:
            self._give_up(time.time())
            for subject, reward in zip(subjects, rewards, strict=True):
                id = subject.id if isinstance(subject, Decision) else subject
                check_text(id)
                if id in new and new[id] != reward:
                    raise InputError(f"decision {id!r} has two rewards here; send the final one")
                if id not in new and not self._pending.repeats(id, reward):
                    new[id] = reward
                    if isinstance(subject, Decision):
                        check_same(subject, self._pending.waiting[id])
            self._write_rewards(new)
            if self._keeper is not None:
                self._keeper.rewarded(new)
            learned = folding.finish(self, new)
            self._tell()
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
        if now is not None:
            check_seconds("now", now)
        with self._guard:
            return self._give_up(time.time() if now is None else float(now))

    def _give_up(self, now: float) -> int:
        over = self._pending.overdue(now, self.timeout)
        if over:
            if self.default_reward is not None:
                self._write_rewards(dict.fromkeys(over, float(self.default_reward)))
            if self._keeper is not None:
                full = len(self._pending.waiting) > self.max_pending
                self._keeper.gave_up(over, now, full=full)
            folding.give_up(self, over)
        return len(over)

    def _write_rewards(self, rewards: dict[str, float]) -> None:
        """Append the rounds of waiting decisions to the log."""
        if self._log is not None:
            waiting = self._pending.waiting
            some = [(waiting[id], reward) for id, reward in rewards.items()]
            lessons = [Lesson(one.context, one.action, r, one.probability) for one, r in some]
            self._write(lessons, list(rewards))

    def _write(self, lessons: Sequence[Lesson], ids: Sequence[str | None]) -> None:
        """Append rounds to the log, before they are learned: a failure leaves both as they were."""
        if self._log is None or not lessons:
            return
        rounds = []
        for lesson, id in zip(lessons, ids, strict=True):
            waiting = None if id is None else self._pending.waiting.get(id)
            about = lesson[:4]
            features = self._features_of(lesson, waiting)
            if waiting is None:
                rounds.append(Round(*about, id, features=features))
            else:
                pmf = None
                if waiting.actions is not None and waiting.probabilities is not None:
                    pmf = dict(zip(waiting.actions, waiting.probabilities.tolist(), strict=True))
                version = str(waiting.version)
                round_ = (*about, id, waiting.time, pmf, self._policy, version)
                rounds.append(Round(*round_, features=features))
        self._log.append(rounds)

    def _features_of(self, lesson: Lesson, waiting: Waiting | None) -> dict[Label, Context] | None:
        """The features of what could be chosen, as far as they are known."""
        if waiting is not None and waiting.others is not None and waiting.actions is not None:
            return dict(zip(waiting.actions, waiting.others, strict=True))
        return None if lesson.features is None else {lesson.action: lesson.features}

    def _tell(self) -> None:
        """Warn of what the features have to say, when all is done."""
        notice, self._knowledge.features.notice = self._knowledge.features.notice, None
        if notice is not None:
            warnings.warn(notice, MeleeWarning, stacklevel=4)

    def _warn_full(self) -> None:
        if not self._pending.warned_full:
            self._pending.warned_full = True
            warnings.warn(
                f"more than {self.max_pending} decisions wait for their rewards: the oldest are "
                "given up. Set a timeout, report rewards earlier, or raise max_pending",
                MeleeWarning,
                stacklevel=4,
            )

    # -- actions ----------------------------------------------------------------------------

    def add_actions(self, actions: Iterable[Hashable]) -> None:
        """Take in new actions; they are tried where they might be better than the known ones."""
        labels = self._read_labels(actions, 0)
        with self._guard:
            self._knowledge.add(labels)
            if self._keeper is not None:
                self._keeper.changed("added", labels)

    def _read_labels(self, actions: Any, least: int) -> list[Label]:
        """Labels of new actions, which a log has to be able to hold if there is one."""
        labels = read_labels(actions, least)
        if self._log is not None or self._keeper is not None:
            for label in labels:
                label_to_json(label)
        return labels

    def remove_actions(self, actions: Iterable[Hashable]) -> None:
        """Let actions go, and what was learned about them; their late rewards teach nothing."""
        labels = read_labels(actions, 0)
        with self._guard:
            self._knowledge.remove(labels)
            if self._keeper is not None:
                self._keeper.changed("removed", labels)

    def roll_back(self, to: int, *, again: int | None = None) -> None:
        """Go back to what was known after an event of the journal; itself an event of it.

        Models, features and actions are as they were then. Decisions go on to wait, whenever they
        were made, and ids stay taken.

        Parameters
        ----------
        to
            The number of the event (see `melee journal show` and `melee journal snapshots`).
        again
            Rewards that came after this event are learned again; `to` itself for all of them. By
            default what came since is forgotten.
        """
        if self._keeper is None:
            raise InputError(
                "the agent keeps no journal, so it has no past to go back to; load an older file, "
                "or make it with a journal: Agent(..., journal=...)"
            )
        self._keeper.roll_back(to, again)

    def close(self) -> None:
        """Let go of the journal, if there is one, with a snapshot of the agent as it is.

        Nothing is lost without it; the next start is quicker. The agent does not change any more.
        """
        if self._keeper is not None:
            self._keeper.close()

    # -- keeping ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which is there whole or not at all.

        Other threads go on meanwhile; what is written is the agent as it was when this was called.
        """
        storing.write(path, self.to_bytes())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, log: str | os.PathLike[str] | None = None
    ) -> Self:
        """The agent that was saved; it goes on as if it had never stopped.

        Parameters
        ----------
        path
            The file.
        log
            Where to go on logging. A file does not say it: anyone might have written that file.
        """
        return cls._from_bytes(storing.read(path), str(path), log)

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return storing.to_bytes(self._noted())

    @classmethod
    def from_bytes(cls, content: bytes, *, log: str | os.PathLike[str] | None = None) -> Self:
        """What `load` reads."""
        return cls._from_bytes(content, "the content", log)

    def _noted(self) -> storing.Noted:
        """Everything that is to be saved, noted in a moment."""
        with self._lock:
            return storing.Noted(
                self._parameters(),
                self.log is not None,
                self._chosen.identity,
                self._ids.to_json(),
                self._knowledge.to_parts(),
                self._pending.noted(),
            )

    def _parameters(self) -> dict[str, Any]:
        """The parameters as JSON has them, but for where to log."""
        return {
            **{name: storing.plain(getattr(self, name)) for name in _NUMBERS},
            "actions": None
            if self._first_labels is None
            else [label_to_json(label) for label in self._first_labels],
            "explorer": self._chosen.spec,
            "reward_range": None if self._range is None else list(self._range),
        }

    @classmethod
    def _from_bytes(cls, content: bytes, where: str, log: Any) -> Self:
        about, arrays = unpack(content, where)
        with storing.refusing(where):
            agent = cls._restored(about, arrays, log)
        storing.tell(where, about, agent._chosen.identity, log)
        return agent

    @classmethod
    def _restored(cls, about: Any, arrays: Arrays, log: Any) -> Self:
        """The agent that was noted; arrays are taken out of `arrays`."""
        agent = cls.__new__(cls)
        given = about["parameters"]
        for name in _PLAIN:
            setattr(agent, name, given[name])
        agent.actions = None
        if given["actions"] is not None:
            agent.actions = [label_from_json(label) for label in given["actions"]]
        agent.explorer = parse(read_text(given["explorer"])).short_spec
        agent.log = log
        agent.journal = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MeleeWarning)  # they were given before
            agent._read_parameters()
        agent.reward_range = agent._range
        agent._ids = Ids.from_json(about["ids"], agent.seed)
        own = (agent._inside, agent._floor, agent.seed, agent.half_life, agent._range)
        agent._first_labels = None
        if agent.actions is None:
            agent._knowledge = Catalogue.restored(about["knowledge"], arrays, *own)
        else:
            agent._first_labels = tuple(agent._read_labels(agent.actions, 1))
            agent._knowledge = Knowledge.from_parts(about["knowledge"], arrays, *own)
        agent._pending = Pending.from_parts(
            about["pending"],
            under("pending", arrays),
            about["waiting"],
            about["done"],
            agent.max_pending,
            agent._knowledge.features.width,
        )
        read_text(about["identity"])
        if type(about["logged"]) is not bool:
            raise DataError("it does not say whether it was logged")
        if arrays:
            raise DataError(f"an array {shown(next(iter(arrays)))}, which no agent has")
        return agent

    @property
    def fingerprint(self) -> str:
        """A checksum of everything that the agent knows: equal agents have equal ones."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def __reduce__(self) -> Any:
        return partial(type(self).from_bytes, log=self.log), (self.to_bytes(),)

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self).from_bytes(self.to_bytes(), log=self.log)

    # -- looking ----------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as in scikit-learn."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **params: Any) -> Self:
        """Change parameters of an agent that has not decided or learned anything yet."""
        if self._keeper is not None or "journal" in params:
            raise InputError(
                "an agent has its journal from the start, and the journal knows its parameters; "
                "make the agent again: Agent(..., journal=...)"
            )
        for name in params:
            if name not in _PARAMETERS:
                raise InputError(f"unknown parameter '{name}'; known: {', '.join(_PARAMETERS)}")
        with self._lock:
            if self._ids.count or self._knowledge.version:
                raise InputError(
                    "the agent has decided or learned already; make a new one, as by "
                    "sklearn.base.clone(agent).set_params(...)"
                )
            checked = type(self)(**{**self.get_params(), **params})
            for name in params:
                setattr(self, name, getattr(checked, name))
            self._begin()
        return self

    @property
    def actions_(self) -> list[Label]:
        """The actions there are now."""
        return list(self._knowledge.labels)

    @property
    def policy_(self) -> str:
        """The explorer, and the first letters of its checksum."""
        return self._policy

    @property
    def n_learned_(self) -> int:
        """How many rounds it has learned."""
        return self._knowledge.n_learned

    @property
    def n_pending_(self) -> int:
        """How many decisions wait for their reward."""
        return len(self._pending.waiting)

    @property
    def feature_names_(self) -> list[str]:
        """What the numbers of a row stand for."""
        return list(self._knowledge.features.names)

    @property
    def ready(self) -> bool:
        """Whether machine code decides and learns; until then kernels are interpreted.

        Decisions are the same, to the bit, and take milliseconds instead of microseconds.
        `melee.compile_now(agent)` waits for it.
        """
        return all(one.ready for one in self._programs)

    @property
    def _programs(self) -> list[Program]:
        """What decides and learns."""
        with self._lock:
            return self._knowledge.programs

    def summary(self) -> list[tuple[Label, int, float]]:
        """Every action with the rounds learned about it and their average reward."""
        with self._lock:
            return self._knowledge.summary()

    def diagnostics(self) -> dict[str, float]:
        """What one may want to watch: counts, and what the explorer says of itself."""
        with self._lock:
            return {
                "acted": self._ids.count,
                "pending": self.n_pending_,
                "given up": self._pending.n_given_up,
                **self._knowledge.diagnostics(self._chosen),
            }

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)
