from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from crossover.measurement import batch_try
from crossover.measurement.batch_try import STEPS, run_try, time_batches, with_rows
from crossover.measurement.process.requests import BatchTry
from crossover.measurement.step.precision import SKIPPED_MAX, Arithmetic
from crossover.measurement.step.switches import set_switches
from fake_device import MILLISECOND, SECOND, FakeDevice
from tiny_tasks import TinyTraining, linear
from trials import CELL

DATA = {"features": torch.arange(6.0).reshape(3, 2), "labels": torch.tensor([7, 8, 9])}


def test_rows_are_repeated_in_order_until_the_batch_is_full() -> None:
    larger = with_rows(DATA, 8)
    assert larger["labels"].tolist() == [7, 8, 9, 7, 8, 9, 7, 8]
    assert larger["features"][:, 0].tolist() == [0, 2, 4, 0, 2, 4, 0, 2]
    assert larger["features"].shape == (8, 2)
    assert larger["labels"].dtype == torch.int64
    assert larger["features"].untyped_storage().nbytes() == 8 * 2 * 4


def test_whole_repetitions_need_no_rest() -> None:
    assert with_rows(DATA, 6)["labels"].tolist() == [7, 8, 9] * 2


def test_a_dataset_that_suffices_stays_as_it_is() -> None:
    for rows in (1, 3):
        assert with_rows(DATA, rows)["features"] is DATA["features"]


@pytest.mark.parametrize(
    ("step_s", "batches"),
    [(0.001, 100), (0.1, 100), (0.105, 95), (2.5, 4), (3.4, 3), (60.0, 3)],  # about 10 s, 3 at least, 100 at most
)
def test_batches_are_timed_until_ten_seconds_are_full(step_s: float, batches: int) -> None:
    device = FakeDevice(MILLISECOND, device_ns=round(step_s * SECOND))
    found = time_batches(device.step, 100, step_s, device.watch())
    # The device begins with the first batch while the host queues the others.
    assert found == {"timed_batches": batches, "timed_s": pytest.approx(0.001 + batches * step_s)}
    assert (device.steps, device.synchronisations) == (batches, 2)


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_batches_are_timed_than_were_asked_for(most: int) -> None:
    device = FakeDevice(MILLISECOND)
    assert time_batches(device.step, most, 60.0, device.watch())["timed_batches"] == device.steps == most


Loss = Callable[..., tuple[torch.Tensor, ...]]


@pytest.fixture
def attempt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Any, TinyTraining]]]:
    """Tries a training with a loss; says how that ended, and hands out the task."""
    threads = torch.get_num_threads()

    def run(precision: str, loss: Loss) -> tuple[Any, TinyTraining]:
        made: list[TinyTraining] = []

        def build(_cell: object, _data: object, arithmetic: Arithmetic) -> TinyTraining:
            made.append(TinyTraining(linear(1.0), [torch.ones(1, 1)], arithmetic, loss))
            made[0].optimizer = torch.optim.Adam(made[0].model.parameters())
            return made[0]

        monkeypatch.setattr(batch_try, "build_task", build)
        end = run_try(BatchTry(replace(CELL, precision=precision), 0, None, threads, 60.0), lambda _: None)
        return end, made[0]

    yield run
    set_switches("fp32", threads)


def times(factor: float) -> Loss:
    return lambda model, *inputs: (factor * model(*inputs).mean(),)


@pytest.mark.parametrize(
    ("precision", "factor", "before"),
    # Of numbers up to 65504, 2^15 is the first that fits, on its way down from 2^16 or from 2^26.
    [("fp32", 2.0**10, 0), ("amp-fp16", 1.0, 2), ("amp-fp16", 2.0**10, 12)],
)
def test_what_is_tried_are_steps_with_their_update(
    attempt: Callable[..., tuple[Any, TinyTraining]], precision: str, factor: float, before: int
) -> None:
    end, task = attempt(precision, times(factor))
    assert end == ("ok", None, {})
    assert task.events.count("end") == before + STEPS
    assert int(task.optimizer.state[next(task.model.parameters())]["step"]) == (STEPS + 1 if before else STEPS)


def test_a_try_whose_updates_are_all_skipped_says_nothing_about_memory(
    attempt: Callable[..., tuple[Any, TinyTraining]],
) -> None:
    (status, reason, _), task = attempt("amp-fp16", times(float("inf")))
    assert (status, task.events.count("end")) == ("invalid", SKIPPED_MAX)
    assert reason == "the loss scaler skipped 30 updates in a row: what an update needs is not known"


def test_a_try_that_sets_a_switch_stops_the_search(attempt: Callable[..., tuple[Any, TinyTraining]]) -> None:
    def loss(model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        torch.backends.cudnn.benchmark = True
        return (model(*inputs).mean(),)

    (status, reason, _), _ = attempt("fp32", loss)
    assert (status, reason) == (
        "invalid",
        "cudnn.benchmark changed from False to True: the workload, or what it imports, must not set it",
    )
