"""Measuring processes: the trial server and its forks, messages, supervision, time limits."""
