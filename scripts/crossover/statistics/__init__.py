"""From rows to numbers."""
