"""Figures over an axis, and of all topics together."""
