"""Single calls that do not find their data in a cache, as a call from outside of a hot loop."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from crossover.machine.kernel import last_level_cache_bytes
from crossover.machine.threads import usable_cpus

CALLS = 50
"""Number of calls that are timed, each as a block of its own."""

IDLE_S = 0.002
"""Time without work before each call."""

ASSUMED_CACHE_BYTES = 2**27
"""Size of the last-level caches where the system lists none."""


def evict_caches(device: torch.device, synchronise: Callable[[], None]) -> Callable[..., None]:
    """A function that leaves other data in the host's last-level caches and in a GPU's L2 cache, and then idles.

    It writes buffers of twice the caches' size. Its arguments are ignored.
    """
    on_host = last_level_cache_bytes(usable_cpus()) or ASSUMED_CACHE_BYTES
    buffers = [torch.empty(2 * on_host, dtype=torch.uint8)]
    if device.type == "cuda":
        on_device = torch.cuda.get_device_properties(device).L2_cache_size
        buffers.append(torch.empty(2 * on_device, dtype=torch.uint8, device=device))

    def evict(*_: object) -> None:
        for buffer in buffers:
            buffer.fill_(1)
        synchronise()
        time.sleep(IDLE_S)

    return evict
