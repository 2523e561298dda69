"""Learners: models f that predict the reward of every action."""

from melee.learners.base import Learner
from melee.learners.interface import correct, n_rows, predict, predict_all, spread
from melee.learners.registry import parse

__all__ = ["Learner", "correct", "n_rows", "parse", "predict", "predict_all", "spread"]
