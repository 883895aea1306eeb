"""Rows and columns: their registry, reading, writing, guarding and merging."""
