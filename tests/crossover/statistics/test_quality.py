from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crossover.errors import UserError
from crossover.statistics.quality import quality_pairs_of, quality_table
from crossover.tables.columns import Training
from crossover.tables.frames import records
from crossover.tables.registry import QUALITY_METRICS

LABELS = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
PREDICTED = [0, 0, 0, 0, 0, 1, 1, 1, 0, 0]


def training(predictions: Sequence[int] | None = PREDICTED, **values: Any) -> dict[str, Any]:
    """The row of a training."""
    plain: dict[str, Any] = {
        "schema_version": Training.schema_version,
        "study": "quality",
        "workload": "higgs_mlp",
        "variant": "plain",
        "protocol": "resident",
        "batch_size": 32,
        "precision": "fp32",
        "execution": "eager",
        "size": 100,
        "machine": "here",
        "device": "cpu",
        "seed": 1,
        "status": "ok",
        "labels": np.array(LABELS) if predictions else None,
        "predictions": np.array(predictions) if predictions else None,
        "loss": 0.5,
        "device_name": "Brand C1",
    }
    return {f.name: None for f in fields(Training)} | plain | values


def test_a_training_is_one_row_of_metrics_counted_by_hand() -> None:
    """Of 6 background rows 5 are found, among 7 predictions; of 4 signal rows 2 are found, among 3."""
    other = [0, 0, 0, 0, 0, 1, 1, 1, 0, 1]
    rows = [training(), training(other, device="cuda")]
    table = quality_table(pd.DataFrame(rows), {"quality": ["background", "signal"]})
    first, second = records(table)
    assert first["accuracy"] == pytest.approx(0.7)
    assert first["macro_f1"] == pytest.approx((10 / 13 + 4 / 7) / 2)
    assert first["weighted_f1"] == pytest.approx(0.6 * 10 / 13 + 0.4 * 4 / 7)
    assert first["class_names"] == ["background", "signal"]
    assert first["class_precision"] == pytest.approx([5 / 7, 2 / 3])
    assert first["class_recall"] == pytest.approx([5 / 6, 1 / 2])
    assert first["class_f1"] == pytest.approx([10 / 13, 4 / 7])
    assert first["class_support"] == [6, 4]
    assert (first["differing_share"], first["predicted_classes"], first["loss"]) == (0, 2, 0.5)
    assert (second["accuracy"], second["differing_share"]) == (pytest.approx(0.8), pytest.approx(0.1))


def test_a_class_that_is_never_predicted_has_precision_0_and_counts() -> None:
    (row,) = records(quality_table(pd.DataFrame([training([0] * 10)]), {}))
    assert row["class_names"] == ["0", "1"]
    assert row["class_precision"] == [0.6, 0.0]
    assert row["macro_f1"] == pytest.approx((2 * 6 / 16) / 2)
    assert row["predicted_classes"] == 1


def test_a_training_that_did_not_end_ok_has_no_metrics() -> None:
    rows = [training(), training(None, device="cuda", status="oom", reason="8 GB wanted", loss=None)]
    failed = records(quality_table(pd.DataFrame(rows), {}))[1]
    assert (failed["status"], failed["reason"]) == ("oom", "8 GB wanted")
    assert [failed[name] for name in ("accuracy", "differing_share", "predicted_classes")] == [None] * 3


def test_too_few_names_of_classes_are_the_users_mistake() -> None:
    with pytest.raises(UserError, match=r"quality\.yaml: quality\.classes: 1 names, but the data have 2 classes"):
        quality_table(pd.DataFrame([training()]), {"quality": ["background"]})


def metrics(device: str, precision: str, values: Sequence[float], **others: Any) -> list[dict[str, Any]]:
    """Rows of quality, one a seed, whose metrics all have one value."""
    return [
        training(device=device, precision=precision, seed=seed, **others) | dict.fromkeys(QUALITY_METRICS, value)
        for seed, value in enumerate(values, 1)
    ]


BASELINE = metrics("cpu", "fp32", [0.70, 0.75, 0.80])


def pairs(*groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return records(quality_pairs_of(pd.DataFrame([row for group in groups for row in group])))


def test_a_seed_is_compared_with_itself_only() -> None:
    """Seed 2 is missing on the GPU; the differences are -0.01 and -0.03, whatever the seeds' own spread."""
    gpu = metrics("cuda", "fp32", [0.69, 0.0, 0.77])
    gpu[1]["status"] = "oom"
    found = pairs(BASELINE, gpu)
    assert [one["metric"] for one in found] == list(QUALITY_METRICS)
    half = float(stats.t.ppf(0.975, 1)) * 0.01
    for one in found:
        assert (one["device"], one["seeds"], one["largest"]) == ("cuda", 2, pytest.approx(-0.03))
        assert one["difference"] == pytest.approx(-0.02)
        assert [one["difference_low"], one["difference_high"]] == pytest.approx([-0.02 - half, -0.02 + half])


def test_models_of_other_sizes_are_not_mixed() -> None:
    larger = metrics("cpu", "fp32", [0.5, 0.5], size=200) + metrics("cuda", "fp32", [0.6, 0.6], size=200)
    found = pairs(BASELINE, metrics("cuda", "fp32", [0.7, 0.75]), larger)
    assert {one["size"]: one["difference"] for one in found} == {100: pytest.approx(0), 200: pytest.approx(0.1)}


def test_without_the_cpu_in_fp32_or_anything_beside_it_there_is_no_pair() -> None:
    assert pairs(BASELINE) == []
    assert pairs(metrics("cuda", "fp32", [0.7])) == []
