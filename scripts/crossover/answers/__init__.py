"""Answers computed from the tables of a run, each with its sentence."""
