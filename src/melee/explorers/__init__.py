"""Explorers: from a learner and a context to the probability of every action."""

from melee.explorers.base import Explorer, LearningExplorer, Problem, RidgeExplorer
from melee.explorers.registry import EXPLORERS, parse

__all__ = ["EXPLORERS", "Explorer", "LearningExplorer", "Problem", "RidgeExplorer", "parse"]
