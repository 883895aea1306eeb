"""The modules of measuring processes, by name, so that their parents import none of them."""

from __future__ import annotations

MEASUREMENT = "crossover.measurement"

WORK = {
    "trial": (f"{MEASUREMENT}.ranks.trial", "run"),
    "training": (f"{MEASUREMENT}.training", "run_training"),
    "batch_try": (f"{MEASUREMENT}.search", "run_try"),
    "probe": (f"{MEASUREMENT}.ranks.links", "run"),
}
"""Module and function of each kind of job, as names, so that a measuring process imports only what its job needs."""

SERVER = f"{MEASUREMENT}.process.server"
"""Measuring processes are forked from this module or import it. Their supervisor measures nothing and is left out."""
