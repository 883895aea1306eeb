"""When does the GPU pay off? The library shared by the workflow's scripts."""

from importlib import import_module
from typing import Any

from crossover.step import Step as Step

__version__ = "0.3.0.dev0"


def __getattr__(name: str) -> Any:
    """Import `thresholds` on first use, so that editing that module triggers no new measurement."""
    if name in ("gpu_if", "read_thresholds", "should_use_gpu"):
        return getattr(import_module(".thresholds", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
