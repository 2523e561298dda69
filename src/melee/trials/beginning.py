"""A trial begins with all that is known: it has learned what the agent was rewarded for so far."""

from typing import TYPE_CHECKING

from melee.agent.opening import begin
from melee.agent.pending import Pending
from melee.agent.trials import agent_name
from melee.errors import InputError
from melee.journal import Journal
from melee.trials.shadow import Shadow

if TYPE_CHECKING:
    from melee.agent import Agent


def begin_trial(
    journal: Journal, name: str, explorer: str, shadow: Shadow | None = None
) -> "Agent":
    """The agent of a trial, in the same journal; it takes as long as reading the journal takes.

    `shadow` is one of that explorer that has read some of it already.
    """
    own = journal.another(agent_name(journal.name, name))
    if journal.store.has(own.name):
        raise InputError(
            f"{journal.where} has an agent {own.name} already, of an earlier trial; give the "
            "trial another name"
        )
    shadow = Shadow(journal, explorer, name=name) if shadow is None else shadow
    while not shadow.read():
        pass
    agent = shadow.agent
    agent._pending = Pending(agent.max_pending)
    agent.journal = own
    agent._hold(begin(agent, own))
    return agent
