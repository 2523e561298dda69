"""Learners: models f that predict the reward of every action."""
