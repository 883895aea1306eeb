"""The host of a trial: description, counters, and energy."""
