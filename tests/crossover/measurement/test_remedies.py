"""Which remedies a step has, and that each runs it without its cause."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from crossover.config.words import LARGER_BATCH
from crossover.measurement.clock.timing import Stopwatch
from crossover.measurement.remedies import FEWER_THREADS_S, HostCopies, remedies_of, working_s
from crossover.measurement.step.execution import Execution
from fake_device import MILLISECOND, FakeDevice
from tiny_tasks import TinyTraining


class Loading(TinyTraining):
    """Counts the batches that it takes, and the rows that it works on."""

    taken = 0

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        self.taken += 1
        return super().next_inputs()

    def run(self, *inputs: torch.Tensor) -> None:
        self.rows = len(inputs[0])
        super().run(*inputs)


def ways_of(task: Any, name: str = "eager", step_time_s: float = 0.001) -> Any:
    return remedies_of(task, Execution(task.step, task.run), name, step_time_s, lambda: pytest.fail("built anew"))


@pytest.fixture
def task() -> Loading:
    return Loading(nn.Linear(2, 1), [torch.randn(5, 2)])


@pytest.mark.parametrize(
    ("threads", "fewer"), [(1, set()), (2, {"one_thread_s"}), (4, {"one_thread_s", "half_threads_s"})]
)
def test_a_cpu_holds_its_batch_and_tries_fewer_threads(
    task: Loading, monkeypatch: pytest.MonkeyPatch, threads: int, fewer: set[str]
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    always = {"split_step_s", "loading_s", "held_s", "larger_s"}
    assert ways_of(task).keys() == always | fewer
    assert ways_of(task, step_time_s=FEWER_THREADS_S).keys() == always
    assert ways_of(task, "compile", FEWER_THREADS_S).keys() == always - {"larger_s"}


def test_a_held_batch_is_not_taken_again_and_a_larger_one_has_more_rows(task: Loading) -> None:
    ways = ways_of(task)
    taken = task.taken
    ways["held_s"].step()
    assert (task.taken, task.rows) == (taken, 5)
    ways["larger_s"].step()
    assert (task.taken, task.rows) == (taken, 5 * LARGER_BATCH)
    ways["split_step_s"].step()
    assert (task.taken, task.rows) == (taken + 1, 5)


def test_a_model_for_one_batch_size_has_no_larger_one(task: Loading, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*inputs: torch.Tensor) -> None:
        inputs[0].view(5, 2)

    monkeypatch.setattr(task, "run", run)
    assert "larger_s" not in ways_of(task)


def test_threads_are_as_before(task: Loading) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        way = ways_of(task)["one_thread_s"]
        with way.setting():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_copies_to_another_device_are_seen_but_not_numbers() -> None:
    with HostCopies() as copies:
        torch.zeros(3, 5).to("meta")
        torch.zeros(()).to("meta")
        torch.zeros(7).to(torch.float64)
    assert (copies.bytes, copies.pinned) == (3 * 5 * 4, False)


def test_the_work_of_a_step_is_timed_without_its_batch(task: Loading) -> None:
    device = FakeDevice(MILLISECOND, device_ns=2 * MILLISECOND)
    watch = Stopwatch(wall_ns=lambda: device.now, cpu_ns=lambda: 0, synchronise=device.synchronise)
    execution = Execution(task.step, lambda *_inputs: device.step())
    assert working_s(task, execution, watch, 0.1) == pytest.approx(0.003)
    assert task.taken == 3
