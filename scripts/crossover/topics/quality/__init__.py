"""The quality of trained models."""
