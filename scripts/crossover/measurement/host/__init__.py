"""The host of a trial: its description, counters and energy."""
