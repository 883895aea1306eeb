"""How long synchronised work must last for its energy to be known: what measures it and what draws it agree."""

ENERGY_WINDOW_MIN_S = 10.0
"""NVML renews its counter every 0.1 s or sooner, so that the two edges of a window blur 10 s by at most 2 %."""
