"""The plan of a run for the rules: plain functions of plain values."""
