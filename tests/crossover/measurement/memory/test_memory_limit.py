"""Memory limits: the kernel's on the CPU, torch's on CUDA."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from crossover.errors import UnsupportedError
from crossover.measurement.memory.memory_limit import limit_host, limit_memory

LIMITED = """
import json, torch
from crossover.measurement.memory.memory_limit import limit_host
from crossover.measurement.step.endings import is_out_of_memory
torch.set_num_threads(8)
limit_host(100_000_000)

def fits(size):
    try:
        torch.empty(size, dtype=torch.uint8)
    except RuntimeError as error:
        assert is_out_of_memory(error), error
        return False
    return True

fitted = [fits(size) for size in (50_000_000, 98_000_000, 100_100_000, 200_000_000, 98_000_000)]
tensor = torch.empty(50_000_000, dtype=torch.uint8)
print(json.dumps([*fitted, fits(60_000_000), float((torch.ones(8 * 32768) * 2).sum())]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must keep the limit")
def test_memory_over_the_limit_is_refused_as_out_of_memory(in_fresh_process: Callable[..., Any]) -> None:
    """Runs in a fresh process, since a limit cannot be removed. 2 MB are left for Python's heap."""
    assert in_fresh_process(LIMITED) == [True, True, False, False, True, False, 524288]


def test_a_kernel_that_ignores_the_limit_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    with pytest.raises(UnsupportedError, match="RLIMIT_DATA"):
        limit_host(10_000_000)


@pytest.mark.parametrize(("limit_bytes", "fraction"), [(250, 0.25), (4000, 1.0)])
def test_on_cuda_the_limit_is_a_share_of_the_memory(
    monkeypatch: pytest.MonkeyPatch, limit_bytes: int, fraction: float
) -> None:
    limits: list[tuple[float, torch.device]] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *limit: limits.append(limit))
    limit_memory(torch.device("cuda", 0), 1000, limit_bytes)
    assert limits == [(fraction, torch.device("cuda", 0))]


def test_other_devices_have_no_limit() -> None:
    with pytest.raises(UnsupportedError, match="this is mps"):
        limit_memory(torch.device("mps"), None, 1000)
