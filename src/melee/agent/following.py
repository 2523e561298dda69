"""Following somebody else's choice: the decision of the system that there is, learned from."""

from typing import TYPE_CHECKING, Any

from melee.agent.catalogue import Catalogue
from melee.agent.deciding import decided, find, namer
from melee.agent.ids import check_new
from melee.agent.keeping import GIVEN
from melee.agent.offering import read_offer
from melee.agent.overdue import give_up, keep_room, now
from melee.checks import check_probability
from melee.contexts import read_context
from melee.decision import Decision
from melee.errors import InputError, shown
from melee.labels import check_label

if TYPE_CHECKING:
    from melee.agent.agent import Agent


def follow(
    agent: "Agent", context: Any, action: Any, probability: Any, actions: Any, id: str | None
) -> Decision:
    """Repeat a choice, which waits for its reward as a decision does."""
    read, label = read_context(context), check_label(action)
    known = None if probability is None else check_probability(probability)
    with agent._guard:
        knowledge = agent._knowledge
        chosen = offered = None
        if isinstance(knowledge, Catalogue):
            offered = read_offer(agent, knowledge, actions)
            labels = offered.labels
        else:
            chosen = None if actions is None else find(agent, actions)
            labels = knowledge.labels_of(chosen)
            knowledge.number(label)
        if label not in labels:
            raise InputError(f"{shown(label)} was chosen, and is not among the actions that were")
        if known is not None and known != 1.0 and len(labels) == 1:
            raise InputError(
                f"the probability is {known:g}, and {shown(label)} was the only action; expected 1"
            )
        if id is not None:
            check_new(id, agent._pending)
            if agent._keeper is not None:
                agent._keeper.check_new(id)
        if isinstance(knowledge, Catalogue) and offered is not None:
            knowledge.ready_for(read, offered)
            chosen = offered.content
        else:
            knowledge.ready(read, some=chosen is not None)
        time = now()
        give_up(agent, time)
        name = namer(agent).name(id, read, chosen, agent._pending)
        number = labels.index(label)
        chance = 1.0 if known is None else known
        others = (1.0 - chance) / max(len(labels) - 1, 1)
        pmf = [chance if i == number else others for i in range(len(labels))]
        made = (read, name, labels, pmf, number, time, None, offered)
        if agent._keeper is None:
            decision = decided(agent, *made)
        else:
            with agent._keeper.noting(given=known):
                decision = decided(agent, *made)
        keep_room(agent, time)
        return decision._replace(policy=GIVEN)
