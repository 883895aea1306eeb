"""Memory: peaks, what they are for, and the largest batch."""
