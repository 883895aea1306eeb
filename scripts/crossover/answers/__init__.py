"""From numbers to answers: one row each, no sentences."""
