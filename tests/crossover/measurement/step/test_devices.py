"""Devices that torch can use, on fake backends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from crossover.errors import UserError
from crossover.measurement.step.devices import OpenDevice, open_device


@pytest.mark.parametrize("uuid", ["1234-5678", "GPU-1234-5678"])
def test_a_cuda_gpu_has_a_name_a_uuid_and_timestamps(monkeypatch: pytest.MonkeyPatch, uuid: str) -> None:
    properties = SimpleNamespace(name="NVIDIA H200", uuid=uuid, total_memory=150_000_000_000)
    recorded = []

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            assert enable_timing

        def record(self) -> None:
            recorded.append(self)

        def elapsed_time(self, end: Event) -> float:
            return 1500.0 * (recorded.index(end) - recorded.index(self))  # milliseconds

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    gpu = open_device("cuda")
    assert (gpu.device, gpu.synchronise) == (torch.device("cuda", 0), torch.cuda.synchronize)
    assert (gpu.name, gpu.uuid, gpu.memory_bytes) == ("NVIDIA H200", "GPU-1234-5678", 150_000_000_000)
    assert gpu.mark is not None
    assert gpu.between_s is not None
    begin, end = gpu.mark(), gpu.mark()
    assert recorded == [begin, end]
    assert gpu.between_s(begin, end) == 1.5


def test_other_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(name="Arc", total_memory=16_000_000_000)
    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    intel = OpenDevice(torch.device("xpu", 0), torch.xpu.synchronize, "Arc", memory_bytes=16_000_000_000)
    assert open_device("xpu") == intel
    assert open_device("mps") == OpenDevice(torch.device("mps"), torch.mps.synchronize, "Apple GPU")


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_a_missing_device_is_a_user_error(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    for module in (torch.cuda, torch.backends.mps, torch.xpu):
        monkeypatch.setattr(module, "is_available", lambda: False)
    with pytest.raises(UserError, match=f"'{kind}' cannot be used here"):
        open_device(kind)
