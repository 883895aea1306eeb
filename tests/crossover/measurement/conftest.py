"""Fixtures for tests of the measurement."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def light_heap() -> Iterator[None]:
    """Exempt existing objects from garbage collection, which would take most of a short trial's time."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def own_switches() -> Iterator[None]:
    import torch

    from crossover.measurement.step.conditions import set_switches

    threads = torch.get_num_threads()
    yield
    torch.backends.fp32_precision = "none"
    set_switches("fp32", threads)


@pytest.fixture
def in_fresh_process(root: Path) -> Callable[..., Any]:
    """Run code in a new process; returns the value that it prints as JSON."""

    def run(code: str, **environment: str) -> Any:
        variables = {**os.environ, "PYTHONPATH": str(root / "scripts"), **environment}
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
