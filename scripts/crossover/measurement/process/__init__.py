"""Processes: server, forks, messages, supervision, time limits."""
