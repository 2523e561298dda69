"""`Served`: an agent of a service, and what the service knows of it."""

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from melee.agent import Agent
from melee.agent.keeping import Keeper
from melee.labels import Label
from melee.serve.watching import Watch

if TYPE_CHECKING:
    from melee.trials.trials import Reading


@dataclass
class Served:
    """One agent, what keeps its journal, and what happened of late."""

    name: str
    agent: Agent
    keeper: Keeper
    watch: Watch = field(default_factory=Watch)
    chosen: OrderedDict[str, Label] = field(default_factory=OrderedDict)  # of late, elsewhere
    trials: list[str] = field(default_factory=list)  # those that have agents of their own
    follows: bool = False  # whether callers' choices were followed
    compared: list[dict[str, Any]] = field(default_factory=list)  # what is known of trials

    @cached_property
    def reading(self) -> "Reading":
        """Who reads what became of trials; most services have none."""
        from melee.trials.trials import Reading

        return Reading(self.keeper.journal)
