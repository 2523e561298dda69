"""What tests of journals need: a quick place, lives under a clock, and files cut from the power."""

import random
from pathlib import Path
from typing import Any

from melee import InputError
from melee.agent.folding import fold
from melee.agent.recovering import created
from melee.journal import Journal
from tests.agent_lives import ACTIONS, named_context, reward_of

SHARED_MEMORY = Path("/dev/shm")


def straight(journal):
    """The agent that all events, from the first, make of a new one."""
    agent = created(journal)
    fold(agent, journal.events(), journal)
    return agent


def keeper_of(agent) -> Any:
    """What keeps an agent's journal."""
    return agent._keeper


def reading(place, name="agent"):
    return Journal(place, name, writing=False)


def live(agent, first, last, *, seed=0, clock=None):
    """Rounds with everything in them; returns what was acknowledged: ids of decisions, rewards."""
    rng = random.Random(seed)
    decisions, rewards, open_ids = [], {}, []
    for number in range(first, last):
        if clock is not None:
            clock.now = 1e9 + number
        if number == 60:
            agent.add_actions(["late"])
        if number == 140:
            agent.remove_actions(["politics"])
        kind = number % 10
        if kind == 3:
            made = agent.act_many([named_context(number), named_context(number + 1)])
        elif kind == 7:
            made = [agent.act(named_context(number), actions=ACTIONS[2:])]
        elif kind == 8:
            made = [agent.act(named_context(number), id=f"mine {number}")]
        else:
            made = [agent.act(named_context(number))]
        decisions += [one.id for one in made]
        open_ids += [(one.id, number, one.action) for one in made]
        rng.shuffle(open_ids)
        while len(open_ids) > 6:
            id, of, action = open_ids.pop()
            if of % 9 == 0:  # never rewarded
                continue
            try:
                if of % 4 == 0:
                    agent.learn_many([id], [reward_of(of, action)])
                else:
                    agent.learn(id, reward_of(of, action))
            except InputError:  # it was given up, or is forgotten
                assert id not in agent._pending.waiting
            else:
                rewards[id] = reward_of(of, action)
        if number % 50 == 49:
            agent.learn(named_context(number + 5000), 3, reward_of(number, 3), 0.25)
    return decisions, rewards
