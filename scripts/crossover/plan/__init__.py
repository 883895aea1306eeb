"""The plan of a run: its jobs, their order and resources, and its messages on the terminal."""
