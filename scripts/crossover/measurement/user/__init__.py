"""What users bring: their models and functions, with batches, loss and table."""
