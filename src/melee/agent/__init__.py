"""The production object: `Agent`, its decisions, and what they are made of."""

from melee.agent.agent import Agent
from melee.agent.explanation import Explained, Explanation, Influence
from melee.agent.readiness import compile_now
from melee.decision import Decision, Ranking

__all__ = ["Agent", "Decision", "Explained", "Explanation", "Influence", "Ranking", "compile_now"]
