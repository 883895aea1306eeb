"""Latency, measured rightly and wrongly."""
