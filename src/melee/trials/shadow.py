"""`Shadow`: what another explorer would have chosen, and earned, by reading the journal."""

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from melee.agent.catalogue import Catalogue
from melee.agent.folding import fold, fold_decision, get_ready
from melee.agent.knowledge import Labels
from melee.agent.offered import Offered
from melee.agent.recalling import offered_in
from melee.agent.recovering import FEW, earliest
from melee.agent.rolling_back import finish_only
from melee.contexts import Context
from melee.journal import Event, Head, Journal, events
from melee.labels import Label
from melee.trials.tally import Compared, Tally, in_words

if TYPE_CHECKING:
    from melee.agent import Agent

LATEST = 10
"""Choices that are kept to be looked at."""
_LEARNED = (events.REWARD, events.RECORD, events.TIME_OUT)


class ShadowChoice(NamedTuple):
    """A decision, what was chosen, and what the shadow would have chosen most likely."""

    id: str
    chosen: Label
    would: Label


class _Judged(NamedTuple):
    """A decision that waits: how the shadow's chance relates to the one that was."""

    weight: float
    same: float
    widest: float
    known: bool


class Shadow:
    """An explorer that sees all that an agent does, learns from it, and never acts.

    It learns from what the agent tried, so that exploring costs it nothing: what is said of it is
    what it would earn if it decided as it does, and the agent went on to explore. Judged is only
    what was decided while it had learned from what came before, so nothing is judged by itself.

    Parameters
    ----------
    journal
        Of the agent; it is only read.
    explorer
        Its SPEC. Left out, it is the agent's own, an *apprentice*, and what is judged are the
        choices of callers (`Agent.follow`).
    name, share
        What it is called, and its share: 0.

    Examples
    --------
    >>> import tempfile
    >>> from melee import Agent
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     agent = Agent(["a", "b"], "uniform", journal=directory)
    ...     for i in range(200):
    ...         decision = agent.act({"x": 1.0})
    ...         _ = agent.learn(decision, reward=float(decision.action == "b"))
    ...     shadow = Shadow(Journal(directory, writing=False), "epsilon-greedy")
    ...     shadow.read()
    ...     agent.close()
    True
    >>> found = shadow.compared()
    >>> found.baseline < 0.6 < found.average, found.low > 0.0
    (True, True)
    """

    def __init__(
        self, journal: Journal, explorer: str | None = None, *, name: str = "shadow"
    ) -> None:
        self.journal, self.explorer, self.name = journal, explorer, name
        self.is_apprentice = explorer is None
        self._start()

    def _start(self) -> None:
        self._turns = self.journal.store.turns(self.journal.name, events.ROLLBACK)
        self.agent, self.place = self._begin()
        self.tally = Tally()
        self.latest: deque[ShadowChoice] = deque(maxlen=LATEST)
        self.n_judged = self.n_unknown = 0
        self.same = 0.0
        self._waiting: dict[str, _Judged] = {}

    def _begin(self) -> tuple["Agent", Head]:
        """The shadow before anything happened, or as much as retention has left."""
        known, place = earliest(self.journal)
        if self.explorer is None:
            return known, place
        actions = None if known.actions is None else known.actions_
        given = known._parameters() | {"actions": actions, "explorer": self.explorer}
        agent = type(known)(**given)
        agent._pending, agent._ids = known._pending, known._ids
        return agent, place

    def read(self, most: int | None = None) -> bool:
        """Go through what has happened since, so many events at most; whether that was all."""
        end = self.journal.head
        if end.seq - self.place.seq > FEW:
            for program in self.agent._programs:
                program.wait()
        found = self.journal.events(after=self.place, until=end.seq)
        for n, event in enumerate(found, start=1):
            self.place = event.head
            if event.kind == events.ROLLBACK and event.seq not in {x.seq for x in self._turns}:
                self._start()  # what it undoes is not learned, from the start
                return False
            self._take(event)
            if n == most:
                return False
        self.place = end
        return True

    def _take(self, event: Event) -> None:
        kind = event.kind
        if kind == events.DECISION:
            self._judge(event)
        elif kind in _LEARNED and self._is_undone(event):
            finish_only(self.agent, event)
            self._drop(event)
        elif kind in _LEARNED:
            self._count(event)
            fold(self.agent, [event], self.journal)
        elif kind == events.SETTINGS or (kind == events.ACTIONS and not self._is_undone(event)):
            fold(self.agent, [event], self.journal)

    def _is_undone(self, event: Event) -> bool:
        """Whether a rollback has taken back what an event did."""
        for turn in self._turns:
            to, again = events.read_rollback(turn)
            if to < event.seq < turn.seq and (
                event.kind == events.ACTIONS or again is None or event.seq <= again
            ):
                return True
        return False

    def _judge(self, event: Event) -> None:
        offer = offered_in(event, self.journal)
        labels = offer.labels
        decided = events.read_decision(event, len(labels))
        offered = get_ready(self.agent, decided, offer)
        given = decided.about.get("given", False)
        wanted = self.is_apprentice == (given is not False)
        if wanted and (own := self._chances(decided.context, labels, offered)) is not None:
            label, chances = labels[decided.action], np.array(decided.pmf)
            would = np.array([own[label] for label in labels])
            self.latest.append(ShadowChoice(str(event.id), label, labels[int(would.argmax())]))
            self.n_judged += 1
            self.same += own[label]
            widest = 1.0 / chances[decided.action]
            if given is False and (chances > 0.0).all():
                widest = float((np.abs(would - chances) / chances).max())
            weight = own[label] / float(chances[decided.action])
            self._waiting[str(event.id)] = _Judged(weight, own[label], widest, given is not None)
        if not self.is_apprentice:
            decided = decided._replace(noted=())
        fold_decision(self.agent, event, decided, offer)

    def _chances(
        self, context: Context, labels: Labels, offered: Offered | None
    ) -> dict[Label, float] | None:
        """With which probability it would choose each; None if it does not know them all."""
        known = self.agent._knowledge
        if isinstance(known, Catalogue) and offered is not None:
            return dict(zip(labels, known.probabilities(context, offered), strict=True))
        if not all(label in known.index for label in labels):
            return None
        chosen = None
        if labels != known.labels:
            chosen = np.array(sorted(known.index[label] for label in labels), np.int64)
        return known.pmf(context, chosen)

    def _count(self, event: Event) -> None:
        """Take rewards of judged decisions into the tally."""
        if event.kind == events.TIME_OUT:
            for id in event.content["ids"]:
                self._add(id, self.agent.default_reward)
        else:
            self._add(str(event.id), event.content["reward"])

    def _add(self, id: str, reward: float | None) -> None:
        judged = self._waiting.pop(id, None)
        if judged is None or reward is None:
            return
        if judged.known:
            self.tally.add(float(reward), judged.weight, 1.0, judged.widest)
        else:
            self.n_unknown += 1

    def _drop(self, event: Event) -> None:
        ids = event.content["ids"] if event.kind == events.TIME_OUT else [event.id]
        for id in ids:
            self._waiting.pop(str(id), None)

    def compared(self) -> Compared:
        """What is known by now of how it does."""
        who = "the apprentice" if self.is_apprentice else self.name
        other = "what the caller chose" if self.is_apprentice else "the agent"
        n = len(self.tally)
        average, baseline = self.tally.means
        found = None
        agreement = self.same / self.n_judged if self.n_judged else None
        if n == 0 and self.n_unknown:
            average = None
            sentence = (
                f"what {who} would have earned cannot be said: the probabilities of choices are "
                "not known; send them, or choose at random in some of the rounds and send those"
            )
        elif self.tally.lacks_support:
            average = None
            sentence = (
                f"what {who} would have earned cannot be said: it would choose actions that were "
                "hardly ever chosen; have some of the rounds chosen at random, with their "
                "probabilities"
            )
        else:
            found = self.tally.difference(self.agent._range)
            if found is not None and baseline is not None:
                average = baseline + found.value
            sentence = in_words(found, who, other, n, estimated=True)
        if agreement is not None:
            sentence += f"; it would have chosen the same in {agreement:.0%}"
        return Compared(
            self.name,
            self.agent._chosen.short_spec,
            0.0,
            "apprentice" if self.is_apprentice else "shadow",
            n,
            0,
            average,
            baseline,
            *ends_of(found),
            agreement,
            sentence,
        )


def ends_of(found: Any) -> tuple[float | None, float | None, float | None]:
    """The ends of a difference for any time, and its p-value."""
    if found is None:
        return None, None, None
    return found.anytime_low, found.anytime_high, found.p_value
