"""Each form of claim on made-up measurements that do, do not, and do not clearly bear it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.claims.claims import check_claims
from crossover.claims.findings import REASONS, VERDICTS
from crossover.errors import UserError
from crossover.statistics.crossovers import crossovers_of
from crossover.statistics.quality import quality_pairs_of, quality_table
from crossover.statistics.ratios import ratios_of
from crossover.tables.columns import Training
from crossover.tables.registry import TABLES
from crossover.tables.run_tables import RunTables, run_tables

pytestmark = pytest.mark.filterwarnings("error")

Row = Callable[..., dict[str, Any]]
PowerLaws = Callable[..., pd.DataFrame]

SPEEDUP = {"speedup_between": {"slow": {"device": "cpu"}, "fast": {"device": "cuda"}, "range": [4, 5]}}
SIDES = {"of": {"device": "cpu"}, "over": {"device": "cuda"}}
TWO_METRICS = {"of": {"metric": "latency_p50_s", "size": 1}, "over": {"metric": "latency_p99_s", "size": 2}}


def tables_of(rows: Sequence[dict[str, Any]] | pd.DataFrame, trainings: pd.DataFrame | None = None) -> RunTables:
    measurements = pd.DataFrame(rows)
    crossovers = crossovers_of(measurements, dict.fromkeys(measurements["study"], "parameters"))
    trained = (
        {}
        if trainings is None
        else {"quality": quality_table(trainings, {}), "quality_pairs": quality_pairs_of(trainings, {})}
    )
    return run_tables(measurements=measurements, crossovers=crossovers, ratios=ratios_of(measurements), **trained)


def verdict(form: dict[str, Any], tables: RunTables | Sequence[Any] | pd.DataFrame, **others: Any) -> dict[str, Any]:
    """The one row of the table for one claim."""
    claim = {"study": "disc_depth", "statement": "what is said", "source": "Somebody (2019)", **form}
    known = tables if isinstance(tables, RunTables) else tables_of(tables)
    (found,) = check_claims([claim], known, **others).to_dict("records")
    assert (found["verdict"] in VERDICTS, found["reason"] in REASONS) == (True, True)
    return {str(name): None if pd.isna(value) else value for name, value in found.items()}


def outcome(found: dict[str, Any]) -> tuple[Any, Any, Any]:
    return found["verdict"], found["reason"], found["place"]


def trials(row: Row, time_s: float, spread: float, **values: Any) -> list[dict[str, Any]]:
    """Two trials, the logarithms of whose times lie `spread` below and above that of `time_s`."""
    return [
        row(trial=number, step_time_s=time_s * math.exp(sign * spread), **values) for number, sign in ((1, -1), (2, 1))
    ]


def pair(row: Row, ratio: float, spread: float = 0.01) -> list[dict[str, Any]]:
    return [*trials(row, ratio * 1e-3, spread, device="cpu"), *trials(row, 1e-3, spread, device="cuda")]


@pytest.mark.parametrize(
    ("ratio", "spread", "expected"),
    [
        (4.5, 0.01, ("reproduced", "inside")),
        (4.9, 0.01, ("not_testable", "straddles")),
        (4.5, 0.05, ("not_testable", "straddles")),  # a wide interval around the claimed value proves nothing
        (6.0, 0.01, ("differs", "outside")),
    ],
)
def test_a_speedup_by_hand(row: Row, ratio: float, spread: float, expected: tuple[str, str]) -> None:
    """Each side's mean log has variance spread^2; Welch: 2 degrees of freedom, t = 4.302653, times sqrt(2) x spread."""
    found = verdict(SPEEDUP, pair(row, ratio, spread))
    factor = math.exp(4.302653 * math.sqrt(2) * spread)
    assert (found["verdict"], found["reason"]) == expected
    measured = [found[name] for name in ("measured", "measured_low", "measured_high")]
    assert measured == pytest.approx([ratio, ratio / factor, ratio * factor])
    assert (found["published"], found["tested_low"], found["tested_high"]) == ("4 to 5", 4, 5)


def test_one_trial_shows_its_value_and_no_verdict(row: Row) -> None:
    found = verdict(SPEEDUP, [row(device="cpu", step_time_s=4.5e-3), row(device="cuda", step_time_s=1e-3)])
    assert (*outcome(found), found["measured"]) == ("not_testable", "one_trial", None, pytest.approx(4.5))


@pytest.mark.parametrize(
    ("where", "changes", "expected"),
    [
        ({}, {"device": "cpu"}, ("no_cell", "GPU")),
        ({"variant": "channels_last", "size": 2000}, {}, ("no_cell", "channels last")),
        ({}, {"status": "oom", "step_time_s": None}, ("not_ok", "GPU: oom")),
    ],
)
def test_what_is_missing_is_named(
    row: Row, where: dict[str, Any], changes: dict[str, Any], expected: tuple[str, str]
) -> None:
    """Of four trials the last two, on the GPU, are changed."""
    rows = pair(row, 4.5)
    rows[2:] = [one | changes for one in rows[2:]]
    found = verdict({"speedup_between": {**SPEEDUP["speedup_between"], "where": where}}, rows)
    assert outcome(found) == ("not_testable", *expected)


@pytest.mark.parametrize("form", [SPEEDUP, {"crossover_between": {"range": [1, 2]}}])
def test_a_study_that_nothing_measured_is_not_testable(row: Row, form: dict[str, Any]) -> None:
    for tables in (run_tables(), tables_of(trials(row, 1e-3, 0.01, study="other"))):
        assert outcome(verdict(form, tables)) == ("not_testable", "no_rows", None)


def test_a_selection_of_several_cells_names_the_axes_to_pin(row: Row) -> None:
    rows = [*pair(row, 4.5), *trials(row, 1.0, 0.01, size=7, precision="tf32")]
    with pytest.raises(UserError, match="differ in precision, size; pin precision, size in 'where'"):
        verdict(SPEEDUP, rows)


@pytest.mark.parametrize(
    ("name", "claimed", "expected"),
    [
        ("ratio_between", {"range": [1.168, 1.2]}, "reproduced"),  # its ends count as within
        ("ratio_between", {"range": [0.5, 1.167]}, "differs"),
        ("ratio_below", {"limit": 1.169}, "reproduced"),
        ("ratio_below", {"limit": 1.168}, "differs"),  # equal is not below
    ],
)
def test_the_same_bytes_in_every_trial_are_an_interval_of_no_width(
    row: Row, name: str, claimed: dict[str, Any], expected: str
) -> None:
    rows = [
        row(trial=trial, precision=precision, peak_allocated_bytes=count)
        for precision, count in (("fp32", 1000), ("amp-fp16", 1168))
        for trial in (1, 2)
    ]
    sides = {"of": {"precision": "amp-fp16"}, "over": {"precision": "fp32"}, "where": {"device": "cpu"}}
    found = verdict({name: {"metric": "peak_allocated_bytes", **sides, **claimed}}, rows)
    assert found["verdict"] == expected
    assert found["measured_low"] == found["measured"] == found["measured_high"] == pytest.approx(1.168)


def test_two_metrics_of_one_cell_are_paired_by_trial(row: Row) -> None:
    """Ratios 2 / e^0.01, 2, 2 e^0.01 of means of lists: t(0.975, 2) = 4.302653 over sqrt(3)."""
    rows = [
        row(trial=trial, latencies_s=[0.5 * scale, 1.5 * scale], latency_p50_s=2 * scale * math.exp(0.01 * step))
        for trial, scale, step in ((1, 1.0, -1), (2, 30.0, 0), (3, 0.2, 1))
    ]
    form = {"of": {"metric": "latency_p50_s"}, "over": {"metric": "latencies_s"}, "range": [1.9, 2.1]}
    found = verdict({"ratio_between": {**form, "where": {"device": "cpu"}}}, rows)
    assert (found["verdict"], found["measured"]) == ("reproduced", pytest.approx(2))
    assert found["measured_high"] == pytest.approx(2 * math.exp(0.01 * 4.302653 / math.sqrt(3)))
    apart = [row(trial=1, latency_p50_s=1.0), row(trial=2, latencies_s=[1.0])]
    assert verdict({"ratio_between": form}, apart)["reason"] == "no_common_trial"


@pytest.mark.parametrize(("value", "reason"), [(None, "not_measured"), (0.0, "zero")])
def test_a_metric_without_a_ratio_is_named(row: Row, value: float | None, reason: str) -> None:
    rows = [one | {"relative_error": value} for one in pair(row, 4.5)]
    found = verdict({"ratio_between": {"metric": "relative_error", **SIDES, "range": [1, 2]}}, rows)
    assert outcome(found) == ("not_testable", reason, "relative_error, CPU")


@pytest.mark.parametrize(
    ("metric", "steps", "ratio"),
    [
        ("samples_per_s", None, 2 / 3),
        ("run_time_s", {"epochs": 4, "samples": 250}, 3 * 2 / 3),
        ("run_time_s", 7, 3),
    ],
)
def test_samples_per_second_and_the_time_of_a_run_are_derived(row: Row, metric: str, steps: Any, ratio: float) -> None:
    """Twice the batch in three times the step; a run has ceil(250 / batch) steps an epoch."""
    rows = [*trials(row, 1e-3, 0, batch_size=100), *trials(row, 3e-3, 0, batch_size=200)]
    sides = {"of": {"batch_size": 200}, "over": {"batch_size": 100}, "range": [1, 2]}
    found = verdict({"ratio_between": {"metric": metric, **sides}}, rows, steps_per_run={"disc_depth": steps})
    assert found["measured"] == pytest.approx(ratio)


def test_samples_per_second_count_what_came(row: Row) -> None:
    """Half of a batch of 200 in three times the step of a whole batch of 100."""
    half = trials(row, 3e-3, 0, batch_size=200, samples_per_step=100.0)
    sides = {"of": {"batch_size": 200}, "over": {"batch_size": 100}, "range": [0.3, 0.4]}
    found = verdict(
        {"ratio_between": {"metric": "samples_per_s", **sides}}, [*trials(row, 1e-3, 0, batch_size=100), *half]
    )
    assert found["measured"] == pytest.approx(1 / 3)


def crossover(low: float, high: float, **where: Any) -> dict[str, Any]:
    return {"crossover_between": {"range": [low, high], "where": where}}


SIZES = {2: 100, 3: 500, 4: 2000, 5: 100_000}
"""Parameters by size; `power_laws` has the CPU and the GPU take the same time at 1000, trials 1 % apart."""


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (500, 2000, "reproduced"),
        (990, 2000, "not_testable"),
        (500, 1010, "not_testable"),
        (2000, 100_000, "differs"),
    ],
)
def test_a_crossover_is_tested_on_its_set(power_laws: PowerLaws, low: float, high: float, expected: str) -> None:
    """Halfway between 500 and 2000 the standard error is ln(1.01) / sqrt(3), with 8 degrees: t(0.98, 8) = 2.449."""
    found = verdict(crossover(low, high), power_laws(SIZES, trials=3))
    ends = [1000 * 1.01 ** (sign * 2.449 / math.sqrt(3)) for sign in (-1, 1)]
    assert (found["verdict"], found["measured"]) == (expected, pytest.approx(1000))
    assert (found["x_axis"], found["unit"]) == ("parameters", "parameters")
    assert [found["measured_low"], found["measured_high"]] == pytest.approx(ends, rel=1e-4)


def test_a_size_that_the_trials_do_not_tell_apart_bounds_nothing(power_laws: PowerLaws) -> None:
    """At 1010 parameters the GPU is ahead by 1 %, far less than trials that differ by 1 % can tell."""
    rows = power_laws({**SIZES, 4: 1010}, trials=3)
    found = verdict(crossover(500, 1010), rows)
    assert outcome(found) == ("not_testable", "straddles", None)
    assert 950 < found["measured_low"] < 990
    assert 1010 < found["measured_high"] < 1050
    assert verdict(crossover(500, 100_000), rows)["verdict"] == "reproduced"


def test_a_crossover_from_one_trial_lies_between_two_sizes(power_laws: PowerLaws) -> None:
    found = verdict(crossover(500, 2000), power_laws(SIZES))
    assert outcome(found) == ("not_testable", "one_trial", "500 and 2,000 parameters")
    assert (found["measured"], found["measured_low"]) == (pytest.approx(1000), None)


@pytest.mark.parametrize(
    ("gpu_s", "low", "high", "expected", "ends"),
    [
        (1e-9, 2000, 1e5, ("differs", "ahead_before", "100 parameters"), (None, 100)),
        (1e-9, 50, 1e5, ("not_testable", "below_range", "100 parameters"), (None, 100)),
        (1.0, 100, 2000, ("differs", "behind_after", "100 k parameters"), (1e5, None)),
        (1.0, 100, 1e6, ("not_testable", "above_range", "100 k parameters"), (1e5, None)),
    ],
)
def test_a_gpu_ahead_or_behind_everywhere_bounds_the_crossover(
    power_laws: PowerLaws, gpu_s: float, low: float, high: float, expected: Any, ends: Any
) -> None:
    found = verdict(crossover(low, high), power_laws(SIZES, trials=3, gpu_s=gpu_s))
    assert outcome(found) == expected
    assert (found["measured_low"], found["measured_high"]) == ends


def test_a_size_out_of_memory_within_the_bracket_leaves_the_claim_reproduced(power_laws: PowerLaws) -> None:
    rows = power_laws({**SIZES, 6: 1500}, trials=3)
    lost = (rows["size"] == 6) & (rows["device"] == "cuda")
    rows.loc[lost, ["status", "step_time_s"]] = ["oom", None]
    found = verdict(crossover(500, 2000), rows)
    assert outcome(found) == ("reproduced", "sizes_inside", "500 and 2,000 parameters")
    assert outcome(verdict(crossover(600, 2000), rows)) == ("not_testable", "incomplete", "1,500 parameters")


def test_sides_that_cross_twice_have_no_crossover(power_laws: PowerLaws) -> None:
    rows = power_laws(SIZES, trials=3)
    rows.loc[(rows["size"] == 2) & (rows["device"] == "cuda"), "step_time_s"] = 1e-9
    found = verdict(crossover(50, 200_000), rows)
    assert (*outcome(found)[:2], found["measured"]) == ("not_testable", "multiple", None)
    assert found["place"] == "358 and 1,140 parameters"  # as estimated
    assert outcome(verdict(crossover(500, 2000), rows)) == ("differs", "ahead_before", "100 parameters")


def test_a_crossover_needs_an_accelerator_and_one_line(power_laws: PowerLaws) -> None:
    rows = power_laws(SIZES, trials=3)
    only_cpu = rows[rows["device"] == "cpu"]
    assert verdict(crossover(500, 2000), only_cpu)["reason"] == "no_accelerator"
    failed = only_cpu.assign(status="oom", step_time_s=float("nan"))
    assert verdict(crossover(500, 2000), failed)["reason"] == "no_times"
    both = pd.concat([rows, power_laws(SIZES, trials=3, gpu_s=1.0, protocol="as_published")], ignore_index=True)
    with pytest.raises(UserError, match="pin protocol in 'where'"):
        verdict(crossover(500, 2000), both)
    assert verdict(crossover(500, 2000, protocol="resident"), both)["verdict"] == "reproduced"
    assert verdict(crossover(500, 2000, protocol="as_published"), both)["verdict"] == "differs"
    more = pd.concat([rows, rows[rows["device"] == "cuda"].assign(device="xpu")], ignore_index=True)
    assert outcome(verdict(crossover(500, 2000), more))[1:] == ("several_devices", "cuda and xpu")
    assert verdict(crossover(500, 2000, device="xpu"), more)["verdict"] == "reproduced"


def ratings(**accuracies: list[float | str]) -> pd.DataFrame:
    """One row a training, tested on 1,000 rows.

    Keywords are device_precision, values the accuracies of seeds 0, 1, 2, or a status.
    """
    plain = {"study": "disc_depth", "workload": "disc_mlp", "variant": "plain", "protocol": "resident"}
    plain |= {"execution": "eager", "machine": "here", "generated_data": False}
    numbers = np.arange(1000)
    labels = numbers % 2
    rows = [
        {**plain, "batch_size": 100, "size": 4, "device": device, "precision": precision, "seed": seed}
        | (
            {"status": value}
            if isinstance(value, str)
            else {"status": "ok", "predictions": np.where(numbers < round(1000 * value), labels, 1 - labels)}
        )
        for name, values in accuracies.items()
        for device, precision in [name.split("_")]
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=[*(field.name for field in fields(Training))]).assign(labels=[labels] * len(rows))


SAME = {"same_quality": {"metric": "accuracy", "within": 0.01}}
PLAIN, WORSE = [0.8, 0.81, 0.82], [0.75, 0.76, 0.77]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [((-0.001, 0.0, 0.001), "reproduced"), ((0.019, 0.02, 0.021), "differs"), ((-0.01, 0.0, 0.01), "not_testable")],
)
def test_quality_by_hand(row: Row, steps: tuple[float, ...], expected: str) -> None:
    """Differences of standard deviation s over three seeds, and four rows of 1,000 beside those that differ."""
    seeds = [0.8, 0.5, 0.9]
    quality = ratings(cpu_fp32=seeds, cuda_fp32=[value + step for value, step in zip(seeds, steps, strict=True)])
    found = verdict(SAME, tables_of([row()], quality))
    of_seeds = 4.302653 * (steps[2] - steps[1]) / math.sqrt(3)
    differing = sum(round(1000 * abs(step)) / 9 for step in steps)  # each in one seed of three
    of_rows = 1.959964 * math.sqrt(differing + 4 - 1000 * steps[1] ** 2) / 1000
    spread = math.sqrt(of_seeds**2 + of_rows**2)
    measured = [found[name] for name in ("measured", "measured_low", "measured_high")]
    assert (found["verdict"], found["published"], found["place"]) == (expected, "within ±0.01", "GPU, fp32")
    assert measured == pytest.approx([steps[1], steps[1] - spread, steps[1] + spread])


@pytest.mark.parametrize(
    ("quality", "where", "expected"),
    [
        ({"cpu_fp32": PLAIN, "cuda_fp32": PLAIN, "cuda_bf16": WORSE}, {}, ("differs", "outside", "GPU, bf16")),
        (
            {"cpu_fp32": PLAIN, "cuda_fp32": PLAIN, "cuda_bf16": WORSE},
            {"precision": "fp32"},
            ("reproduced", "inside", "GPU, fp32"),
        ),
        (
            {"cpu_fp32": PLAIN, "cuda_fp32": PLAIN, "cuda_bf16": ["unsupported"]},
            {},
            ("reproduced", "inside", "GPU, fp32"),
        ),
        # What the CPU does in another precision says nothing about the GPU.
        ({"cpu_fp32": PLAIN, "cuda_fp32": PLAIN, "cpu_bf16": WORSE}, {}, ("reproduced", "inside", "GPU, fp32")),
        ({"cpu_fp32": PLAIN, "cpu_bf16": WORSE}, {"device": "cpu"}, ("differs", "outside", "CPU, bf16")),
        (
            {"cpu_fp32": PLAIN, "cuda_fp32": ["oom"] * 3, "cuda_bf16": PLAIN},
            {},
            ("not_testable", "failed", "GPU, fp32: oom"),
        ),
        # A training of the CPU that failed is no lack of seeds; with two left there is an interval.
        (
            {"cpu_fp32": [0.8, "timeout", "timeout"], "cuda_fp32": PLAIN},
            {},
            ("not_testable", "baseline_failed", "GPU, fp32: timeout"),
        ),
        ({"cpu_fp32": [0.8, 0.81, "timeout"], "cuda_fp32": PLAIN}, {}, ("reproduced", "inside", "GPU, fp32")),
        ({"cuda_fp32": PLAIN}, {}, ("not_testable", "one_seed", "GPU, fp32")),
        ({"cpu_fp32": PLAIN, "cpu_bf16": PLAIN}, {}, ("not_testable", "no_accelerator", None)),
        ({"cpu_fp32": PLAIN, "cuda_fp32": ["unsupported"]}, {}, ("not_testable", "no_contender", None)),
        ({}, {}, ("not_testable", "not_trained", "disc_depth")),
    ],
)
def test_every_device_and_precision_counts_for_quality(
    row: Row, quality: dict[str, Any], where: dict[str, Any], expected: tuple[str, str, str | None]
) -> None:
    form = {"same_quality": {**SAME["same_quality"], "where": where}}
    assert outcome(verdict(form, tables_of([row()], ratings(**quality)))) == expected


def test_quality_on_generated_rows_gives_no_verdict(row: Row) -> None:
    """Neither that of a model that is the same, nor that of one that differs."""
    for accuracies in (PLAIN, WORSE):
        trainings = ratings(cpu_fp32=PLAIN, cuda_fp32=accuracies).assign(generated_data=True)
        found = outcome(verdict(SAME, tables_of([row()], trainings)))
        assert found == ("not_testable", "generated_data", "datasets.disc")


def test_models_are_compared_with_the_same_model_on_the_cpu(row: Row) -> None:
    """Two sizes of different accuracy: the GPU changes neither, but at size 20 from seed 1 on by 0.05."""
    small = ratings(cpu_fp32=[0.6] * 3, cuda_fp32=[0.6] * 3).assign(size=10)
    large = ratings(cpu_fp32=[0.9] * 3, cuda_fp32=[0.9] * 3).assign(size=20)
    changed = ratings(cpu_fp32=[0.9] * 3, cuda_fp32=[0.9, 0.85, 0.85]).assign(size=20)
    assert verdict(SAME, tables_of([row()], pd.concat([small, large])))["verdict"] == "reproduced"
    assert verdict(SAME, tables_of([row()], pd.concat([small, changed])))["verdict"] == "not_testable"
    elsewhere = {"same_quality": {**SAME["same_quality"], "study": "quality"}}
    assert verdict(elsewhere, tables_of([row()], large.assign(study="quality")))["verdict"] == "reproduced"
    assert outcome(verdict(elsewhere, tables_of([row()], large)))[1:] == ("not_trained", "quality")


def test_every_machine_is_checked_on_its_own(row: Row) -> None:
    rows = [*pair(row, 4.5), *(one | {"machine": "other"} for one in pair(row, 9.0))]
    claims = [{"study": study, "statement": "x", **SPEEDUP} for study in ("disc_depth", "unmeasured")]
    table = check_claims(claims, tables_of(rows))
    found = table[["study", "machine", "verdict"]].to_numpy().tolist()
    assert found[:2] == [["disc_depth", "here", "reproduced"], ["disc_depth", "other", "differs"]]
    assert found[2:] == [["unmeasured", "here", "not_testable"]]
    assert list(table.columns) == list(check_claims([], run_tables()).columns) == list(TABLES["claims"])


@pytest.mark.parametrize("more", [{"device": "cpu-1"}, {"device": "cuda", "status": "invalid"}])
def test_neither_fewer_cores_nor_failed_trials_count(row: Row, more: dict[str, Any]) -> None:
    rows = [*pair(row, 4.5), row(step_time_s=9.0, trial=3, **more)]
    assert verdict(SPEEDUP, rows) == verdict(SPEEDUP, pair(row, 4.5))


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (crossover(1, 2, protocol="as_published", batch_size=32), (None, None, None, None, "as published, batch 32")),
        (
            {"ratio_below": {**TWO_METRICS, "where": {"device": "cuda"}, "limit": 1}},
            ("latency_p50_s", "latency_p99_s", "size 1", "size 2", "GPU"),
        ),
    ],
)
def test_what_is_measured_is_named_by_metric_and_sides(row: Row, form: dict[str, Any], expected: Any) -> None:
    found = verdict(form, [row()])
    assert tuple(found[name] for name in ("metric", "over_metric", "side", "over", "where")) == expected
