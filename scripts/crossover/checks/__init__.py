"""Checks of the instrument itself."""
