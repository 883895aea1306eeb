from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from crossover.errors import UserError
from crossover.measurement.step.devices import open_device


def test_the_cpu_needs_no_waiting() -> None:
    cpu = open_device("cpu")
    assert cpu.device == torch.device("cpu")
    cpu.synchronise()
    assert (cpu.name, cpu.uuid, cpu.memory_bytes) == (None, None, None)
    assert (cpu.mark, cpu.between_s) == (None, None)


@pytest.mark.parametrize("uuid", ["1234-5678", "GPU-1234-5678"])
def test_a_gpu_is_described_and_waited_for(monkeypatch: pytest.MonkeyPatch, uuid: str) -> None:
    waited = []
    properties = SimpleNamespace(name="NVIDIA H200", uuid=uuid, total_memory=150_000_000_000)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(True))
    gpu = open_device("cuda")
    gpu.synchronise()
    assert waited == [True]
    assert gpu.device == torch.device("cuda", 0)
    assert (gpu.name, gpu.uuid, gpu.memory_bytes) == ("NVIDIA H200", "GPU-1234-5678", 150_000_000_000)


def test_marks_of_a_gpu_lie_in_its_queue_and_know_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = []

    class Event:
        def __init__(self, enable_timing: bool = False) -> None:
            assert enable_timing

        def record(self) -> None:
            recorded.append(self)

        def elapsed_time(self, end: Event) -> float:
            return 1500.0 * (recorded.index(end) - recorded.index(self))  # milliseconds

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda _: SimpleNamespace(name="", uuid="", total_memory=0)
    )
    monkeypatch.setattr(torch.cuda, "Event", Event)
    gpu = open_device("cuda")
    assert gpu.mark is not None
    assert gpu.between_s is not None
    begin, end = gpu.mark(), gpu.mark()
    assert recorded == [begin, end]
    assert gpu.between_s(begin, end) == 1.5


def test_other_accelerators_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(name="Arc", total_memory=16_000_000_000)
    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    intel, apple = open_device("xpu"), open_device("mps")
    assert (intel.device, intel.name, intel.memory_bytes) == (torch.device("xpu", 0), "Arc", 16_000_000_000)
    assert intel.synchronise is torch.xpu.synchronize
    assert (apple.device, apple.name, apple.synchronise) == (torch.device("mps"), "Apple GPU", torch.mps.synchronize)


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_a_device_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    for module in (torch.cuda, torch.backends.mps, torch.xpu):
        monkeypatch.setattr(module, "is_available", lambda: False)
    with pytest.raises(UserError, match=f"--device: '{kind}' cannot be used here by torch") as caught:
        open_device(kind)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("side", ["cpu-1", "cpu-half"])
def test_the_cpu_on_fewer_cores_is_the_cpu_to_torch(side: str) -> None:
    assert open_device(side).device == torch.device("cpu")
