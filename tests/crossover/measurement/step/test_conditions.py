from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from crossover.measurement.process.requests import BatchTry
from crossover.measurement.step import conditions
from crossover.measurement.step.conditions import set_conditions
from crossover.measurement.step.devices import OpenDevice
from crossover.measurement.step.endings import InvalidError
from crossover.measurement.step.switches import set_switches
from tiny_tasks import TinyInference, linear
from trials import CELL

THREADS = torch.get_num_threads()
JOB = BatchTry(CELL, 0, None, THREADS + 1, 60.0)
TASK = TinyInference(linear(1.0), torch.ones(1, 1))


@pytest.fixture(autouse=True)
def own_switches() -> Iterator[None]:
    yield
    set_switches("fp32", THREADS)


def test_threads_are_those_of_the_job() -> None:
    found = set_conditions(JOB)
    assert torch.get_num_threads() == THREADS + 1
    found.check(TASK)
    torch.set_num_threads(THREADS)
    with pytest.raises(InvalidError, match=f"threads changed from {THREADS + 1} to {THREADS}: the workload"):
        found.check(TASK)


def test_threads_that_pin_memory_for_a_gpu_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data loader's thread for that calls torch.set_num_threads(1), which torch then tells everyone."""
    monkeypatch.setattr(conditions, "open_device", lambda _: OpenDevice(torch.device("xpu"), lambda: None))
    found = set_conditions(replace(JOB, cell=replace(CELL, device="xpu")))
    torch.set_num_threads(THREADS)
    with pytest.raises(InvalidError, match="tensors lie on cpu, not on xpu"):
        found.check(TASK)
    monkeypatch.setattr(conditions, "wrong_device", lambda *_: None)
    found.check(TASK)
    torch.backends.cudnn.benchmark = True
    with pytest.raises(InvalidError, match=r"cudnn\.benchmark changed from False to True"):
        found.check(TASK)
