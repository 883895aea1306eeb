from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crossover.answers.quality_words import NO_BASELINE, quality_answer, quality_view, reports_text, short_quality
from crossover.errors import UserError
from crossover.statistics.quality import (
    QUALITY_COLUMNS,
    compare_quality,
    quality_table,
    report_of,
)
from crossover.statistics.quality_pairs import difference_over_seeds
from crossover.tables.columns import Training
from crossover.tables.frames import CELL_AXES
from crossover.tables.row_files import write_record
from summarise_quality import summarise_quality, trained_rows

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


def test_the_report_agrees_with_counts_by_hand() -> None:
    """Of 6 background rows 5 are found, among 7 predictions; of 4 signal rows 2 are found, among 3."""
    report = report_of(LABELS, PREDICTED, ["background", "signal"])
    assert report["background"] == pytest.approx(
        {"precision": 5 / 7, "recall": 5 / 6, "f1-score": 2 * 5 / (7 + 6), "support": 6}
    )
    assert report["signal"] == pytest.approx(
        {"precision": 2 / 3, "recall": 2 / 4, "f1-score": 2 * 2 / (3 + 4), "support": 4}
    )
    assert report["accuracy"] == pytest.approx(7 / 10)


def test_a_training_is_one_row_of_metrics() -> None:
    other = [0, 0, 0, 0, 0, 1, 1, 1, 0, 1]
    table = quality_table(
        pd.DataFrame([training(), training(other, device="cuda")]), {"quality": ["background", "signal"]}
    )
    assert list(table.columns) == [*CELL_AXES, *QUALITY_COLUMNS]
    first, second = table.to_dict("records")
    assert first["accuracy"] == pytest.approx(0.7)
    assert first["macro_f1"] == pytest.approx((10 / 13 + 4 / 7) / 2)
    assert first["weighted_f1"] == pytest.approx(0.6 * 10 / 13 + 0.4 * 4 / 7)
    assert first["class_names"] == ["background", "signal"]
    assert first["class_precision"] == pytest.approx([5 / 7, 2 / 3])
    assert first["class_recall"] == pytest.approx([5 / 6, 1 / 2])
    assert first["class_support"] == [6, 4]
    assert (first["differing_share"], first["predicted_classes"], first["loss"]) == (0, 2, 0.5)
    assert second["accuracy"] == pytest.approx(0.8)
    assert second["differing_share"] == pytest.approx(0.1)


def test_a_class_that_is_never_predicted_has_precision_0_and_counts() -> None:
    (row,) = quality_table(pd.DataFrame([training([0] * 10)]), {}).to_dict("records")
    assert row["class_names"] == ["0", "1"]
    assert row["class_precision"] == [0.6, 0.0]
    assert row["macro_f1"] == pytest.approx((2 * 6 / 16) / 2)
    assert row["predicted_classes"] == 1


def test_a_training_that_did_not_end_ok_has_no_metrics() -> None:
    rows = [training(), training(None, device="cuda", status="oom", reason="8 GB wanted", loss=None)]
    failed = quality_table(pd.DataFrame(rows), {}).to_dict("records")[1]
    assert (failed["status"], failed["reason"]) == ("oom", "8 GB wanted")
    assert pd.isna([failed["accuracy"], failed["differing_share"], failed["predicted_classes"]]).all()


def test_too_few_names_of_classes_are_the_users_mistake() -> None:
    with pytest.raises(UserError, match=r"quality\.yaml: quality\.classes: 1 names, but the data have 2 classes"):
        quality_table(pd.DataFrame([training()]), {"quality": ["background"]})


def test_the_interval_is_students() -> None:
    values = [0.004, -0.001, 0.002, 0.003, -0.0005]
    found = difference_over_seeds(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found.mean == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.largest, found.seeds) == (0.004, 5)
    assert difference_over_seeds([0.1, -0.3]).largest == -0.3


def test_one_seed_gives_no_interval() -> None:
    found = difference_over_seeds([0.25])
    assert (found.mean, found.low, found.high, found.seeds) == (0.25, None, None, 1)


def test_seeds_that_agree_have_an_interval_without_width() -> None:
    found = difference_over_seeds([0.25, 0.25, 0.25])
    assert (found.low, found.mean, found.high) == (0.25, 0.25, 0.25)


def metrics(device: str, precision: str, values: Sequence[float], **others: Any) -> list[dict[str, Any]]:
    """Rows of quality, one a seed, whose metrics all have one value."""
    return [
        training(device=device, precision=precision, seed=seed, **others)
        | {"accuracy": value, "macro_f1": value, "weighted_f1": value, "predicted_classes": 2, "differing_share": 0.01}
        for seed, value in enumerate(values, 1)
    ]


BASELINE = metrics("cpu", "fp32", [0.70, 0.75, 0.80])


def test_a_seed_is_compared_with_itself_only() -> None:
    """Seed 2 is missing on the GPU; the differences are 0.01 and 0.03, whatever the seeds' own spread."""
    gpu = metrics("cuda", "fp32", [0.71, 0.0, 0.83])
    gpu[1]["status"] = "oom"
    (found,) = compare_quality(pd.DataFrame(BASELINE + gpu))
    assert found.accelerated
    difference = found.metrics["accuracy"]
    half = float(stats.t.ppf(0.975, 1)) * 0.01
    assert (difference.mean, difference.seeds) == (pytest.approx(0.02), 2)
    assert (difference.low, difference.high) == (pytest.approx(0.02 - half), pytest.approx(0.02 + half))


def test_models_of_other_sizes_are_not_mixed() -> None:
    larger = metrics("cpu", "fp32", [0.5, 0.5], size=200) + metrics("cuda", "fp32", [0.6, 0.6], size=200)
    found = compare_quality(pd.DataFrame(BASELINE + metrics("cuda", "fp32", [0.7, 0.75]) + larger))
    assert {one.axes["size"]: round(one.metrics["accuracy"].mean, 6) for one in found} == {100: 0.0, 200: 0.1}


def answer(*groups: list[dict[str, Any]]) -> str:
    return quality_answer(pd.DataFrame([row for group in groups for row in group]))


def test_a_gpu_that_changes_nothing_does_not_improve_the_model() -> None:
    text = answer(
        BASELINE,
        metrics("cuda", "fp32", [0.7001, 0.7501, 0.8001]),
        metrics("cuda", "tf32", [0.6996, 0.7498, 0.7997]),
        metrics("cpu", "amp-bf16", [0.6, 0.65, 0.7]),
    )
    assert text.startswith("Using a GPU does not improve the model: ")
    half = float(stats.t.ppf(0.975, 2)) * np.std([-4e-4, -2e-4, -3e-4], ddof=1) / np.sqrt(3)
    assert (
        f"is -0.00030 (95 % interval {-3e-4 - half:+.5f} to {-3e-4 + half:+.5f}) in accuracy (GPU in tf32; mean over "
        "3 seeds); the largest of a single seed is -0.00040." in text
    )
    assert "standard deviation of 0.05000" in text


def test_a_gpu_that_makes_the_model_better_or_worse_is_said_so() -> None:
    better, worse = metrics("cuda", "fp32", [0.72, 0.77, 0.82]), metrics("cuda", "amp-fp16", [0.6, 0.65, 0.7])
    assert answer(BASELINE, better).startswith("Using a GPU changes the model for the better (GPU in fp32).")
    assert answer(BASELINE, better, worse).startswith(
        "Using a GPU changes the model for the better (GPU in fp32), and makes it worse (GPU in amp-fp16)."
    )
    assert answer(BASELINE, worse).startswith(
        "Using a GPU does not improve the model, but makes it worse (GPU in amp-fp16)."
    )


def test_seeds_that_differ_too_much_decide_nothing() -> None:
    text = answer(BASELINE, metrics("cuda", "fp32", [0.60, 0.85, 0.80]))
    assert text.startswith("Whether using a GPU improves the model is not decided")
    worse = metrics("cuda", "amp-fp16", [0.6, 0.65, 0.7])
    said = answer(BASELINE, metrics("cuda", "fp32", [0.60, 0.85, 0.80]), worse)
    assert "so much do seeds differ (GPU in fp32); it surely makes it worse (GPU in amp-fp16)." in said


def test_without_an_interval_nothing_is_claimed() -> None:
    text = answer(BASELINE[:1], metrics("cuda", "fp32", [0.70]))
    assert text.startswith("Whether using a GPU improves the model takes two seeds")
    assert "mean over 1 seed)" in text
    assert "standard deviation" not in text


def test_without_a_gpu_nothing_is_claimed_of_one() -> None:
    lacking = metrics("cuda", "fp32", [0.7])
    lacking[0]["status"] = "oom"
    text = answer(BASELINE, lacking, metrics("cpu", "amp-bf16", [0.70, 0.75, 0.81]))
    assert text.startswith("Whether using a GPU improves the model is not testable here: only CPU trainings ended ok.")
    assert "(CPU in amp-bf16; mean over 3 seeds)" in text


def test_without_the_cpu_in_fp32_there_is_nothing_to_compare_with() -> None:
    assert answer(metrics("cuda", "fp32", [0.7, 0.7])) == NO_BASELINE


def test_models_that_have_learnt_nothing_are_told() -> None:
    rows = [row | {"predicted_classes": 1} for row in [*BASELINE, *metrics("cuda", "fp32", [0.70, 0.75, 0.80])]]
    assert "no model predicts more than one class" in answer(rows)
    assert "no model predicts" not in answer(BASELINE)


def test_the_verdict_alone_keeps_its_warning() -> None:
    same = pd.DataFrame([*BASELINE, *metrics("cuda", "fp32", [0.70, 0.75, 0.80])])
    verdict = "Using a GPU does not improve the model: in every precision each metric gains less than 0.005."
    assert short_quality(same) == verdict
    assert short_quality(same.assign(predicted_classes=1)).startswith(f"{verdict} But no model predicts more than one")
    assert short_quality(pd.DataFrame(BASELINE)).startswith("Whether using a GPU improves the model is not testable")
    assert short_quality(same[same["device"] == "cuda"]) == NO_BASELINE


def test_the_reports_table_has_one_row_a_cell() -> None:
    lacking = metrics("cpu", "tf32", [0.0], reason="tf32 needs an NVIDIA GPU")
    lacking[0]["status"] = "unsupported"
    rows = quality_view(pd.DataFrame(BASELINE + metrics("cuda", "fp32", [0.71, 0.76, 0.81]) + lacking))
    baseline, gpu, failed = rows
    assert (baseline["seeds"], baseline["means"]["accuracy"], baseline["difference"]) == (3, "0.75000", "")
    assert gpu["difference"] == "+0.01000 (95 % interval +0.01000 to +0.01000)"
    assert gpu["differing"] == "1.000 %"
    assert (failed["seeds"], failed["note"]) == (0, "unsupported: tf32 needs an NVIDIA GPU")


def test_the_text_holds_every_report_and_the_verdict() -> None:
    rows = pd.DataFrame([training(), training(None, precision="tf32", status="unsupported", reason="no such GPU")])
    text = reports_text(rows, quality_table(rows, {"quality": ["background", "signal"]}))
    assert "device cpu, seed 1" in text
    assert "  background     0.7143    0.8333    0.7692         6" in text
    assert "unsupported: no such GPU" in text
    assert text.rstrip().splitlines()[-1].startswith("quality: Whether using a GPU improves the model is not testable")


def test_rows_become_a_table_and_a_text(tmp_path: Path) -> None:
    paths = [tmp_path / f"seed-{seed}.parquet" for seed in (2, 1)]
    for path, seed in zip(paths, (2, 1), strict=True):
        write_record(Training(**training(None, seed=seed) | {"labels": LABELS, "predictions": PREDICTED}), path)
    outputs = [tmp_path / name for name in ("quality.parquet", "quality.csv", "quality.txt")]
    summarise_quality(trained_rows(paths, False), {"quality": None}, *outputs)
    assert pd.read_parquet(outputs[0])["seed"].tolist() == [1, 2]
    assert pd.read_csv(outputs[1])["accuracy"].tolist() == pytest.approx([0.7, 0.7])
    assert outputs[2].read_text().count("device cpu, seed") == 2


def test_a_run_without_trained_models_says_so() -> None:
    with pytest.raises(UserError, match="studies: none of this run compares quality; add `quality`"):
        trained_rows([], False)
