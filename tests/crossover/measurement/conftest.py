"""Fixtures for tests of the measurement."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def light_heap() -> Iterator[None]:
    """Exempt existing objects from garbage collection, which would take most of a test's time."""
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
