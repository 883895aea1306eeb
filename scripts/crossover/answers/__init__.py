"""Answers from the tables: one row each, without sentences."""
