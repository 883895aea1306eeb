from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score

from crossover.errors import UserError
from crossover.tables.columns import Training
from crossover.tables.frames import records
from crossover.tables.registry import QUALITY_METRICS
from crossover.topics.quality.table import compared_cells, mean_over_seeds_and_rows, quality_table, scores_of_rows

LABELS = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
PREDICTED = [0, 0, 0, 0, 0, 1, 1, 1, 0, 0]


def training(predictions: Sequence[int] | None = PREDICTED, **values: Any) -> dict[str, Any]:
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


def test_the_metrics_of_a_training_by_hand() -> None:
    """Background: 5 of 6 rows correct, 7 rows predicted; signal: 2 of 4 rows correct, 3 rows predicted."""
    gpu_predictions = [0, 0, 0, 0, 0, 1, 1, 1, 0, 1]
    rows = [training(), training(gpu_predictions, device="cuda")]
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


def test_too_few_class_names_are_an_error() -> None:
    with pytest.raises(UserError, match=r"quality\.yaml: quality\.classes: 1 names, but the data have 2 classes"):
        quality_table(pd.DataFrame([training()]), {"quality": ["background"]})


def accurate(device: str, precision: str, right: Sequence[int], **others: Any) -> list[dict[str, Any]]:
    """One training per seed; its number in `right` is how many of 100 rows it predicts correctly. Classes alternate."""
    labels = np.arange(100) % 2
    return [
        training(device=device, precision=precision, seed=seed, **others)
        | {"labels": labels, "predictions": np.where(np.arange(100) < count, labels, 1 - labels)}
        for seed, count in enumerate(right, 1)
    ]


BASELINE = accurate("cpu", "fp32", [70, 75, 80])


def cells(*groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return records(compared_cells(quality_table(pd.DataFrame([row for group in groups for row in group]), {})))


def test_a_seed_is_compared_with_itself_only() -> None:
    """Seed 2 is missing on the GPU; the differences are -0.01 and -0.03, regardless of the spread of seeds."""
    gpu = accurate("cuda", "fp32", [69, 0, 77])
    gpu[1]["status"] = "oom"
    (cell,) = cells(BASELINE, gpu)
    assert (cell["device"], cell["seeds_compared"]) == ("cuda", 2)
    assert cell["accuracy_difference"] == pytest.approx(-0.02)


def test_the_interval_of_two_seeds_and_four_rows_by_hand() -> None:
    """The means of the seeds are 0.25 and 0, of the rows 1, -0.5, 0 and 0; four rows that differ by 1 are added."""
    differences = np.array([[1.0, 0, 0, 0], [1, -1, 0, 0]])
    interval = mean_over_seeds_and_rows(differences)
    of_seeds = stats.t.ppf(0.975, 1) * math.sqrt((0.125**2 + 0.125**2) / 2)
    of_rows = stats.norm.ppf(0.975) * math.sqrt(0.875**2 + 0.625**2 + 2 * 0.125**2 + 4) / 4
    half = math.sqrt(of_seeds**2 + of_rows**2)
    assert [interval.mean, interval.low, interval.high] == pytest.approx([0.125, 0.125 - half, 0.125 + half])
    assert mean_over_seeds_and_rows(differences[:1]).low is None


@pytest.mark.parametrize("seeds", [2, 5])
def test_equal_predictions_have_an_interval_of_about_four_rows(seeds: int) -> None:
    """At the exact binomial limit of the share of differing rows, none of 360 rows differs in 2.5 % of cases."""
    interval = mean_over_seeds_and_rows(np.zeros((seeds, 360)))
    exact = 1 - 0.025 ** (1 / 360)
    assert interval.high is not None
    assert exact < interval.high < 1.1 * exact
    assert interval.low == -interval.high
    (cell,) = cells(accurate("cpu", "fp32", [70] * seeds), accurate("cuda", "fp32", [70] * seeds))
    assert cell["accuracy_difference_high"] == -cell["accuracy_difference_low"] == pytest.approx(1.959964 * 2 / 100)


def test_simultaneous_intervals_of_cells_are_wider() -> None:
    gpu = accurate("cuda", "fp32", [70, 75, 80])
    (alone,) = cells(BASELINE, gpu)
    first, second = cells(BASELINE, gpu, accurate("cuda", "bf16", [70, 75, 80]))
    assert first["accuracy_difference_high"] == second["accuracy_difference_high"]
    assert first["accuracy_difference_high"] / alone["accuracy_difference_high"] == pytest.approx(
        stats.norm.ppf(1 - 0.025 / 2) / stats.norm.ppf(0.975)
    )


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_scores_of_rows_have_the_metrics_as_means_and_their_sampling_error(share: float) -> None:
    """The metrics are scikit-learn's, and those of 200 simulated datasets have the spread that the scores predict."""
    random = np.random.default_rng(3)

    def draw() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        labels = (random.random(600) < share).astype(int)
        return labels, np.where(random.random(600) < 0.85, labels, 1 - labels)

    metrics: dict[str, list[float]] = {name: [] for name in QUALITY_METRICS}
    errors: dict[str, list[float]] = {name: [] for name in QUALITY_METRICS}
    for number in range(200):
        labels, predictions = draw()
        scores = scores_of_rows(labels, predictions, 2)
        if number < 5:
            assert {name: scores[name].mean() for name in QUALITY_METRICS} == pytest.approx(
                {
                    "accuracy": accuracy_score(labels, predictions),
                    "macro_f1": f1_score(labels, predictions, average="macro"),
                    "weighted_f1": f1_score(labels, predictions, average="weighted"),
                }
            )
        for name in QUALITY_METRICS:
            metrics[name].append(scores[name].mean())
            errors[name].append(scores[name].std() / math.sqrt(600))
    for name in QUALITY_METRICS:
        assert np.std(metrics[name]) == pytest.approx(np.mean(errors[name]), rel=0.15)


@pytest.mark.parametrize(("rows", "seeds"), [(360, 3), (899, 5), (10_000, 3)])
@pytest.mark.parametrize("shared", [0.0, 1.0])
@pytest.mark.parametrize("spread", [0.0, 0.005])
def test_coverage(rows: int, seeds: int, shared: float, spread: float) -> None:
    """At least 95 % of intervals contain the true difference, and at most 5 % show a difference where there is none,
    within three standard errors. The differing rows are the same for all seeds or drawn per seed, and the difference
    itself may vary between seeds.
    """
    random = np.random.default_rng(rows + seeds)
    simulations = 300
    error = 3 * math.sqrt(0.95 * 0.05 / simulations)
    for difference in (0.0, 0.01):
        covered = called = 0
        for _ in range(simulations):
            interval = mean_over_seeds_and_rows(_drawn(random, seeds, rows, difference, shared, spread))
            assert interval.low is not None
            assert interval.high is not None
            covered += interval.low <= difference <= interval.high
            called += interval.low > 0 or interval.high < 0
        assert covered / simulations >= 0.95 - error
        assert difference or called / simulations <= 0.05 + error


def _drawn(
    random: np.random.Generator, seeds: int, rows: int, difference: float, shared: float, spread: float
) -> NDArray[np.float64]:
    """Differences in correctness by seed and row; one row in 50 differs, or as many as the difference needs."""
    true = difference + random.normal(0, spread, (seeds, 1))
    differing = np.maximum(0.02, np.abs(true))
    uniform = random.random((seeds, rows))
    uniform = np.where(random.random((1, rows)) < shared, random.random((1, rows)), uniform)
    better, worse = uniform < (differing + true) / 2, uniform > 1 - (differing - true) / 2
    return better.astype(float) - worse
