from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from crossover.errors import UserError
from crossover.measurement import devices
from crossover.measurement.devices import open_device


def test_the_cpu_needs_no_waiting() -> None:
    cpu = open_device("cpu")
    assert cpu.device == torch.device("cpu")
    cpu.synchronise()
    assert (cpu.name, cpu.uuid, cpu.memory_bytes) == (None, None, None)


def test_a_gpu_is_described_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []
    properties = SimpleNamespace(name="NVIDIA H200", uuid="1234-5678", total_memory=150_000_000_000)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(True))
    monkeypatch.setattr(devices, "_nvidia_driver", lambda: "580.1")
    gpu = open_device("cuda")
    gpu.synchronise()
    assert waited == [True]
    assert gpu.device == torch.device("cuda", 0)
    assert (gpu.name, gpu.uuid, gpu.memory_bytes, gpu.driver_version) == (
        "NVIDIA H200",
        "GPU-1234-5678",
        150_000_000_000,
        "580.1",
    )


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_a_device_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    for module in (torch.cuda, torch.backends.mps, torch.xpu):
        monkeypatch.setattr(module, "is_available", lambda: False)
    with pytest.raises(UserError, match=f"--device: '{kind}' cannot be used here by torch") as caught:
        open_device(kind)
    assert "\n" not in str(caught.value)
