"""Two runs, or many, of the same cells compared."""
