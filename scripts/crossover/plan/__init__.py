"""The plan of a run, as plain functions for the rules."""
