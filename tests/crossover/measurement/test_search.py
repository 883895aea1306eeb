"""The search for the largest batch: the sizes tried for given outcomes, and a real try of a tiny model."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import torch
from torch import nn

from crossover.config.studies import BatchSearch
from crossover.errors import RefusedError
from crossover.measurement import cell as cell_module
from crossover.measurement.cell import with_rows
from crossover.measurement.process.jobs import Outcome, TryJob
from crossover.measurement.search import (
    CONFIRMATIONS,
    FACTS,
    LargestBatch,
    Try,
    find_largest,
    run_try,
    search_largest,
    time_batches,
    time_largest,
)
from crossover.measurement.step.precision import SKIPPED_MAX, Arithmetic
from fake_device import MILLISECOND, SECOND, FakeDevice
from tiny_tasks import TinyTraining, linear
from trials import CELL

pytestmark = pytest.mark.usefixtures("own_switches")

FIRST = TryJob(cell=CELL, seed=0, dataset="data", threads=1, time_limit_s=60.0, memory_limit_bytes=1000)
"""A try at batch size 100, from which searches start."""


def outcomes(status_of: Callable[[int], str]) -> Callable[[TryJob], Outcome]:
    def attempt(job: TryJob) -> Outcome:
        size = job.cell.batch_size
        status = status_of(size)
        return Outcome(status, None if status == "ok" else f"{size} is too much", False, {"hostname": "here"})

    return attempt


def search(status_of: Callable[[int], str], limit: int | None = None) -> tuple[LargestBatch, list[str]]:
    lines: list[str] = []
    seconds = (0.5 * number for number in count())
    first = replace(FIRST, search=BatchSearch(limit=limit))
    return search_largest(first, outcomes(status_of), lines.append, lambda: next(seconds)), lines


def test_every_try_is_recorded_and_reported() -> None:
    result, lines = search(lambda size: "ok" if size <= 101 else "oom", limit=103)
    assert (result.status, result.reason, result.largest, result.smallest_failing) == ("ok", None, 101, 102)
    assert result.largest_fitting is None
    assert result.tries == [
        Try(100, "ok", None, 0.5),
        Try(103, "oom", "103 is too much", 0.5),
        Try(101, "ok", None, 0.5),
        Try(102, "oom", "102 is too much", 0.5),
        Try(101, "ok", None, 0.5),
        Try(101, "ok", None, 0.5),
    ]
    assert result.facts == {"hostname": "here"}
    assert lines[:2] == ["batch 100: ok, 0.5 s", "batch 103: oom (103 is too much), 0.5 s"]


@pytest.mark.parametrize("status", ["timeout", "invalid", "unsupported"])
def test_any_other_status_stops_the_search(status: str) -> None:
    result, _ = search(lambda size: "ok" if size < 400 else status)
    assert (result.status, result.reason) == (status, "batch 400: 400 is too much")
    assert (result.largest, result.smallest_failing, result.largest_fitting) == (None, None, 200)
    assert [tried.batch_size for tried in result.tries] == [100, 200, 400]


def test_a_size_that_also_failed_is_not_the_largest_that_fitted() -> None:
    """Batch 100, the limit, fits once; its confirmation fails, and the next smaller size stops the search."""
    statuses = iter(["ok", "oom", "timeout"])
    result, _ = search(lambda _: next(statuses), limit=100)
    assert [tried.batch_size for tried in result.tries] == [100, 100, 99]
    assert (result.status, result.smallest_failing, result.largest_fitting) == ("timeout", 100, None)


def test_the_largest_batch_is_timed_in_a_new_process() -> None:
    jobs: list[TryJob] = []

    def attempt(job: TryJob) -> Outcome:
        jobs.append(job)
        result = {"timed_batches": 40, "timed_s": 8.0, "throughput_samples_per_s": 745.0}
        return Outcome("ok", None, True, {}, result)

    result, lines = search(lambda size: "ok" if size < 150 else "oom")
    timed = time_largest(FIRST, result, attempt, lines.append)
    assert jobs == [replace(FIRST, cell=replace(CELL, batch_size=149), timed_batches=100)]
    rate = {"throughput_samples_per_s": 745.0, "timed_batches": 40, "timed_s": 8.0}
    assert timed == replace(result, **rate)
    assert lines[-1] == "batch 149: 745 samples/s over 40 batches"


def test_a_batch_that_cannot_be_timed_stays_the_largest() -> None:
    result, lines = search(lambda size: "ok" if size < 150 else "oom")
    timed = time_largest(FIRST, result, outcomes(lambda _: "oom"), lines.append)
    assert timed == replace(result, throughput_reason="oom: 149 is too much")
    assert (timed.status, timed.largest) == ("ok", 149)
    assert lines[-1] == "batch 149: not timed, oom (149 is too much)"


DATA = {"features": torch.arange(6.0).reshape(3, 2), "labels": torch.tensor([7, 8, 9])}


@pytest.mark.parametrize(("rows", "labels"), [(6, [7, 8, 9] * 2), (8, [7, 8, 9, 7, 8, 9, 7, 8])])
def test_rows_are_repeated_in_order_until_the_batch_is_full(rows: int, labels: list[int]) -> None:
    larger = with_rows(DATA, rows)
    assert larger["labels"].tolist() == labels
    assert larger["features"][:, 0].tolist() == [2 * (label - 7) for label in labels]
    assert larger["features"].untyped_storage().nbytes() == rows * 2 * 4


@pytest.mark.parametrize(
    ("most", "step_s", "batches"),
    # About 10 s, at least 3 batches, and at most the requested number.
    [(100, 0.001, 100), (100, 0.1, 100), (100, 0.105, 95), (100, 2.5, 4), (100, 3.4, 3), (100, 60.0, 3), (2, 60.0, 2)],
)
def test_batches_are_timed_for_about_ten_seconds(most: int, step_s: float, batches: int) -> None:
    device = FakeDevice(MILLISECOND, device_ns=round(step_s * SECOND))
    result = time_batches(device.step, most, step_s, device.watch())
    # The device starts once the host has queued the first batch.
    assert result == {"timed_batches": batches, "timed_s": pytest.approx(0.001 + batches * step_s)}
    assert (device.steps, device.synchronisations) == (batches, 2)


Loss = Callable[..., tuple[torch.Tensor, ...]]


class Counting(TinyTraining):
    """A task that counts its samples: alternately 4 and 1 in a batch, if `counts` is set."""

    counts = False

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        if self.counts:
            self.samples_taken = (self.samples_taken or 0) + (1 if self.events.count("end") % 2 else 4)
        return super().next_inputs()


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Counting]]:
    def run(precision: str, loss: Loss, timed_batches: int = 0) -> tuple[Any, Counting]:
        tasks: list[Counting] = []

        def build(_cell: object, _data: object, arithmetic: Arithmetic, *_: object) -> Counting:
            tasks.append(Counting(linear(1.0), [torch.ones(1, 1)], arithmetic, loss))
            tasks[0].optimizer = torch.optim.Adam(tasks[0].model.parameters())
            return tasks[0]

        monkeypatch.setattr(cell_module, "build_task", build)
        job = replace(FIRST, cell=replace(CELL, precision=precision), dataset=None, memory_limit_bytes=None)
        messages: list[dict[str, Any]] = []
        job = replace(job, threads=torch.get_num_threads(), timed_batches=timed_batches)
        outcome = run_try(job, messages.append)
        assert list(messages[0]["begun"]) == list(FACTS)
        return outcome, tasks[0]

    return run


def times(factor: float) -> Loss:
    return lambda model, *inputs: (factor * model(*inputs).mean(),)


@pytest.mark.parametrize(
    ("precision", "factor", "before"),
    # fp16 ends at 65504, so halving from 2^16 or 2^26 first fits at 2^15.
    [("fp32", 2.0**10, 0), ("amp-fp16", 1.0, 2), ("amp-fp16", 2.0**10, 12)],
)
def test_the_steps_of_a_try_update_the_weights(
    tried: Callable[..., tuple[Any, Counting]], precision: str, factor: float, before: int
) -> None:
    outcome, task = tried(precision, times(factor))
    assert outcome == ("ok", None, {})
    assert task.events.count("end") == before + TryJob.steps
    assert int(task.optimizer.state[next(task.model.parameters())]["step"]) == TryJob.steps + bool(before)


@pytest.mark.parametrize(("counts", "mean_samples"), [(False, CELL.batch_size), (True, 2.5)])
def test_throughput_counts_the_samples_of_each_batch(
    tried: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, counts: bool, mean_samples: float
) -> None:
    monkeypatch.setattr(Counting, "counts", counts)
    (status, _, result), _ = tried("fp32", times(1.0), timed_batches=4)
    assert status == "ok"
    assert result["throughput_samples_per_s"] * result["timed_s"] == pytest.approx(4 * mean_samples)


def set_a_switch(model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    torch.backends.cudnn.benchmark = True
    return (model(*inputs).mean(),)


@pytest.mark.parametrize(
    ("precision", "loss", "steps", "reason"),
    [
        ("amp-fp16", times(float("inf")), SKIPPED_MAX, "the loss scaler skipped 30 updates in a row"),
        ("fp32", set_a_switch, TryJob.steps, "cudnn.benchmark changed from False to True"),
        ("fp32", lambda *_: 1 / 0, 0, "the step fails by an error of Crossover, which the log shows"),
    ],
)
def test_a_try_that_ends_for_other_reasons_than_memory_is_invalid(
    tried: Callable[..., tuple[Any, Counting]], precision: str, loss: Loss, steps: int, reason: str
) -> None:
    (status, why, _), task = tried(precision, loss)
    assert (status, task.events.count("end")) == ("invalid", steps)
    assert why.startswith(reason)


def test_a_failure_in_another_precision_is_left_to_a_try_on_the_cpu_in_fp32(
    tried: Callable[..., tuple[Any, Counting]],
) -> None:
    with pytest.raises(RefusedError, match="division by zero") as refused:
        tried("bf16", lambda *_: 1 / 0)
    assert refused.value.mistake == "ZeroDivisionError: division by zero"


Tries = list[tuple[int, bool]]


def searched(fits: Callable[[int], bool], start: int, limit: int | None) -> tuple[int | None, Tries]:
    """The largest size, and the tries in order."""
    tries: Tries = []

    def recorded(size: int) -> bool:
        tries.append((size, fits(size)))
        return tries[-1][1]

    return find_largest(recorded, start, limit), tries


def most_tries(size: int) -> int:
    """An upper bound of the tries: doubling, bisection, confirmation, then steps down and bisection, all confirmed."""
    bits = math.ceil(math.log2(size)) + 1
    return 2 * bits + CONFIRMATIONS + 2 * bits * (1 + CONFIRMATIONS)


@pytest.mark.parametrize("start", [1, 2, 3, 8, 40, 64])
@pytest.mark.parametrize("limit", [1, 7, 63, 64, 100])
def test_every_threshold_is_found(start: int, limit: int) -> None:
    for threshold in range(limit + 10):
        largest, tries = searched(lambda size, most=threshold: size <= most, start, limit)
        assert largest == (min(threshold, limit) or None)
        assert threshold >= limit or (threshold + 1, False) in tries


def test_there_is_no_largest_size_if_none_fits_twice() -> None:
    seen: Counter[int] = Counter()

    def fits(size: int) -> bool:
        seen[size] += 1
        return seen[size] == 1 and size <= 50_000

    largest, tries = searched(fits, 1, None)
    assert largest is None
    assert len(tries) <= most_tries(50_000)


def test_without_a_limit_the_number_of_tries_is_logarithmic() -> None:
    for power in range(1, 40):
        largest, tries = searched(lambda size, most=3**power: size <= most, 1, None)
        assert largest == 3**power
        assert len(tries) <= 2 * (math.ceil(power * math.log2(3)) + 1) + CONFIRMATIONS


def test_near_a_blurred_threshold_the_largest_size_fitted_three_times() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        largest, tries = searched(lambda size, chance=chance: chance.random() < (1100 - size) / 200, 16, 1 << 20)
        assert largest is not None
        assert 850 < largest < 1100
        assert min(size for size, fitted in tries if not fitted) == largest + 1
        assert Counter(tries)[largest, True] >= 3
        assert len(tries) <= most_tries(2048)
