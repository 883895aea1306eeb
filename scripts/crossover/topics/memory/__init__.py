"""The memory of a step."""
