from __future__ import annotations

import pytest
import torch

from crossover.measurement.batch_try import time_batches, with_rows
from fake_device import MILLISECOND, SECOND, FakeDevice

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
