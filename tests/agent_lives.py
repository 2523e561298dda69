"""What hostile and long-lived agents need: numbered rounds, a clock, and forged files."""

import hashlib
import json
import struct

import numpy as np

from melee import Agent
from melee.agent.file import FORMAT_VERSION, MARK

ACTIONS = ["sports", "politics", 3, ("banner", 1)]


def named_context(number):
    """A context whose names and levels grow with the number of the round."""
    rng = np.random.default_rng([number, 1])
    context = {
        "age": float(rng.normal(40, 12)),
        "device": f"device {rng.integers(2 + number // 40)}",
        "tags": [f"tag {tag}" for tag in np.flatnonzero(rng.random(3) < 0.4)],
        "subscribed": bool(rng.random() < 0.5),
    }
    if rng.random() < 0.1:
        context["age"] = None
    if number >= 150:
        context["hour"] = int(rng.integers(24))
    if number >= 280:
        context["late"] = float(rng.normal(1e4, 1e3))
    return context


def number_context(number):
    return np.random.default_rng([number, 2]).normal(size=3) * [1.0, 100.0, 0.01]


def reward_of(number, action):
    """What an action earns in a round, from 0 to 1."""
    index = ACTIONS.index(action) if action in ACTIONS else 4
    rng = np.random.default_rng([number, 3])
    return round(0.4 * float(rng.random()) + 0.6 * (number % 3 == index % 3), 3)


class Clock:
    """Stands in for the module `time`: it is as late as a test says."""

    now = 1e9

    def time(self):
        return self.now


def play(agent, clock, first, last, ids):
    """Rounds of a world in which rewards come late, some never, and actions come and go.

    Round by round `ids` gets the decisions' ids and actions; it holds those of the rounds before.
    Returns the decisions.
    """
    decisions = []
    for number in range(first, last):
        clock.now = 1e9 + number
        if number == 120:
            agent.add_actions(["late"])
        if number == 300:
            agent.remove_actions(["politics"])
        open_now = {"actions": ACTIONS[2:]} if number % 11 == 5 else {}
        decision = agent.act(named_context(number), **open_now)
        decisions.append(decision)
        ids.append((decision.id, decision.action))
        due = number - number % 7 - 7 + number * 3 % 7  # the seven before, in another order
        if due >= 0 and due % 13:
            id, action = ids[due]
            agent.learn(id, reward_of(due, action))
        if number % 50 == 49:
            agent.learn(named_context(number + 5000), 3, reward_of(number, 3), 0.25)
    return decisions


def small_agent(spec="linucb", *, n_rounds=12, n_pending=2, named=True, **options):
    """An agent that has learned a little and waits for a little."""
    agent = Agent(ACTIONS, spec, seed=5, **options)
    make = named_context if named else number_context
    for number in range(n_rounds):
        decision = agent.act(make(number))
        agent.learn(decision.id, reward_of(number, decision.action))
    for number in range(n_pending):
        agent.act(make(100 + number), id=f"waiting {number}")
    return agent


def sealed(about, arrays=None, *, version=FORMAT_VERSION, kinds=None, block=None):
    """A file with a right checksum, whatever it says; NaN and infinities are written too.

    `about` is a dict, or JSON as bytes; `kinds` and `block` replace what the arrays would say.
    """
    arrays = arrays or {}
    if kinds is None:
        kinds = {name: [array.dtype.name, list(array.shape)] for name, array in arrays.items()}
    if block is None:
        block = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    text = about if isinstance(about, bytes) else json.dumps({**about, "arrays": kinds}).encode()
    body = struct.pack("<8sIQQ", MARK, version, len(text), len(block)) + text + block
    return body + hashlib.sha256(body).digest()
