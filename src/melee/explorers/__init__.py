"""Explorers: from a learner and a context to the probability of every action."""

from melee.explorers.base import Explorer, LearningExplorer, Problem, RidgeExplorer
from melee.explorers.interface import distribution, learn, reveal
from melee.explorers.registry import EXPLORERS, parse, register

__all__ = [
    "EXPLORERS",
    "Explorer",
    "LearningExplorer",
    "Problem",
    "RidgeExplorer",
    "distribution",
    "learn",
    "parse",
    "register",
    "reveal",
]
