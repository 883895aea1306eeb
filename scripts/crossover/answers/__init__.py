"""From numbers to answers."""
