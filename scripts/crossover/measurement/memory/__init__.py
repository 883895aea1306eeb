"""Memory: peaks, their parts, and a limit for the search for the largest batch."""
