"""The host around a trial: what it is, what it did meanwhile, and energy."""
