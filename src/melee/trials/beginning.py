"""A trial begins with all that is known: it has learned what the agent was rewarded for so far."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from melee.agent.keeping import Keeper
from melee.agent.opening import first_event
from melee.agent.pending import Pending
from melee.agent.trials import Trial, agent_name
from melee.errors import InputError
from melee.explorers import parse
from melee.journal import Journal, events
from melee.journal.commits import Ticket
from melee.trials.shadow import Shadow

if TYPE_CHECKING:
    from melee.agent import Agent

SOME = 50_000
"""Events that are read at a time."""


class Beginning:
    """The agent of a trial that is about to begin in an agent's journal.

    Most of the journal is read beside all else; what came meanwhile, and the first event of the
    new agent, go with the event of the trial itself.

    Parameters
    ----------
    keeper
        Of the agent.
    trial
        Its name and its explorer.
    join
        Is called with the new agent, before anybody is drawn into the trial.
    """

    def __init__(self, keeper: Keeper, trial: Trial, join: "Callable[[Agent], None]") -> None:
        self._keeper, self._join = keeper, join
        journal = keeper.journal
        self.own = own_journal(journal, trial.name)
        if keeper.agent.actions is None:
            parse(trial.explorer).check_candidates()
        self._shadow = Shadow(journal, trial.explorer, name=trial.name)

    def _check_new(self) -> None:
        if self.own.store.has(self.own.name):
            raise InputError(
                f"{self.own.where} has an agent {self.own.name} already; give the trial another "
                "name"
            )

    def read(self) -> None:
        """Go through what the journal has by now."""
        while not self._shadow.read(SOME):
            pass

    def __call__(self) -> tuple[events.Draft, Callable[[Ticket], None]]:
        """Its first event, and how it is handed over; the agent's keeper is held meanwhile."""
        journal = self._keeper.journal
        journal.wait(self._keeper.latest)
        self._check_new()
        self.read()
        agent = self._shadow.agent
        agent._pending = Pending(agent.max_pending)
        align(self._keeper.agent, agent)
        place = journal.head

        def hand_over(ticket: Ticket) -> None:
            agent.journal = self.own
            agent._hold(Keeper(agent, self.own, place, ticket))
            self._join(agent)

        return first_event(agent, self.own.name), hand_over


def align(agent: "Agent", other: "Agent") -> None:
    """Have another agent know the same actions, where they do not come with the question."""
    if agent.actions is None:
        return
    now, then = agent.actions_, other.actions_
    other.add_actions([label for label in now if label not in then])
    other.remove_actions([label for label in then if label not in now])


def own_journal(journal: Journal, name: str) -> Journal:
    """The journal of a trial's agent, in the same place."""
    return journal.another(agent_name(journal.name, name))
