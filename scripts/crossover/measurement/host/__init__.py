"""The host around a trial: its state, energy, and CPUs."""
