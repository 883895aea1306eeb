"""Claims, published and our own, checked against a run."""
