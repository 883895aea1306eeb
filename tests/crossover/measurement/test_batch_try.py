from __future__ import annotations

import torch

from crossover.measurement.batch_try import with_rows

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
