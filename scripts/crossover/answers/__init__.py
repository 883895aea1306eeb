"""Answers computed from the tables of a run; report/words.j2 has their wording."""
