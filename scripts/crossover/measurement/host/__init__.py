"""The host of a trial: its description, its counters, and energy."""
