"""What figures share: their look, their panels, and a study's view of the tables."""
