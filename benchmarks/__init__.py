"""Measurements of speed, kept apart from the package and from its tests."""
