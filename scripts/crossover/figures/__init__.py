"""Figures: their kinds, on a small kit of style, views and panels."""
