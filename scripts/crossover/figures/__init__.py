"""Figures, one module a kind."""
