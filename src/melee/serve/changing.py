"""Changes to agents that are there: of their actions, and of what they know."""

import asyncio
from typing import TYPE_CHECKING, Any

from melee.agent.keeping import Keeper
from melee.agent.rolling_back import Past
from melee.errors import InputError, shown
from melee.journal.commits import Ticket
from melee.journal.snapshots import seq_of
from melee.labels import Label
from melee.serve import trying
from melee.serve.served import Served
from melee.serve.sharing import Change

if TYPE_CHECKING:
    from melee.serve.service import Service


async def change_actions(
    service: "Service", served: Served, added: list[Label], removed: list[Label]
) -> list[Label]:
    """Have actions come and go; those that are there, or are not, already are no error."""
    both = [label for label in added if label in removed]
    if both:
        raise InputError(f"action {shown(both[0])} is to be added and removed; choose one")
    for member in trying.family(service, served):
        await service.turn(member)
        now = member.agent.actions_
        new = [label for label in added if label not in now]
        gone = [label for label in removed if label in now]
        if new:
            member.agent.add_actions(new)
        if gone:
            member.agent.remove_actions(gone)
        await service.on_disk(member)
    return served.agent.actions_


async def roll_back(
    service: "Service", served: Served, to: Any, relearn_after: Any
) -> dict[str, Any]:
    """Go back to what was known after an event, beside all else as far as that goes."""
    keeper = served.keeper
    async with service.one_change:
        number = seq_of(to) if isinstance(to, str) else to
        change = _Return(keeper, await asyncio.to_thread(keeper.past, number, relearn_after))
        await service.alone(change)
        if service.sharing is None:  # else it has come with the event
            await asyncio.to_thread(keeper.try_snapshot)
    return {"event": change.ticket.seq, "learned": change.n_learned}


class _Return(Change):
    """An agent goes back to what it knew."""

    def __init__(self, keeper: Keeper, past: Past) -> None:
        self._keeper, self._past = keeper, past
        self.ticket, self.n_learned = Ticket(), 0

    def note(self) -> Ticket:
        """Go back; what came meanwhile is read first."""
        self._keeper.go_back(self._past)
        self.ticket, self.n_learned = self._keeper.latest, self._keeper.agent.n_learned_
        return self.ticket
