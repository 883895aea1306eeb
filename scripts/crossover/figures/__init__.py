"""Figures: one module a kind in `kinds/`, on a small kit of style, views and panels."""
