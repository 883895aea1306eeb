"""The output of `doctor.py` for a machine."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

import doctor
from fake_nvml import FakeGpu, FakeNvml


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.LOAD_WINDOW_S", 0.0)


def test_the_facts_of_this_machine_are_printed() -> None:
    facts = dict(doctor.facts_of_this_machine())
    assert f" {len(os.sched_getaffinity(0))} logical CPUs" in facts["cores"]
    assert facts.keys() >= {"host", "cpu", "clock", "memory", "free disk", "Python", "load by others"}


def test_processes_on_a_gpu_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in (7, 8)]
    used = FakeGpu("GPU-1", answers={"nvmlDeviceGetComputeRunningProcesses_v3": processes})
    monkeypatch.setattr("doctor.pynvml", FakeNvml(used, FakeGpu("GPU-2")))
    gpus = [fact for name, fact in doctor.facts_of_this_machine() if name == "GPU"]
    assert gpus == ["GPU-1, processes that use it: 2", "GPU-2, processes that use it: unknown"]
