"""Choosing several actions at once, best first, each among what is left."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from melee.agent.catalogue import Catalogue
from melee.agent.deciding import decide_among, find, namer
from melee.agent.ids import check_new
from melee.agent.offered import offer
from melee.agent.offering import choose_among, read_offer
from melee.arrays import Ints
from melee.contexts import read_context
from melee.decision import Ranking
from melee.errors import InputError, whole_number
from melee.labels import Label

if TYPE_CHECKING:
    from melee.agent.agent import Agent


def rank(agent: "Agent", context: Any, actions: Any, id: str | None, top: int) -> Ranking:
    """Choose so many; every place is a decision with a reward of its own."""
    top = whole_number("top", top, 1)
    read = read_context(context)
    with agent._guard:
        known = agent._knowledge
        left: dict[Label, Any] = {}  # candidates
        opened: Ints = np.zeros(0, np.int64)  # or actions
        if isinstance(known, Catalogue):
            offered = read_offer(agent, known, actions)
            left = dict(zip(offered.labels, offered.features, strict=True))
        else:
            opened = np.arange(len(known.labels)) if actions is None else find(agent, actions)
        n = len(left) + len(opened)
        if top > n:
            raise InputError(
                f"top is {top} and there are {n} actions to choose from; expected at most as many"
            )
        if top > agent.max_pending:
            raise InputError(
                f"top is {top}, and only {agent.max_pending} decisions may wait for their rewards; "
                "raise max_pending, or ask for fewer"
            )
        is_made = id is None
        if id is None:
            id = namer(agent).name(None, read, None, agent._pending)
        names = [f"{id}/{place + 1}" for place in range(top)]
        for name in names:
            check_new(name, agent._pending)
            if agent._keeper is not None and not is_made:
                agent._keeper.check_new(name)
        places = []
        for number, name in enumerate(names, start=1):
            keeper = agent._keeper
            with nullcontext() if keeper is None else keeper.noting(place=number):
                if isinstance(known, Catalogue):
                    place = choose_among(agent, known, read, offered, name)
                    del left[place.action]
                    offered = offer(tuple(left), tuple(left.values()))
                else:
                    place = decide_among(agent, read, opened, name)
                    opened = opened[opened != known.number(place.action)]
            places.append(place)
        return Ranking(id, tuple(places))
