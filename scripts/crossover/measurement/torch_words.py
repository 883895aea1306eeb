"""Keeps to itself what torch says of its own inside; what a user can act on is shown."""

from __future__ import annotations

import os
import warnings

INSIDE = (
    "Warning: Profiler clears events",
    "Sparse .* tensor support is in beta state",
    "The PyTorch API of (nested|MaskedTensors?)",
    "Lazy modules are a new feature",
    "dynamo_pgo force disabled",  # the measurement does that
    "TensorFloat32 tensor cores .* available but not enabled",  # the config says which precision
    "Attempting to run cuBLAS, but there was no current CUDA context",
    "The CUDA Graph is empty",
)
"""How warnings begin that no user can act on."""

NO_MESSAGES = "99"
"""A level of the profiler's messages above all that it has."""


def keep_torch_quiet() -> None:
    """Silence these warnings, and torch's deprecations of its own code, in this process from now on."""
    for begins in INSIDE:
        warnings.filterwarnings("ignore", message=begins)
    for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
        warnings.filterwarnings("ignore", category=kind, module=r"torch(\.|$)")
    os.environ.setdefault("KINETO_LOG_LEVEL", NO_MESSAGES)
