"""Devices of all machines, ranked by time or money."""
