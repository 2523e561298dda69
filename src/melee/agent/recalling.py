"""Past decisions, as a journal has them: what they chose from, what was answered, and why."""

from melee.agent.explanation import Explanation
from melee.agent.folding import fold_decision
from melee.agent.recovering import recover
from melee.decision import Decision
from melee.journal import Event, Journal, events
from melee.journal.offers import Offer


def offered_in(event: Event, journal: Journal) -> Offer:
    """What a past decision could choose from."""
    return events.chosen_from(event, journal.offer(event.content["offer"]))


def decision_of(
    event: Event, journal: Journal, offer: Offer | None = None
) -> tuple[Decision, events.Decided]:
    """A past decision as `Agent.act` answered it, and as its event has it."""
    offer = offered_in(event, journal) if offer is None else offer
    decided = events.read_decision(event, len(offer.labels))
    decision = Decision(
        str(event.id),
        offer.labels[decided.action],
        decided.pmf[decided.action],
        decided.policy,
        decided.version,
        offer.labels,
        tuple(decided.pmf),
    )
    return decision, decided


def explain_past(journal: Journal, id: str) -> Explanation | None:
    """Why a decision was made, by the agent as it was then; None if it is not in the journal."""
    event = journal.find(id)
    if event is None:
        return None
    agent, _ = recover(journal, until=event.seq - 1)
    offer = offered_in(event, journal)
    decision, decided = decision_of(event, journal, offer)
    fold_decision(agent, event, decided, offer)
    if offer.features is None:
        return agent.explain(decision)
    return agent.explain(decision, actions=dict(zip(offer.labels, offer.features, strict=True)))
