"""Answers from the tables: one row each; report/words.j2 words them."""
