"""Figures: their kinds, built on style, views and panels."""
