"""Torch devices: how to wait for them, and how to time their work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from crossover.config.words import is_cpu, unit_of_side
from crossover.errors import UserError

OCCUPIED_CYCLES = 250_000
"""GPU cycles of `occupy`, 0.1 ms at 2.5 GHz. The host usually launches an operator in less time."""


@dataclass(frozen=True)
class OpenDevice:
    device: torch.device
    synchronise: Callable[[], None]
    name: str | None = None
    uuid: str | None = None
    memory_bytes: int | None = None
    mark: Callable[[], Any] | None = None
    """Records a timestamp in the device's queue; None for a device without timestamps."""
    between_s: Callable[[Any, Any], float] | None = None
    """Seconds between two timestamps that the device has passed."""
    occupy: Callable[[], None] | None = None
    """Keeps the device busy for OCCUPIED_CYCLES, so that the host gets ahead of it."""


def open_device(side: str) -> OpenDevice:
    """Open the first visible device of a side, such as cuda or cuda-2, or the CPU; raises UserError if torch cannot."""
    kind = unit_of_side(side)
    if is_cpu(kind):
        return OpenDevice(torch.device("cpu"), lambda: None)  # calls on the CPU are synchronous
    if kind == "cuda" and torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return OpenDevice(
            torch.device("cuda", 0),
            torch.cuda.synchronize,
            name=properties.name,
            uuid=f"GPU-{str(properties.uuid).removeprefix('GPU-')}",  # UUID in the format of the driver's tools
            memory_bytes=properties.total_memory,
            mark=_cuda_mark,
            between_s=lambda begin, end: float(begin.elapsed_time(end)) / 1000,
            occupy=partial(torch.cuda._sleep, OCCUPIED_CYCLES),
        )
    if kind == "mps" and torch.backends.mps.is_available():
        return OpenDevice(torch.device("mps"), torch.mps.synchronize, name="Apple GPU")
    if kind == "xpu" and torch.xpu.is_available():
        xpu = torch.xpu.get_device_properties(0)
        return OpenDevice(torch.device("xpu", 0), torch.xpu.synchronize, name=xpu.name, memory_bytes=xpu.total_memory)
    built = torch.version.cuda or torch.version.hip or "the CPU only"
    raise UserError(
        f"--device: '{kind}' cannot be used here by torch {torch.__version__} (built for {built}); "
        "allowed: a device of this machine that this build of torch supports"
    )


def _cuda_mark() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
