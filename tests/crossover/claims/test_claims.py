"""Each form of claim on made-up measurements that do, do not, and do not clearly bear it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

from crossover.claims.claims import CLAIM_COLUMNS, check_claims
from crossover.errors import UserError
from crossover.statistics.crossovers import compare_lines

pytestmark = pytest.mark.filterwarnings("error")

Row = Callable[..., dict[str, Any]]
PowerLaws = Callable[..., pd.DataFrame]

SPEEDUP = {"speedup_between": {"slow": {"device": "cpu"}, "fast": {"device": "cuda"}, "range": [4, 5]}}


def verdict(
    form: dict[str, Any],
    rows: Sequence[dict[str, Any]] | pd.DataFrame,
    quality: pd.DataFrame | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The one row of the table for one claim."""
    measurements = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
    claim = {"study": "disc_depth", "statement": "what is said", "source": "Somebody (2019)", **form}
    crossovers = compare_lines(measurements, {"disc_depth": "parameters"})
    table = check_claims([claim], measurements, crossovers, quality, **others)
    assert list(table.columns) == list(CLAIM_COLUMNS)
    (found,) = table.to_dict("records")
    return dict(found)


def trials(row: Row, time_s: float, spread: float, **values: Any) -> list[dict[str, Any]]:
    """Two trials, the logarithms of whose times lie `spread` below and above that of `time_s`."""
    return [
        row(trial=number, step_time_s=time_s * math.exp(sign * spread), **values) for number, sign in ((1, -1), (2, 1))
    ]


def pair(row: Row, ratio: float, spread: float) -> list[dict[str, Any]]:
    return [*trials(row, ratio * 1e-3, spread, device="cpu"), *trials(row, 1e-3, spread, device="cuda")]


@pytest.mark.parametrize(
    ("ratio", "expected"), [(4.5, "reproduced"), (4.9, "not_testable"), (6.0, "differs"), (3.0, "differs")]
)
def test_a_speedup_by_hand(row: Row, ratio: float, expected: str) -> None:
    """Each side's mean log has variance 0.01^2; Welch: 2 degrees of freedom, t = 4.302653, times sqrt(2) x 0.01."""
    found = verdict(SPEEDUP, pair(row, ratio, 0.01))
    factor = math.exp(4.302653 * math.sqrt(2) * 0.01)
    assert found["verdict"] == expected
    assert found["measured"] == pytest.approx(ratio)
    assert found["measured_low"] == pytest.approx(ratio / factor)
    assert found["measured_high"] == pytest.approx(ratio * factor)
    assert found["published"] == "4 to 5"
    assert found["quantity"] == "time of a step, CPU over GPU"


def test_a_wide_interval_around_the_claimed_value_is_no_proof(row: Row) -> None:
    found = verdict(SPEEDUP, pair(row, 4.5, 0.05))
    assert found["verdict"] == "not_testable"
    assert "only partly within 4 to 5: add trials" in found["reason"]


def test_one_trial_shows_its_value_and_no_verdict(row: Row) -> None:
    rows = [row(device="cpu", step_time_s=4.5e-3), row(device="cuda", step_time_s=1e-3)]
    found = verdict(SPEEDUP, rows)
    assert (found["verdict"], found["measured"]) == ("not_testable", pytest.approx(4.5))
    assert pd.isna(found["measured_low"])
    assert "one ok trial" in found["reason"]


def test_a_device_that_this_machine_lacks_is_named(row: Row) -> None:
    found = verdict(SPEEDUP, trials(row, 1e-3, 0.01, device="cpu"))
    assert found["verdict"] == "not_testable"
    assert found["reason"] == "no trial on the GPU was measured, only on the CPU"


def test_devices_that_share_a_word_are_told_apart(row: Row) -> None:
    other = {"speedup_between": {"slow": {"device": "cpu"}, "fast": {"device": "xpu"}, "range": [4, 5]}}
    found = verdict(other, pair(row, 4.5, 0.01))
    assert found["reason"] == "no trial on the GPU (xpu) was measured, only on the CPU and GPU (cuda)"


def test_a_size_that_nobody_measured_is_named_beside_those_measured(row: Row) -> None:
    other = {"speedup_between": {**SPEEDUP["speedup_between"], "where": {"size": 2000}}}
    rows = [one | {"size": size} for size in (500, 1414) for one in pair(row, 4.5, 0.01)]
    assert verdict(other, rows)["reason"] == "no trial with size 2,000 was measured, only 500 and 1,414"


def test_an_axis_that_a_table_does_not_hold_is_named(row: Row) -> None:
    form = {"speedup_between": {**SPEEDUP["speedup_between"], "where": {"variant": "channels_last"}}}
    rows = pd.DataFrame(pair(row, 4.5, 0.01)).drop(columns="variant")
    (found,) = check_claims([{"study": "disc_depth", "statement": "x", **form}], rows, pd.DataFrame()).to_dict(
        "records"
    )
    assert found["reason"] == "no trial with variant channels last was measured, nor with any other"


@pytest.mark.parametrize("form", [SPEEDUP, {"crossover_between": {"range": [1, 2]}}])
def test_a_study_that_nothing_measured_is_not_testable(row: Row, form: dict[str, Any]) -> None:
    rows = pd.DataFrame(trials(row, 1e-3, 0.01, study="other"))
    for crossovers in (pd.DataFrame(), compare_lines(rows, {"other": "size"})):
        (found,) = check_claims([{"study": "mine", "statement": "x", **form}], rows, crossovers).to_dict("records")
        assert found["verdict"] == "not_testable"
        assert found["reason"] == "nothing of this study was measured"


def test_how_the_trials_ended_is_named(row: Row) -> None:
    rows = pair(row, 4.5, 0.01)
    for one in rows[2:]:
        one |= {"status": "oom", "reason": "8 GB wanted", "step_time_s": None}
    found = verdict(SPEEDUP, rows)
    assert found["verdict"] == "not_testable"
    assert found["reason"] == "no ok trial (GPU): oom (8 GB wanted)"


def test_a_trial_that_is_not_ok_does_not_count(row: Row) -> None:
    rows = [*pair(row, 4.5, 0.01), row(device="cuda", trial=3, status="invalid", step_time_s=9.0)]
    assert verdict(SPEEDUP, rows)["verdict"] == "reproduced"


def test_a_selection_of_several_cells_names_the_axes_to_pin(row: Row) -> None:
    rows = [*pair(row, 4.5, 0.01), *trials(row, 1.0, 0.01, size=7, precision="tf32")]
    with pytest.raises(UserError) as caught:
        verdict(SPEEDUP, rows)
    assert "differ in precision, size; pin precision, size in 'where'" in str(caught.value)


@pytest.mark.parametrize(
    ("peak", "claimed", "expected"),
    [
        (1168, [1.1, 1.2], "reproduced"),
        (1168, [1.168, 1.2], "reproduced"),
        (1168, [1.2, 1.3], "differs"),
        (1168, [0.5, 1.168], "reproduced"),
        (1168, [0.5, 1.167], "differs"),
    ],
)
def test_the_same_bytes_in_every_trial_are_an_interval_of_no_width(
    row: Row, peak: int, claimed: list[float], expected: str
) -> None:
    rows = [
        row(trial=trial, precision=precision, peak_allocated_bytes=count)
        for precision, count in (("fp32", 1000), ("amp-fp16", peak))
        for trial in (1, 2)
    ]
    sides = {"of": {"precision": "amp-fp16"}, "over": {"precision": "fp32"}, "where": {"device": "cpu"}}
    found = verdict({"ratio_between": {"metric": "peak_allocated_bytes", **sides, "range": claimed}}, rows)
    assert found["verdict"] == expected
    assert found["measured_low"] == found["measured"] == found["measured_high"] == pytest.approx(1.168)
    assert found["quantity"] == ("peak memory of tensors, amp-fp16 over fp32 (CPU)")


@pytest.mark.parametrize(
    ("ratio", "limit", "expected"),
    [(0.5, 1, "reproduced"), (0.95, 1, "not_testable"), (1.1, 1, "differs"), (0.5, 0.45, "differs")],
)
def test_a_ratio_below_by_hand(row: Row, ratio: float, limit: float, expected: str) -> None:
    """The interval reaches 6.3 % to either side, as above: 0.95 x 1.063 is over 1, and 0.5 / 1.063 over 0.45."""
    sides = {"of": {"device": "cpu"}, "over": {"device": "cuda"}}
    found = verdict({"ratio_below": {"metric": "step_time_s", **sides, "limit": limit}}, pair(row, ratio, 0.01))
    assert found["verdict"] == expected
    assert found["published"] == f"below {limit}"


@pytest.mark.parametrize(("first", "expected"), [(999, "reproduced"), (1000, "differs"), (1001, "differs")])
def test_what_is_the_same_is_not_below(row: Row, first: int, expected: str) -> None:
    rows = [
        row(trial=trial, size=size, peak_allocated_bytes=count)
        for size, count in ((4, first), (5, 1000))
        for trial in (1, 2)
    ]
    sides = {"of": {"size": 4}, "over": {"size": 5}}
    form = {"ratio_below": {"metric": "peak_allocated_bytes", **sides, "limit": 1}}
    assert verdict(form, rows)["verdict"] == expected


def test_two_columns_of_one_cell_are_paired_by_trial(row: Row) -> None:
    """Ratios 2 / e^0.01, 2, 2 e^0.01 of means of lists: t(0.975, 2) = 4.302653 over sqrt(3)."""
    rows = [
        row(
            trial=trial,
            latencies_s=[0.5 * scale, 1.5 * scale],
            latency_p50_s=2 * scale * math.exp(0.01 * step),
        )
        for trial, scale, step in ((1, 1.0, -1), (2, 30.0, 0), (3, 0.2, 1))
    ]
    form = {"of": {"metric": "latency_p50_s"}, "over": {"metric": "latencies_s"}, "range": [1.9, 2.1]}
    found = verdict({"ratio_between": {**form, "where": {"device": "cpu"}}}, rows)
    assert found["verdict"] == "reproduced"
    assert found["measured"] == pytest.approx(2)
    assert found["measured_high"] == pytest.approx(2 * math.exp(0.01 * 4.302653 / math.sqrt(3)))
    assert found["quantity"] == "median latency over latency (CPU)"


def test_rows_joined_from_two_tables_are_not_taken_for_one_cell(row: Row) -> None:
    """Both tables count their rows from 0."""
    tables = [pd.DataFrame(trials(row, 4.5e-3, 0.01)), pd.DataFrame(trials(row, 1e-3, 0.01, device="cuda"))]
    assert verdict(SPEEDUP, pd.concat(tables))["measured_high"] == pytest.approx(4.5 * 1.06274, rel=1e-4)


def test_a_metric_that_was_not_measured_is_named(row: Row) -> None:
    form = {"of": {"device": "cpu"}, "over": {"device": "cuda"}, "range": [1, 2]}
    found = verdict({"ratio_between": {"metric": "energy_per_step_j", **form}}, pair(row, 4.5, 0.01))
    assert found["reason"] == "energy of a step: not measured (CPU)"


def test_a_ratio_with_nothing_is_not_given(row: Row) -> None:
    rows = [one | {"relative_error": 0.0} for one in pair(row, 4.5, 0.01)]
    form = {"of": {"device": "cpu"}, "over": {"device": "cuda"}, "range": [1, 2]}
    found = verdict({"ratio_between": {"metric": "relative_error", **form}}, rows)
    assert found["verdict"] == "not_testable"
    assert "Euclidean norm: 0, so that no ratio is given (CPU)" in found["reason"]


def test_samples_a_second_and_the_time_of_a_run_are_derived(row: Row) -> None:
    """Twice the batch in three times the step: two thirds of the samples a second; a run of ceil(250 / batch) steps."""
    rows = [
        *trials(row, 1e-3, 0, batch_size=100),
        *trials(row, 3e-3, 0, batch_size=200),
    ]
    sides = {"of": {"batch_size": 200}, "over": {"batch_size": 100}, "range": [1, 2]}
    found = verdict({"ratio_between": {"metric": "samples_per_s", **sides}}, rows)
    assert found["measured"] == pytest.approx(2 / 3)
    steps = {"disc_depth": {"epochs": 4, "samples": 250}}
    found = verdict({"ratio_between": {"metric": "run_time_s", **sides}}, rows, steps_per_run=steps)
    assert found["measured"] == pytest.approx(3 * 2 / 3)
    found = verdict({"ratio_between": {"metric": "run_time_s", **sides}}, rows, steps_per_run={"disc_depth": 7})
    assert found["measured"] == pytest.approx(3)


def crossover(low: float, high: float, **where: Any) -> dict[str, Any]:
    return {"crossover_between": {"range": [low, high], "where": where}}


SIZES = {2: 100, 3: 500, 4: 2000, 5: 100_000}
"""Parameters by size; `power_laws` has the CPU and the GPU take the same time at 1000, trials 1 % apart."""


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (500, 2000, "reproduced"),
        (100, 100_000, "reproduced"),
        (984, 1016, "reproduced"),
        (990, 2000, "not_testable"),
        (500, 1010, "not_testable"),
        (2000, 100_000, "differs"),
        (3000, 4000, "differs"),
        (100, 500, "differs"),
        (1, 50, "differs"),
    ],
)
def test_a_crossover_is_tested_on_its_set(power_laws: PowerLaws, low: float, high: float, expected: str) -> None:
    """Halfway between 500 and 2000 the standard error is ln(1.01) / sqrt(3), with 8 degrees: t(0.98, 8) = 2.449."""
    found = verdict(crossover(low, high), power_laws(SIZES, trials=3))
    assert found["verdict"] == expected
    ends = [1000 * 1.01 ** (sign * 2.449 / math.sqrt(3)) for sign in (-1, 1)]
    assert found["measured"] == pytest.approx(1000)
    assert [found["measured_low"], found["measured_high"]] == pytest.approx(ends, rel=1e-4)
    assert found["quantity"] == "crossover in parameters"


def test_a_size_that_the_trials_do_not_tell_apart_bounds_nothing(power_laws: PowerLaws) -> None:
    """At 1010 parameters the GPU is ahead by 1 %, far less than trials that differ by 1 % can tell."""
    rows = power_laws({**SIZES, 4: 1010}, trials=3)
    found = verdict(crossover(500, 1010), rows)
    assert found["verdict"] == "not_testable"
    assert 950 < found["measured_low"] < 990
    assert 1010 < found["measured_high"] < 1050
    assert "add trials" in found["reason"]
    assert verdict(crossover(500, 100_000), rows)["verdict"] == "reproduced"


def test_trials_that_tell_no_size_apart_leave_a_claim_open(power_laws: PowerLaws) -> None:
    """Times that differ by a factor of 1000 between trials: the GPU is surely ahead nowhere."""
    rows = power_laws({3: 500, 4: 2000}, trials=2)
    rows["step_time_s"] *= rows["trial"].map({1: 1, 2: 1000})
    found = verdict(crossover(500, 2000), rows)
    assert found["verdict"] == "not_testable"
    assert pd.isna(found["measured"])
    assert found["reason"] == "the trials do not tell which side is ahead: add trials"


def test_a_crossover_from_one_trial_is_indicative(power_laws: PowerLaws) -> None:
    found = verdict(crossover(500, 2000), power_laws(SIZES))
    assert (found["verdict"], found["measured"]) == ("not_testable", pytest.approx(1000))
    assert pd.isna(found["measured_low"])
    assert "indicative: between 500 and 2,000 parameters" in found["reason"]


@pytest.mark.parametrize(
    ("low", "expected", "words"),
    [(2000, "differs", "ahead already at 100"), (50, "not_testable", "from 100 parameters on: measure smaller")],
)
def test_a_gpu_that_is_ahead_everywhere(power_laws: PowerLaws, low: float, expected: str, words: str) -> None:
    """Ahead at 100 speaks against a crossover from 2000 on, and says nothing of one between 50 and 100,000."""
    found = verdict(crossover(low, 100_000), power_laws(SIZES, trials=3, gpu_s=1e-9))
    assert found["verdict"] == expected
    assert words in found["reason"]
    assert (pd.isna(found["measured_low"]), found["measured_high"]) == (True, 100)


@pytest.mark.parametrize(
    ("high", "expected", "words"),
    [(2000, "differs", "still behind at 100 k"), (1e6, "not_testable", "up to 100 k parameters: measure larger")],
)
def test_a_gpu_that_is_behind_everywhere(power_laws: PowerLaws, high: float, expected: str, words: str) -> None:
    found = verdict(crossover(100, high), power_laws(SIZES, trials=3, gpu_s=1.0))
    assert found["verdict"] == expected
    assert words in found["reason"]


def test_a_size_out_of_memory_within_the_bracket_leaves_the_claim_borne_out(power_laws: PowerLaws) -> None:
    rows = power_laws({**SIZES, 6: 1500}, trials=3)
    lost = (rows["size"] == 6) & (rows["device"] == "cuda")
    rows.loc[lost, ["status", "step_time_s"]] = ["oom", None]
    assert verdict(crossover(500, 2000), rows)["verdict"] == "reproduced"


def test_a_crossover_back_and_forth_is_no_crossover(power_laws: PowerLaws) -> None:
    rows = power_laws(SIZES, trials=3)
    rows.loc[(rows["size"] == 2) & (rows["device"] == "cuda"), "step_time_s"] = 1e-9
    found = verdict(crossover(50, 200_000), rows)
    assert (found["verdict"], pd.isna(found["measured"])) == ("not_testable", True)
    assert "cross 2 times" in found["reason"]
    assert verdict(crossover(500, 2000), rows)["verdict"] == "differs"  # ahead already at 100


def test_an_interval_of_the_crossover_goes_before_the_sizes(power_laws: PowerLaws) -> None:
    rows = power_laws(SIZES, trials=3)
    table = compare_lines(rows, {"disc_depth": "parameters"}).assign(crossover_low=950.0, crossover_high=1050.0)
    verdicts = [
        check_claims([{"study": "disc_depth", "statement": "x", **crossover(*claimed)}], rows, table)["verdict"].iloc[0]
        for claimed in ((900, 1100), (1000, 1100), (1100, 1200), (10, 900))
    ]
    assert verdicts == ["reproduced", "not_testable", "differs", "differs"]


def test_a_crossover_needs_an_accelerator_and_one_line(power_laws: PowerLaws) -> None:
    rows = power_laws(SIZES, trials=3)
    found = verdict(crossover(500, 2000), rows[rows["device"] == "cpu"])
    assert found["reason"] == "only the CPU was measured: run it on a machine that has a GPU"
    both = pd.concat([rows, power_laws(SIZES, trials=3, gpu_s=1.0, protocol="as_published")], ignore_index=True)
    with pytest.raises(UserError, match="pin protocol in 'where'"):
        verdict(crossover(500, 2000), both)
    assert verdict(crossover(500, 2000, protocol="resident"), both)["verdict"] == "reproduced"
    assert verdict(crossover(500, 2000, protocol="as_published"), both)["verdict"] == "differs"
    more = pd.concat([rows, rows[rows["device"] == "cuda"].assign(device="xpu")], ignore_index=True)
    assert (
        "several accelerators were measured (GPU (cuda) and GPU (xpu))" in verdict(crossover(500, 2000), more)["reason"]
    )
    assert verdict(crossover(500, 2000, device="xpu"), more)["verdict"] == "reproduced"


def ratings(**accuracies: list[float]) -> pd.DataFrame:
    """One row a training; keywords are device_precision, values the accuracies of seeds 0, 1, 2."""
    return pd.DataFrame(
        [
            {"study": "disc_depth", "device": device, "precision": precision, "seed": seed, "accuracy": accuracy}
            for name, values in accuracies.items()
            for device, precision in [name.split("_")]
            for seed, accuracy in enumerate(values)
        ]
    )


SAME = {"same_quality": {"metric": "accuracy", "within": 0.01}}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [((-0.001, 0.0, 0.001), "reproduced"), ((0.019, 0.02, 0.021), "differs"), ((-0.01, 0.0, 0.01), "not_testable")],
)
def test_quality_by_hand(row: Row, steps: tuple[float, ...], expected: str) -> None:
    """Differences of standard deviation s over three seeds: 4.302653 x s / sqrt(3) to either side of their mean."""
    seeds = [0.8, 0.5, 0.9]
    quality = ratings(cpu_fp32=seeds, cuda_fp32=[value + step for value, step in zip(seeds, steps, strict=True)])
    found = verdict(SAME, [row()], quality)
    assert found["verdict"] == expected
    assert found["measured"] == pytest.approx(steps[1])
    spread = 4.302653 * (steps[2] - steps[1]) / math.sqrt(3)
    assert found["measured_low"] == pytest.approx(steps[1] - spread)
    assert found["measured_high"] == pytest.approx(steps[1] + spread)
    assert found["published"] == "within ±0.01"
    assert found["reason"].endswith(": add seeds") == (expected == "not_testable")
    assert "trials" not in found["reason"]


def test_a_precision_that_a_device_lacks_leaves_the_others_to_be_judged(row: Row) -> None:
    lacking = float("nan")
    quality = ratings(cpu_fp32=[0.8, 0.8], cuda_fp32=[0.8, 0.8], cpu_tf32=[lacking, lacking])
    assert verdict(SAME, [row()], quality)["verdict"] == "reproduced"


def test_every_device_and_precision_counts(row: Row) -> None:
    plain = [0.8, 0.81, 0.82]
    quality = ratings(cpu_fp32=plain, cuda_fp32=plain, cuda_bf16=[value - 0.05 for value in plain])
    found = verdict(SAME, [row()], quality)
    assert (found["verdict"], found["measured"]) == ("differs", pytest.approx(-0.05))
    assert "GPU in bf16" in found["reason"]
    only = {"same_quality": {**SAME["same_quality"], "where": {"precision": "fp32"}}}
    assert verdict(only, [row()], quality)["verdict"] == "reproduced"


def test_what_the_cpu_does_in_another_precision_is_not_the_gpus(row: Row) -> None:
    plain = [0.8, 0.81, 0.82]
    quality = ratings(cpu_fp32=plain, cuda_fp32=plain, cpu_bf16=[value - 0.05 for value in plain])
    assert verdict(SAME, [row()], quality)["verdict"] == "reproduced"
    on_cpu = {"same_quality": {**SAME["same_quality"], "where": {"device": "cpu"}}}
    assert verdict(on_cpu, [row()], quality)["verdict"] == "differs"


def test_a_training_that_failed_keeps_the_claim_open(row: Row) -> None:
    plain, lacking = [0.8, 0.81, 0.82], [float("nan")] * 3
    quality = ratings(cpu_fp32=plain, cuda_fp32=lacking, cuda_bf16=plain)
    quality["status"] = ["oom" if math.isnan(accuracy) else "ok" for accuracy in quality["accuracy"]]
    found = verdict(SAME, [row()], quality)
    assert (found["verdict"], found["reason"]) == (
        "not_testable",
        "GPU in fp32 against CPU in fp32: trainings failed (oom)",
    )


def test_a_training_of_the_cpu_that_failed_is_no_lack_of_seeds(row: Row) -> None:
    """Of three seeds the CPU in fp32 ends one, so that there is a single difference; with two there is an interval."""
    quality = ratings(cpu_fp32=[0.8, math.nan, math.nan], cuda_fp32=[0.8, 0.81, 0.82])
    quality["status"] = ["timeout" if math.isnan(accuracy) else "ok" for accuracy in quality["accuracy"]]
    found = verdict(SAME, [row()], quality)
    assert (found["verdict"], found["reason"]) == (
        "not_testable",
        "GPU in fp32 against CPU in fp32: trainings of CPU in fp32 failed (timeout)",
    )
    quality.loc[1, ["accuracy", "status"]] = [0.81, "ok"]
    assert verdict(SAME, [row()], quality)["verdict"] == "reproduced"


def test_models_are_compared_with_their_own_like(row: Row) -> None:
    """Two sizes of unlike accuracy: the GPU changes neither, but at size 20 from seed 1 on by 0.05."""
    small = ratings(cpu_fp32=[0.6, 0.6, 0.6], cuda_fp32=[0.6, 0.6, 0.6]).assign(size=10)
    large = ratings(cpu_fp32=[0.9, 0.9, 0.9], cuda_fp32=[0.9, 0.9, 0.9]).assign(size=20)
    assert verdict(SAME, [row()], pd.concat([small, large]))["verdict"] == "reproduced"
    changed = large.assign(accuracy=large["accuracy"] - 0.05 * ((large["device"] == "cuda") & (large["seed"] > 0)))
    assert verdict(SAME, [row()], pd.concat([small, changed]))["verdict"] == "not_testable"


def test_another_study_may_train_the_models(row: Row) -> None:
    quality = ratings(cpu_fp32=[0.8, 0.8], cuda_fp32=[0.8, 0.8]).assign(study="quality")
    elsewhere = {"same_quality": {**SAME["same_quality"], "study": "quality"}}
    assert verdict(elsewhere, [row()], quality)["verdict"] == "reproduced"
    assert verdict(elsewhere, [row()])["reason"].startswith("no model of study 'quality' was trained: add it")


@pytest.mark.parametrize(
    ("quality", "words"),
    [
        (None, "no model of study 'disc_depth' was trained"),
        (ratings(cpu_fp32=[0.8], cuda_fp32=[0.8]), "fewer than two seeds"),
        (ratings(cpu_fp32=[0.8, 0.8], cpu_bf16=[0.8, 0.8]), "only the CPU trained"),
        (ratings(cuda_fp32=[0.8, 0.8], cuda_bf16=[0.8, 0.8]), "against CPU in fp32: fewer than two seeds"),
        (ratings(cpu_fp32=[0.8, 0.8], cuda_fp32=[0.8, math.nan]), "fewer than two seeds"),
        (ratings(cpu_fp32=[0.8, 0.8]).assign(study="other"), "no model of study 'disc_depth' was trained"),
    ],
)
def test_quality_that_cannot_be_judged(row: Row, quality: pd.DataFrame | None, words: str) -> None:
    found = verdict(SAME, [row()], quality)
    assert found["verdict"] == "not_testable"
    assert words in found["reason"]


def test_no_claims_are_an_empty_table(row: Row) -> None:
    table = check_claims([], pd.DataFrame([row()]), pd.DataFrame())
    assert (len(table), list(table.columns)) == (0, list(CLAIM_COLUMNS))


def test_the_cpu_on_fewer_cores_is_no_side_of_a_claim(row: Row) -> None:
    rows = [*pair(row, 4.5, 0.01), *trials(row, 1.0, 0.01, device="cpu-1")]
    of_one_device = {"ratio_below": {"metric": "step_time_s", "of": {"size": 4}, "over": {"size": 5}, "limit": 1.0}}
    larger = [*trials(row, 2.0, 0.01, size=5), *trials(row, 3.0, 0.01, size=5, device="cpu-1")]
    cpu_only = [*trials(row, 1.0, 0.01), *trials(row, 9.0, 0.01, device="cpu-1"), *larger]
    assert verdict(SPEEDUP, rows) == verdict(SPEEDUP, pair(row, 4.5, 0.01))
    assert verdict(of_one_device, cpu_only)["measured"] == pytest.approx(0.5)
