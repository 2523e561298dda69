"""`Agent`: a contextual bandit to put into production."""

import hashlib
import os
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Self, overload

from melee.agent import (
    deciding,
    explaining,
    following,
    learning,
    offering,
    overdue,
    parameters,
    ranking,
    storing,
)
from melee.agent.arguments import check_seconds, read_labels
from melee.agent.catalogue import Catalogue
from melee.agent.explanation import Explanation
from melee.agent.ids import Ids
from melee.agent.keeping import Keeper
from melee.agent.knowledge import Knowledge, Labels
from melee.agent.locks import guard_against_forks, new_lock
from melee.agent.opening import begin, keep
from melee.agent.parameters import DEFAULT_FLOOR, PARAMETERS, check_written, read_actions
from melee.agent.pending import Pending
from melee.agent.show import as_html, as_text
from melee.agent.trials import Trial
from melee.checks import RewardRange
from melee.compiled import Program
from melee.decision import Decision, Ranking
from melee.errors import InputError
from melee.explorers import Explorer
from melee.history import Round
from melee.journal import Journal
from melee.labels import Label


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
        if self._first_labels is None:
            self._knowledge: Knowledge = Catalogue(*own)
        else:
            self._knowledge = Knowledge(self._first_labels, *own)
        self._pending = Pending(self.max_pending)
        self._ids = Ids(self.seed)
        self._trials: dict[str, Trial] = {}

    def _read_parameters(self) -> None:
        """Check what does not change, and derive from it."""
        derived = parameters.check_parameters(self)
        self._chosen, self._inside, self._floor = derived.explorer, derived.inside, derived.floor
        self._range, self._policy, self._log = derived.range, derived.policy, derived.log
        self._first_labels: Labels | None = None
        if self.actions is not None:
            labels = read_actions(self.actions, 1, written=self._log is not None)
            self._first_labels = tuple(labels)
        self._lock = new_lock()
        self._hold(None)
        guard_against_forks(self)

    def _keep(self, given: Any, *, as_it_is: bool = False) -> None:
        """Go on as the agent of a journal does, or begin a new one, from nothing or as it is."""
        if self._first_labels is not None:
            check_written(self._first_labels)
        journal = given if isinstance(given, Journal) else Journal(given)
        try:
            self._hold(begin(self, journal) if as_it_is else keep(self, journal))
        except BaseException:
            if journal is not given:
                journal.close()
            raise

    def _hold(self, keeper: Keeper | None) -> None:
        """Have a journal kept, or none; what calls that change something hold follows from it."""
        self._keeper = keeper
        self._guard: Any = self._lock if keeper is None else keeper

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
            return ranking.rank(self, context, actions, id, top)
        if isinstance(self._knowledge, Catalogue):
            return offering.choose(self, context, actions, id)
        return deciding.decide(self, context, actions, id)

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
            The actions that are open: a list of labels, the same for all contexts, or a list with
            the list of each, in which None stands for all actions. Of an agent without actions of
            its own the candidates: the same for all, as `act` takes them, or a list with those of
            each.
        ids
            Names for the decisions.
        """
        if isinstance(self._knowledge, Catalogue):
            return offering.choose_many(self, contexts, actions, ids)
        return deciding.decide_many(self, contexts, actions, ids)

    def follow(
        self,
        context: Any,
        action: Hashable,
        *,
        probability: float | None = None,
        actions: Any = None,
        id: str | None = None,
    ) -> Decision:
        """Repeat what somebody else chose, and learn from it when its reward comes.

        For an apprentice: the system that there is decides, and the agent says, with a journal,
        what it would have earned instead (`melee.trials`).

        Parameters
        ----------
        context
            A dict, a row of a table, or numbers.
        action
            What was chosen.
        probability
            The probability that it had, if known; by default it is taken to be certain, and tells
            nothing about what another choice would have earned.
        actions
            The actions that were open; by default all were. Where they come with the question, the
            candidates that there were, with their features.
        id
            A name for the decision that is not taken yet; by default one is made.

        Returns
        -------
        Decision
            With the action that was chosen. What the other actions' probabilities were is not
            known: they have even shares of the rest.
        """
        return following.follow(self, context, action, probability, actions, id)

    def pmf(self, context: Any, *, actions: Any = None) -> dict[Label, float]:
        """The probability of every open action in a context; decides and changes nothing."""
        if isinstance(self._knowledge, Catalogue):
            return offering.pmf(self, self._knowledge, context, actions)
        return deciding.pmf(self, context, actions)

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
            candidates, of a decision too unless there is a log or a journal.

        Examples
        --------
        >>> agent = Agent(actions=["sports", "politics"], reward_range=(0.0, 1.0))
        >>> decision = agent.act({"device": "phone"})
        >>> why = agent.explain(decision)
        >>> [(each.action, each.probability) for each in why.actions]
        [('sports', 0.5), ('politics', 0.5)]
        """
        return explaining.explain(self, subject, actions)

    # -- learning ---------------------------------------------------------------------------

    @overload
    def learn(self, subject: str | Decision, reward: float, /) -> bool: ...

    @overload
    def learn(self, subject: str | Decision, /, *, reward: float) -> bool: ...

    @overload
    def learn(self, subject: Ranking, rewards: Sequence[float], /) -> bool: ...

    @overload
    def learn(self, subject: Ranking, /, *, rewards: Sequence[float]) -> bool: ...

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
        again; another one for the same decision is refused. A ranking takes the rewards of all
        its places, `learn(ranking, [0, 1, 0])`; a place is a decision, and may get its own alone.

        A decision that was not made here, or that is forgotten, is learned from its full record:
        `learn(context, action, reward, probability)`; of an agent without actions of its own with
        the features of the action, `features={...}`.

        Returns
        -------
        bool
            Whether anything was learned: False for a repeated reward, and for that of an action
            that was removed since.
        """
        return learning.learn(self, subject, values, named)

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
            Ids of decisions, or decisions, or a ranking, with `rewards`; or contexts, with all the
            others.
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
        return learning.learn_many(self, subjects, values, named, features)

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
        return learning.learn_rounds(self, rounds)

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
            return overdue.give_up(self, overdue.now() if now is None else float(now))

    # -- actions ----------------------------------------------------------------------------

    def add_actions(self, actions: Iterable[Hashable]) -> None:
        """Take in new actions; they are tried where they might be better than the known ones."""
        written = self._log is not None or self._keeper is not None
        labels = read_actions(actions, 0, written=written)
        with self._guard:
            self._knowledge.add(labels)
            if self._keeper is not None:
                self._keeper.changed("added", labels)

    def remove_actions(self, actions: Iterable[Hashable]) -> None:
        """Let actions go, and what was learned about them; their late rewards teach nothing."""
        labels = read_labels(actions, 0)
        with self._guard:
            self._knowledge.remove(labels)
            if self._keeper is not None:
                self._keeper.changed("removed", labels)

    def roll_back(self, to: int, *, relearn_after: int | None = None) -> None:
        """Go back to what was known after an event of the journal; itself an event of it.

        Models, features and actions are as they were then. Decisions go on to wait, whenever they
        were made, and ids stay taken.

        Parameters
        ----------
        to
            The number of the event (see `melee journal show` and `melee journal snapshots`).
        relearn_after
            Rewards that came after this event are learned again; `to` itself for all of them. By
            default what came since is forgotten.
        """
        if self._keeper is None:
            raise InputError(
                "the agent keeps no journal, so it has no past to go back to; load an older file, "
                "or make it with a journal: Agent(..., journal=...)"
            )
        self._keeper.roll_back(to, relearn_after)

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
        cls,
        path: str | os.PathLike[str],
        *,
        log: str | os.PathLike[str] | None = None,
        journal: str | os.PathLike[str] | Journal | None = None,
    ) -> Self:
        """The agent that was saved; it goes on as if it had never stopped.

        Parameters
        ----------
        path
            The file.
        log
            Where to go on logging. A file does not say it: anyone might have written that file.
        journal
            A new journal that begins with this agent, and that it goes on with.
        """
        agent = cls._restored(storing.read(path), str(path), log)
        if journal is not None:
            agent.journal = journal
            agent._keep(journal, as_it_is=True)
        return agent

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return storing.to_bytes(self._noted())

    @classmethod
    def from_bytes(cls, content: bytes, *, log: str | os.PathLike[str] | None = None) -> Self:
        """What `load` reads."""
        return cls._restored(content, "the content", log)

    @classmethod
    def _restored(cls, content: bytes, where: str, log: Any) -> Self:
        agent = cls.__new__(cls)
        storing.restore(agent, content, where, log)
        return agent

    def _noted(self) -> storing.NotedAgent:
        """Everything that is to be saved, noted in a moment."""
        return storing.noted(self)

    def _parameters(self) -> dict[str, Any]:
        """The parameters as JSON has them, but for where to log."""
        return parameters.to_json(self)

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
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **params: Any) -> Self:
        """Change parameters of an agent that has not decided or learned anything yet."""
        if self._keeper is not None or "journal" in params:
            raise InputError(
                "an agent has its journal from the start, and the journal knows its parameters; "
                "make the agent again: Agent(..., journal=...)"
            )
        for name in params:
            if name not in PARAMETERS:
                raise InputError(f"unknown parameter '{name}'; known: {', '.join(PARAMETERS)}")
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
        with self._lock:
            return all(program.ready for program in self._knowledge.programs)

    @property
    def _programs(self) -> list[Program]:
        """What decides, whatever the question, and learns."""
        with self._lock:
            return self._knowledge.all_programs()

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
