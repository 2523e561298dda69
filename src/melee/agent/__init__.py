"""The production object: `Agent`, its decisions, and what they are made of."""

from melee.agent.agent import Agent
from melee.agent.decision import Decision
from melee.agent.readiness import compile_now

__all__ = ["Agent", "Decision", "compile_now"]
