"""`Trials`: an agent and its trials as one, and what is known of them."""

from collections.abc import Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from melee.agent.ids import check_new, unique_prefix
from melee.agent.keeping import Keeper
from melee.agent.opening import reopen
from melee.agent.recovering import recover
from melee.agent.trials import Trial, acted, check_trial, draw
from melee.errors import InputError, shown
from melee.explorers import parse
from melee.journal import Journal
from melee.trials.beginning import Beginning, align, own_journal
from melee.trials.shadow import Shadow
from melee.trials.side_by_side import SideBySide
from melee.trials.tally import Compared

if TYPE_CHECKING:
    from melee.agent import Agent
    from melee.decision import Decision


class Trials:
    """An agent with a journal, and others that are tried beside it: `act` and `learn` for all.

    For one process. `melee serve` does the same for many callers.

    Parameters
    ----------
    agent
        With a journal.

    Examples
    --------
    >>> import tempfile
    >>> from melee import Agent
    >>> directory = tempfile.TemporaryDirectory()
    >>> agent = Agent(["a", "b"], "uniform", journal=directory.name)
    >>> trials = Trials(agent)
    >>> trials.begin("clever", "linucb", share=0.5)
    >>> for i in range(400):
    ...     decision = trials.act({"x": 1.0}, unit=f"visitor {i}")
    ...     _ = trials.learn(decision, reward=float(decision.action == "b"))
    >>> (found,) = trials.compare()
    >>> found.kind, found.rounds, found.low < found.high
    ('share', 400, True)
    >>> trials.close()
    >>> directory.cleanup()
    """

    def __init__(self, agent: "Agent") -> None:
        keeper = agent._keeper
        if keeper is None:
            raise InputError(
                "the agent keeps no journal, from which trials are judged; make it with one: "
                "Agent(..., journal=...)"
            )
        self.agent, self._keeper = agent, keeper
        self._reading = Reading(keeper.journal)
        self._others: dict[str, Agent] = {}
        for name in acted(keeper.journal, agent):
            self._others[name] = reopen(own_journal(keeper.journal, name))
            align(agent, self._others[name])

    def begin(self, name: str, explorer: str, *, share: float = 0.0) -> None:
        """Begin a trial, or give one another share.

        Parameters
        ----------
        name, explorer
            What it is called, and the SPEC of its explorer, which stays.
        share
            Of the decisions; 0 for a shadow, which never acts. One that acts begins with all that
            the agent was rewarded for so far, and then learns from its own rewards only.
        """
        begin(self._keeper, self._others, name, explorer, share)

    def end(self, name: str) -> None:
        """End a trial: nobody is drawn into it any more. Its decisions still take rewards."""
        end(self._keeper, name)

    def act(
        self,
        context: Any,
        *,
        actions: Any = None,
        id: str | None = None,
        unit: str | None = None,
    ) -> "Decision":
        """Choose an action, by the agent or by a trial.

        Parameters
        ----------
        context, actions, id
            As of `Agent.act`.
        unit
            Who it is about, such as a visitor, who stays in the same trial; by default each
            decision is drawn by itself.
        """
        if unit is not None and not isinstance(unit, str):
            raise InputError(f"unit is {shown(unit)}; expected a text, such as a visitor's id")
        if id is not None:
            self._check_new(id)
        name = unique_prefix() if id is None else id
        agent = self._drawn(name if unit is None else unit)
        assert agent._keeper is not None
        with agent._keeper.noting(unit=unit):
            return agent.act(context, actions=actions, id=name)

    def _check_new(self, id: str) -> None:
        """Refuse an id that a decision of any of them has, whoever is drawn now."""
        for agent in (self.agent, *self._others.values()):
            check_new(id, agent._pending)
            assert agent._keeper is not None
            agent._keeper.check_new(id)

    def _drawn(self, unit: str) -> "Agent":
        trial = draw(self.agent._trials.values(), unit)
        return self.agent if trial is None else self._others[trial.name]

    def learn(self, subject: "str | Decision", reward: float) -> bool:
        """Learn a decision's reward, by whoever decided."""
        id = subject if isinstance(subject, str) else subject.id
        for agent in (*self._others.values(), self.agent):
            if agent is self.agent or agent._pending.knows(id):
                return agent.learn(subject, reward)
        raise AssertionError("the agent is asked last")

    def add_actions(self, actions: Iterable[Hashable]) -> None:
        """Take in new actions, by all."""
        labels = list(actions)
        for agent in (self.agent, *self._others.values()):
            agent.add_actions(labels)

    def remove_actions(self, actions: Iterable[Hashable]) -> None:
        """Let actions go, by all."""
        labels = list(actions)
        for agent in (self.agent, *self._others.values()):
            agent.remove_actions(labels)

    def compare(self) -> list[Compared]:
        """What is known of every trial; it may be looked at any time."""
        self._reading.read(self.agent)
        return self._reading.compared(self.agent)

    def close(self) -> None:
        """Let go of the journal, with snapshots of all."""
        for agent in self._others.values():
            assert agent._keeper is not None
            agent._keeper.finish()
        self.agent.close()


class Reading:
    """Reads a journal for all trials of an agent, as far as it has not been read.

    Parameters
    ----------
    journal
        Of the agent; it is only read.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.side_by_side: SideBySide | None = None
        self.shadows: dict[str, Shadow] = {}
        self.apprentice: Shadow | None = None

    def begin(self, agent: "Agent", *, apprentice: bool = False) -> None:
        """Take in trials that have begun, and let those go that have ended."""
        trials = agent._trials
        if self.side_by_side is None and any(trial.share > 0.0 for trial in trials.values()):
            self.side_by_side = SideBySide(self.journal)
            if self.journal.start.seq > 0:
                self.side_by_side.begin_with(trials)
        self.shadows = {
            trial.name: self.shadows.get(trial.name)
            or Shadow(self.journal, trial.explorer, name=trial.name)
            for trial in trials.values()
            if trial.share == 0.0
        }
        if apprentice and self.apprentice is None:
            self.apprentice = Shadow(self.journal, name="apprentice")

    @property
    def position(self) -> int:
        """The last event that all have read."""
        every = [self.side_by_side, self.apprentice, *self.shadows.values()]
        return min((side.place.seq for side in every if side is not None), default=0)

    def read(self, agent: "Agent", *, apprentice: bool = False) -> None:
        """Go through all that has happened since."""
        self.begin(agent, apprentice=apprentice)
        while not self.read_some(10_000):
            pass

    def read_some(self, most: int) -> bool:
        """Go through some of what has happened since; whether that was all."""
        every = [self.side_by_side, self.apprentice, *self.shadows.values()]
        done = [side.read(most) for side in every if side is not None]
        return all(done)

    def compared(self, agent: "Agent") -> list[Compared]:
        """What is known of every trial, and of the apprentice if there is one."""
        found = []
        for name, trial in agent._trials.items():
            if name in self.shadows:
                found.append(self.shadows[name].compared())
            elif self.side_by_side is not None and name in self.side_by_side.trials:
                found.append(self.side_by_side.compared(trial.name, agent._range))
        if self.apprentice is not None and self.apprentice.n_judged:
            found.append(self.apprentice.compared())
        return found


def compare(journal: Journal, explorers: Iterable[str] = ()) -> list[Compared]:
    """What a journal says of its agent's trials, of callers' choices, and of further shadows.

    Parameters
    ----------
    journal
        It is only read.
    explorers
        SPECs of explorers that are judged as shadows by all that the journal has.
    """
    agent, _ = recover(journal)
    reading = Reading(journal)
    reading.read(agent, apprentice=True)
    found = reading.compared(agent)
    for spec in explorers:
        shadow = Shadow(journal, spec, name=spec)
        while not shadow.read():
            pass
        found.append(shadow.compared())
    return found


def begin(
    keeper: Keeper, others: "dict[str, Agent]", name: str, explorer: str, share: float
) -> None:
    """Begin a trial of a kept agent, or give one another share; one that acts joins the others."""
    trial = checked(keeper.agent, others.get(name), name, explorer, share)
    beginning = None
    if trial.share > 0.0 and name not in others:
        beginning = Beginning(keeper, trial, partial(others.__setitem__, name))
        keeper.journal.wait(keeper.latest)
        beginning.read()
    try:
        change(keeper, others.get(name), name, explorer, share, beginning)
    except BaseException:
        if beginning is not None:  # it was not kept
            others.pop(name, None)
        raise


def change(
    keeper: Keeper,
    other: "Agent | None",
    name: str,
    explorer: str,
    share: float,
    beginning: Beginning | None,
) -> None:
    """Note that a trial begins, or has another share, by what trials there are now.

    `other` is the agent of the trial, `beginning` what makes one where there is none.
    """
    with keeper:
        trial = checked(keeper.agent, other, name, explorer, share)
        known = keeper.agent._trials.get(name)
        if known is None or known.share != trial.share:
            begins = beginning if other is None and trial.share > 0.0 else None
            keeper.tries(name, None if known is not None else trial.explorer, trial.share, begins)


def checked(agent: "Agent", other: "Agent | None", name: str, explorer: str, share: float) -> Trial:
    """A trial that may begin, or have another share: its explorer stays what it is."""
    trial = check_trial(name, explorer, share, agent._trials.values())
    if agent.actions is None:
        parse(trial.explorer).check_candidates()
    known = agent._trials.get(name)
    has = trial.explorer
    if known is not None:
        has = known.explorer
    elif other is not None:
        has = other._chosen.spec
    if has != trial.explorer:
        mine, given = parse(has).short_spec, parse(trial.explorer).short_spec
        since = "" if known is not None else " since it was tried before"
        raise InputError(
            f"the trial {name} has the explorer {mine}{since}, and {given} is given; expected the "
            "same one, so give that, or begin a trial of another name"
        )
    return trial


def end(keeper: Keeper, name: str) -> None:
    """End a trial of a kept agent."""
    if name not in keeper.agent._trials:
        known = ", ".join(keeper.agent._trials) or "none"
        raise InputError(f"there is no trial {shown(name)}; there are: {known}")
    with keeper:
        keeper.tries(name, None, None)
