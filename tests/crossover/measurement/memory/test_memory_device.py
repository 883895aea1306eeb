from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from crossover.measurement.memory.memory_device import measure_allocator, measure_metal, process_bytes

GPU = torch.device("cuda", 0)


class Accelerator:
    """torch.cuda as far as needed, with a caching allocator; its counters show nothing before it is waited for."""

    def __init__(self, allocated: int) -> None:
        self.allocated = self.peak = allocated
        self.reserved = self.peak_reserved = 4096
        self.waited = True
        self.foreign = 10_000

    def allocate(self, count: int) -> None:
        self.waited = False
        self.allocated += count
        self.peak = max(self.peak, self.allocated)
        self.reserved = max(self.reserved, self.allocated)
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def synchronize(self, device: torch.device) -> None:
        assert device == GPU
        self.waited = True

    def empty_cache(self) -> None:
        self.reserved = self.allocated

    def memory_allocated(self, device: torch.device) -> int:
        return self._read(device, self.allocated)

    def max_memory_allocated(self, device: torch.device) -> int:
        return self._read(device, self.peak)

    def max_memory_reserved(self, device: torch.device) -> int:
        return self._read(device, self.peak_reserved)

    def reset_peak_memory_stats(self, device: torch.device) -> None:
        assert device == GPU
        self.peak, self.peak_reserved = self.allocated, self.reserved

    def mem_get_info(self, device: torch.device) -> tuple[int, int]:
        return 100_000 - self._read(device, self.reserved) - self.foreign, 100_000

    def _read(self, device: torch.device, count: int) -> int:
        assert device == GPU
        assert self.waited
        return count


class Cycle:
    """Memory that only a collection of garbage frees."""

    def __init__(self, gpu: Accelerator, count: int) -> None:
        self.myself, self.gpu, self.count = self, gpu, count

    def __del__(self) -> None:
        self.gpu.allocate(-self.count)


def test_the_marks_are_those_of_the_function() -> None:
    gpu = Accelerator(1500)
    gpu.peak = 9999  # the timing's
    Cycle(gpu, 500)

    def run() -> None:
        gpu.allocate(3000)
        gpu.allocate(-3000)
        gpu.allocate(200)

    assert measure_allocator(run, GPU, gpu) == {
        "base_bytes": 1000,
        "peak_allocated_bytes": 4000,
        "peak_reserved_bytes": 4000,
        "device_used_bytes": 14_000,
    }


def test_a_driver_that_does_not_tell_leaves_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def mem_get_info(_: torch.device) -> tuple[int, int]:
        raise RuntimeError("The device doesn't support querying the available free memory")

    gpu = Accelerator(0)
    monkeypatch.setattr(gpu, "mem_get_info", mem_get_info)
    assert measure_allocator(lambda: None, GPU, gpu)["device_used_bytes"] is None


def test_running_out_of_memory_passes_through() -> None:
    def run() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        measure_allocator(run, GPU, Accelerator(0))


def test_metal_tells_what_its_driver_took() -> None:
    calls: list[str] = []
    taken = {"current": 700, "driver": 2000}
    metal = SimpleNamespace(
        synchronize=lambda: calls.append("synchronize"),
        empty_cache=lambda: calls.append("empty_cache"),
        current_allocated_memory=lambda: taken["current"],
        driver_allocated_memory=lambda: taken["driver"],
    )

    def run() -> None:
        calls.append("run")
        taken.update(current=900, driver=3000)

    assert measure_metal(run, metal) == {"base_bytes": 700, "peak_reserved_bytes": 3000}
    assert calls == ["synchronize", "empty_cache", "run", "synchronize"]


class NVMLError(Exception):
    pass


def nvml(processes: Any, fails: str = "") -> tuple[Any, list[str]]:
    """A library that knows processes on one GPU, and what was called."""
    calls: list[str] = []

    def call(name: str, result: Any) -> Any:
        calls.append(name)
        if name == fails:
            raise NVMLError
        return result

    library = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: call("init", None),
        nvmlShutdown=lambda: call("shutdown", None),
        nvmlDeviceGetHandleByUUID=lambda uuid: call("handle", {"GPU-1": "first"}[uuid]),
        nvmlDeviceGetComputeRunningProcesses=lambda handle: call("processes", {"first": processes}[handle]),
    )
    return library, calls


def of(pid: int, used: int | None) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


@pytest.mark.parametrize(
    ("processes", "found"),
    [
        ([of(7, 300), of(8, 999)], 300),
        ([of(7, 300), of(7, 50)], 350),
        ([of(7, None)], None),
        ([of(8, 999)], None),
        ([], None),
    ],
    ids=["own", "two entries", "not told", "only others", "none"],
)
def test_the_driver_knows_this_process(processes: list[Any], found: int | None) -> None:
    library, calls = nvml(processes)
    assert process_bytes("GPU-1", library, pid=7) == found
    assert calls[-1] == "shutdown"


@pytest.mark.parametrize("fails", ["init", "handle", "processes"])
def test_a_driver_that_does_not_answer_is_no_error(fails: str) -> None:
    library, calls = nvml([of(7, 300)], fails)
    assert process_bytes("GPU-1", library, pid=7) is None
    assert calls.count("shutdown") == (0 if fails == "init" else 1)


def test_a_gpu_without_an_identity_is_not_asked_for() -> None:
    library, calls = nvml([of(7, 300)])
    assert process_bytes(None, library, pid=7) is None
    assert calls == []
