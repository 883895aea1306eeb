"""Devices as a trial sees them: opened, synchronised and described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from crossover.config.words import is_cpu
from crossover.errors import UserError


def _no_wait() -> None:
    """The CPU has done its work when the call returns."""


@dataclass(frozen=True)
class OpenDevice:
    """A device that is there, how to wait for it, and how to put marks into its queue."""

    device: torch.device
    synchronise: Callable[[], None]
    name: str | None = None
    """None for the CPU, whose name the host knows."""
    uuid: str | None = None
    memory_bytes: int | None = None
    mark: Callable[[], Any] | None = None
    between_s: Callable[[Any, Any], float] | None = None


def open_device(kind: str) -> OpenDevice:
    """Open the first visible device of a kind, or a CPU side; raises UserError where torch cannot use one."""
    if is_cpu(kind):
        return OpenDevice(torch.device("cpu"), _no_wait)
    if kind == "cuda" and torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return OpenDevice(
            torch.device("cuda", 0),
            torch.cuda.synchronize,
            name=properties.name,
            uuid=_uuid_of(properties),
            memory_bytes=properties.total_memory,
            mark=_cuda_mark,
            between_s=_between_s,
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


def _uuid_of(properties: Any) -> str:
    """The UUID as the driver's own tools write it."""
    return f"GPU-{str(properties.uuid).removeprefix('GPU-')}"


def _cuda_mark() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between_s(begin: torch.cuda.Event, end: torch.cuda.Event) -> float:
    return float(begin.elapsed_time(end)) / 1000
