"""Silences torch's warnings about its internals; those that a user can act on are shown."""

from __future__ import annotations

import os
import warnings

INTERNAL = (
    "Warning: Profiler clears events",
    "Sparse .* tensor support is in beta state",
    "The PyTorch API of (nested|MaskedTensors?)",
    "Lazy modules are a new feature",
    "dynamo_pgo force disabled",  # the measurement does that
    "TensorFloat32 tensor cores .* available but not enabled",  # the config says which precision
    "Attempting to run cuBLAS, but there was no current CUDA context",
    "The CUDA Graph is empty",
)
"""Beginnings of warnings that no user can act on."""

NO_MESSAGES = "99"
"""A level above all of the profiler's messages."""


def keep_torch_quiet() -> None:
    """Silence these warnings, and deprecations within torch's code, in this process."""
    for begins in INTERNAL:
        warnings.filterwarnings("ignore", message=begins)
    for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
        warnings.filterwarnings("ignore", category=kind, module=r"torch(\.|$)")
    os.environ.setdefault("KINETO_LOG_LEVEL", NO_MESSAGES)
