"""Small worlds for agents to live in."""

import numpy as np

from melee.explorers import EXPLORERS

REFUSED = ("full-information", "melee-paper", "banditron-melee")
SPECS = [
    {"tau-first": "tau-first:rounds=50"}.get(name, name)
    for name in EXPLORERS
    if name not in REFUSED
]
"""Every explorer that an agent can have."""


class News:
    """Readers of three or more kinds of articles; what they like depends on who they are."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def reader(self):
        rng = self.rng
        context = {
            "age": int(rng.integers(18, 80)),
            "device": str(rng.choice(["phone", "tablet", "desktop"])),
            "subscriber": bool(rng.integers(2)),
        }
        if rng.random() < 0.2:
            del context["age"]
        if rng.random() < 0.3:
            context["likes"] = [str(one) for one in rng.choice(["chess", "tennis", "art"], 2)]
        return context

    def chance(self, context, action):
        """The probability that a reader clicks."""
        return {
            "sports": 0.2 + 0.6 * (context["device"] == "phone"),
            "politics": 0.1 + 0.7 * (context.get("age", 40) > 50),
            "science": 0.45,
        }.get(action, 0.95)

    def reward(self, context, action):
        return float(self.rng.random() < self.chance(context, action))


def live(agent, world, n_rounds):
    """Play rounds with their rewards at once; the mean reward."""
    total = 0.0
    for _ in range(n_rounds):
        context = world.reader()
        decision = agent.act(context)
        reward = world.reward(context, decision.action)
        agent.learn(decision.id, reward)
        total += reward
    return total / n_rounds
