"""Each form of claim, with measurements that confirm it, contradict it, or are inconclusive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.compare.cells import summarise
from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import pairings
from crossover.compare.refinement import all_trials
from crossover.config.studies import Refinement
from crossover.config.study import Study
from crossover.errors import UserError
from crossover.report.templates import environment_of
from crossover.tables.columns import COLUMNS, Training
from crossover.tables.frames import records
from crossover.tables.reference_files import Facts, Reference
from crossover.tables.run_tables import TABLES, RunTables, run_tables
from crossover.topics.claims.findings import REASONS
from crossover.topics.claims.table import check_claims
from crossover.topics.claims.trials import trials_of_claims
from crossover.topics.latency.table import MISTAKES, latencies_of
from crossover.topics.quality.table import quality_table
from report_pages import TEMPLATES, study

pytestmark = pytest.mark.filterwarnings("error")

Row = Callable[..., dict[str, Any]]
PowerLaws = Callable[..., pd.DataFrame]

SPEEDUP = {"speedup_between": {"slow": {"device": "cpu"}, "fast": {"device": "cuda"}, "range": [4, 5]}}
SIDES = {"of": {"device": "cpu"}, "over": {"device": "cuda"}}


def tables_of(rows: Sequence[dict[str, Any]] | pd.DataFrame, trainings: pd.DataFrame | None = None) -> RunTables:
    measurements = pd.DataFrame(rows)
    crossovers = crossovers_of(pairings(measurements, dict.fromkeys(measurements["study"], "parameters")))
    trained = {} if trainings is None else {"quality": quality_table(trainings, {})}
    return run_tables(measurements=measurements, cells=summarise(measurements), crossovers=crossovers, **trained)


def claiming(form: dict[str, Any], name: str = "disc_depth", **keys: Any) -> dict[str, Study]:
    """A study with a single claim."""
    claim = {"statement": "what is said", "source": "Somebody (2019)", **form}
    return {name: study(name=name, claims=[claim], **keys)}


def verdict(
    form: dict[str, Any],
    tables: RunTables | Sequence[Any] | pd.DataFrame,
    together: dict[str, int] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The only row of table `claims`, for a single claim."""
    known_tables = tables if isinstance(tables, RunTables) else tables_of(tables)
    (finding,) = check_claims(claiming(form, **others), known_tables, together).to_dict("records")
    assert finding["verdict"] == REASONS[finding["reason"]]
    return {str(name): None if np.ndim(value) == 0 and pd.isna(value) else value for name, value in finding.items()}


@pytest.mark.parametrize("metric", MISTAKES)
def test_a_claim_about_a_mistake_has_the_ratio_and_the_significance_of_table_latencies(row: Row, metric: str) -> None:
    """Without warm-up, the first step over the median of the later half; else the means of as many steps."""
    rows = pd.DataFrame(
        [
            row(trial=trial, latencies_s=[3.0 * pace, 3.0 * pace, 9.0], **{metric: [10.0 * pace, 2.0]})
            for trial, pace in ((1, 1.0), (2, 1.3), (3, 1.1))
        ]
    )
    for together in (1, 4):
        name = str(rows["study"].iloc[0])
        table = latencies_of(rows, {name: together}).set_index("method").loc[metric]
        sides = {"of": {"metric": metric}, "over": {"metric": "latencies_s"}}
        finding = verdict({"ratio_between": {**sides, "range": [1.01, 99]}}, rows, together={name: together})
        assert [finding[f"measured{end}"] for end in ("", "_low", "_high")] == pytest.approx(
            table[["ratio", "ratio_low", "ratio_high"]].tolist()
        )
        inverse = {"of": sides["over"], "over": sides["of"], "limit": 1}
        assert verdict({"ratio_below": inverse}, rows, together={name: together})["measured_high"] == pytest.approx(
            1 / table["ratio_low"]
        )


def outcome(finding: dict[str, Any]) -> tuple[Any, Any, Any]:
    return finding["verdict"], finding["reason"], finding["place"]


def trials(row: Row, time_s: float, spread: float, **values: Any) -> list[dict[str, Any]]:
    """Two trials whose ln(time) is `spread` below and above ln(`time_s`)."""
    return [
        row(trial=number, step_time_s=time_s * math.exp(sign * spread), **values) for number, sign in ((1, -1), (2, 1))
    ]


def pair(row: Row, ratio: float, spread: float = 0.01) -> list[dict[str, Any]]:
    return [*trials(row, ratio * 1e-3, spread, device="cpu"), *trials(row, 1e-3, spread, device="cuda")]


@pytest.mark.parametrize(
    ("ratio", "spread", "expected"),
    [
        (4.5, 0.01, ("reproduced", "inside")),
        (4.9, 0.01, ("compatible", "overlaps")),
        (4.5, 0.05, ("compatible", "overlaps")),  # 2.7 times as wide as the range on the log scale
        (4.5, 0.06, ("inconclusive", "too_wide")),  # 3.3 times
        (6.0, 0.01, ("differs", "outside")),
        (20.0, 0.1, ("differs", "outside")),  # however wide
    ],
)
def test_a_speedup_by_hand(row: Row, ratio: float, spread: float, expected: tuple[str, str]) -> None:
    """The mean log of each side has variance spread^2; Welch's half width is 4.302653 x sqrt(2) x spread."""
    finding = verdict(SPEEDUP, pair(row, ratio, spread))
    factor = math.exp(4.302653 * math.sqrt(2) * spread)
    assert (finding["verdict"], finding["reason"]) == expected
    measured = [finding[name] for name in ("measured", "measured_low", "measured_high")]
    assert measured == pytest.approx([ratio, ratio / factor, ratio * factor])
    assert (finding["published"], finding["tested_low"], finding["tested_high"]) == ("tested: 4 to 5", 4, 5)


def below(limit: float) -> dict[str, Any]:
    return {"ratio_below": {"metric": "step_time_s", **SIDES, "limit": limit}}


@pytest.mark.parametrize(
    ("spread", "form", "stage", "added"),
    [
        (0.06, SPEEDUP, 1, []),  # bisects
        (0.06, SPEEDUP, 2, [3, 4, 5, 6, 7, 8]),
        (0.06, SPEEDUP, 3, [*range(3, 13)]),
        (0.06, SPEEDUP, 4, []),  # no such stage
        (0.05, SPEEDUP, 2, []),  # compatible
        (0.06, below(4.9), 2, [3, 4, 5, 6, 7, 8]),  # 12 trials would give 4.2 to 4.8
        (0.06, below(4.6), 2, []),  # and not decide this
        (0.06, {"ratio_between": {"metric": "peak_rss_bytes", **SIDES, "range": [1, 2]}}, 2, []),
        (0.06, {"crossover_between": {"range": [1, 2]}}, 2, []),
        (0.06, {"speedup_between": {**SPEEDUP["speedup_between"], "where": {"size": 7}}}, 2, []),
    ],
)
def test_both_cells_of_an_inconclusive_claim_about_times_get_more_trials(
    row: Row, spread: float, form: dict[str, Any], stage: int, added: list[int]
) -> None:
    refinement = Refinement(bisections=1, first_trials=2, extra_trials=4)
    requests = trials_of_claims(
        claiming(form),
        pd.DataFrame(pair(row, 4.5, spread)),
        stage,
        {"disc_depth": refinement},
        {"disc_depth": 8},
    )
    plan = {cell.device: numbers for cell, numbers in all_trials(requests).items()}
    assert plan == ({"cpu": added, "cuda": added} if added else {})
    assert [request.why["ratio"] for request in requests] == ([pytest.approx(4.5)] if added else [])


PAYBACK = {"payback_between": {"of": {"device": "cuda"}, "over": {"device": "cpu"}, "range": [800, 1200]}}


@pytest.mark.parametrize(
    ("gpu_s", "spread", "expected"),
    [
        (1e-3, 0.001, ("reproduced", "inside")),
        (0.5e-3, 0.001, ("differs", "outside")),  # after 667 steps
        (1.9e-3, 0.1, ("inconclusive", "not_faster")),
        (1.9e-3, 0.01, ("differs", "outside")),  # after far more steps, if ever
        (2.5e-3, 0.001, ("differs", "never_ahead")),
        (1.2e-3, 0.07, ("inconclusive", "no_end")),
    ],
)
def test_steps_until_a_start_up_of_one_second_has_paid_off(
    row: Row, gpu_s: float, spread: float, expected: tuple[str, str]
) -> None:
    """The CPU takes 2 ms a step, and starts up in no time."""
    rows = []
    for device, time_s, build_s in (("cpu", 2e-3, 0.0), ("cuda", gpu_s, 1.0)):
        spent = {"spent_s": f'{{"context": 0, "build": {build_s}}}'}
        rows += [
            one | {"first_step_s": one["step_time_s"]} for one in trials(row, time_s, spread, device=device, **spent)
        ]
    finding = verdict(PAYBACK, rows)
    assert (finding["verdict"], finding["reason"]) == expected
    assert (finding["metric"], finding["unit"], finding["side"]) == ("payback_steps", "steps", "GPU")
    if expected == ("reproduced", "inside"):
        assert finding["measured"] == pytest.approx(1000, rel=0.01)
        assert 980 < finding["measured_low"] < finding["measured"] < finding["measured_high"] < 1020


def test_without_a_start_up_nothing_pays_back(row: Row) -> None:
    assert outcome(verdict(PAYBACK, pair(row, 2.0))) == ("no_data", "not_measured", "start-up")


def test_a_single_trial_has_a_value_but_no_interval(row: Row) -> None:
    finding = verdict(SPEEDUP, [row(device="cpu", step_time_s=4.5e-3), row(device="cuda", step_time_s=1e-3)])
    assert (*outcome(finding), finding["measured"]) == ("inconclusive", "one_trial", None, pytest.approx(4.5))


@pytest.mark.parametrize(
    ("where", "changes", "expected"),
    [
        ({}, {"device": "cpu"}, ("no_accelerator", None)),
        ({}, {"device": "mps"}, ("no_cell", "GPU")),
        ({"variant": "channels_last", "size": 2000}, {}, ("no_cell", "channels last")),
        ({}, {"status": "oom", "step_time_s": None}, ("not_ok", "GPU: oom")),
    ],
)
def test_a_missing_cell_is_named(
    row: Row, where: dict[str, Any], changes: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    """The last two of four trials, those on the GPU, are changed."""
    rows = pair(row, 4.5)
    rows[2:] = [trial | changes for trial in rows[2:]]
    finding = verdict({"speedup_between": {**SPEEDUP["speedup_between"], "where": where}}, rows)
    assert outcome(finding) == ("no_data", *expected)


@pytest.mark.parametrize("form", [SPEEDUP, {"crossover_between": {"range": [1, 2]}}])
def test_a_study_without_measurements_has_no_data(row: Row, form: dict[str, Any]) -> None:
    for tables in (run_tables(), tables_of(trials(row, 1e-3, 0.01, study="other"))):
        assert outcome(verdict(form, tables)) == ("no_data", "no_rows", None)


def test_a_selection_of_several_cells_names_the_axes_to_pin(row: Row) -> None:
    rows = [*pair(row, 4.5), *trials(row, 1.0, 0.01, size=7, precision="tf32")]
    with pytest.raises(UserError, match="differ in precision, size; pin precision, size in 'where'"):
        verdict(SPEEDUP, rows)


MIB = 1024**2
COUNTED = {"of": {"precision": "amp-fp16"}, "over": {"precision": "fp32"}, "where": {"device": "cuda"}}


def counted(row: Row, metric: str, of: float, over: float, **others: Any) -> list[dict[str, Any]]:
    """Three trials in each of two precisions, of which only the first has the count, as in real rows."""
    return [
        row(device="cuda", trial=trial, precision=precision, **({metric: count} | others if trial == 1 else {}))
        for precision, count in (("fp32", over), ("amp-fp16", of))
        for trial in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("metric", "of", "over", "claimed", "expected"),
    [
        ("flops_per_step", 1168, 1000, {"range": [1.168, 1.2]}, "reproduced"),  # its ends count as within
        ("flops_per_step", 1168, 1000, {"limit": 1.168}, "differs"),  # equal is not below
        ("peak_allocated_bytes", 500 * MIB, 1000 * MIB, {"limit": 0.5}, "inconclusive"),  # blocks of 512 B
        ("peak_allocated_bytes", 500 * MIB - 1024, 1000 * MIB, {"limit": 0.5}, "reproduced"),
        ("device_used_bytes", 500 * MIB - 1024, 1000 * MIB, {"limit": 0.5}, "inconclusive"),  # pages of 2 MiB
        ("device_used_bytes", 504 * MIB, 1000 * MIB, {"limit": 0.5}, "differs"),
        ("max_relative_error", 57e-5, 1e-5, {"range": [32, 316]}, "reproduced"),  # 36.5 to 89, a quarter either way
        ("max_relative_error", 57e-5, 1e-5, {"range": [37, 316]}, "compatible"),
    ],
)
def test_the_interval_of_a_count_is_its_tolerance(
    row: Row, metric: str, of: float, over: float, claimed: dict[str, Any], expected: str
) -> None:
    name = "ratio_between" if "range" in claimed else "ratio_below"
    finding = verdict({name: {"metric": metric, **COUNTED, **claimed}}, counted(row, metric, of, over))
    assert (finding["verdict"], finding["measured"]) == (expected, pytest.approx(of / over))


def test_the_tolerance_of_a_count_that_varies_is_that_of_the_smallest(row: Row) -> None:
    """Pages of 2 MiB are a half of 4 MiB and a fiftieth of 100 MiB."""
    used = [("fp32", 1, 100), ("amp-fp16", 1, 4), ("amp-fp16", 2, 8)]
    rows = [row(device="cuda", precision=name, trial=trial, device_used_bytes=mib * MIB) for name, trial, mib in used]
    finding = verdict({"ratio_below": {"metric": "device_used_bytes", **COUNTED, "limit": 1}}, rows)
    ends = [0.04 / 1.5 / 1.02, 0.08 * 1.5 * 1.02]
    assert [finding["measured_low"], finding["measured_high"]] == pytest.approx(ends)


def test_a_varying_metric_that_was_measured_once_has_no_interval(row: Row) -> None:
    rows = counted(row, "peak_rss_bytes", 900.0, 1000.0)
    finding = verdict({"ratio_below": {"metric": "peak_rss_bytes", **COUNTED, "limit": 1}}, rows)
    assert outcome(finding) == ("inconclusive", "first_trial", None)
    assert finding["measured"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("metric", "limit", "expected"),
    [("energy_per_step_j", 0.51, "inconclusive"), ("step_time_s", 0.51, "reproduced")],
)
def test_the_interval_of_equal_energies_depends_on_their_counter(
    row: Row, metric: str, limit: float, expected: str
) -> None:
    """The ratio is 0.5 from two trials per side; with energies, t(2) = 4.30 times 1 % / sqrt(3) reaches 0.5125."""
    rows = [
        row(device=device, trial=trial, **{metric: value})
        for device, value in (("cpu", 1.0), ("cuda", 2.0))
        for trial in (1, 2)
    ]
    finding = verdict({"ratio_below": {"metric": metric, **SIDES, "limit": limit}}, rows)
    assert finding["verdict"] == expected


@pytest.mark.parametrize(("ratio", "expected"), [(0.5, "inside"), (1.0, "straddles"), (2.0, "outside")])
def test_an_interval_on_both_sides_of_a_limit_is_inconclusive(row: Row, ratio: float, expected: str) -> None:
    """Spreads of 0.085 give an interval from the ratio / 1.67 to the ratio x 1.67: e^(4.302653 x 1.414 x 0.085)."""
    finding = verdict({"ratio_below": {"metric": "step_time_s", **SIDES, "limit": 1}}, pair(row, ratio, 0.085))
    assert finding["reason"] == expected
    assert finding["verdict"] == {"inside": "reproduced", "straddles": "inconclusive", "outside": "differs"}[expected]


def test_two_metrics_of_one_cell_are_paired_by_trial(row: Row) -> None:
    """The ratios to the means of the lists are 2 / e^0.01, 2 and 2 e^0.01; t(0.975, 2) = 4.302653 over sqrt(3)."""
    rows = [
        row(trial=trial, latencies_s=[0.5 * scale, 1.5 * scale], latency_p50_s=2 * scale * math.exp(0.01 * step))
        for trial, scale, step in ((1, 1.0, -1), (2, 30.0, 0), (3, 0.2, 1))
    ]
    form = {"of": {"metric": "latency_p50_s"}, "over": {"metric": "latencies_s"}, "range": [1.9, 2.1]}
    finding = verdict({"ratio_between": {**form, "where": {"device": "cpu"}}}, rows)
    assert (finding["verdict"], finding["measured"]) == ("reproduced", pytest.approx(2))
    assert finding["measured_high"] == pytest.approx(2 * math.exp(0.01 * 4.302653 / math.sqrt(3)))
    apart = [row(trial=1, latency_p50_s=1.0), row(trial=2, latencies_s=[1.0])]
    assert verdict({"ratio_between": form}, apart)["reason"] == "no_common_trial"


@pytest.mark.parametrize(("value", "reason"), [(None, "not_measured"), (0.0, "zero")])
def test_a_metric_without_a_ratio_is_named(row: Row, value: float | None, reason: str) -> None:
    rows = [trial | {"relative_error": value} for trial in pair(row, 4.5)]
    finding = verdict({"ratio_between": {"metric": "relative_error", **SIDES, "range": [1, 2]}}, rows)
    assert outcome(finding) == ("no_data", reason, "relative_error, CPU")


@pytest.mark.parametrize(
    ("metric", "steps", "came", "ratio"),
    [
        ("samples_per_s", None, None, 2 / 3),
        ("samples_per_s", None, 100.0, 1 / 3),
        ("run_time_s", {"epochs": 4, "samples": 250}, None, 3 * 2 / 3),
        ("run_time_s", 7, None, 3),
    ],
)
def test_samples_per_second_and_the_time_of_a_run_are_derived(
    row: Row, metric: str, steps: Any, came: float | None, ratio: float
) -> None:
    """Twice the batch, of which half may arrive, in three times the step time; an epoch has ceil(250 / batch) steps."""
    rows = [*trials(row, 1e-3, 0, batch_size=100), *trials(row, 3e-3, 0, batch_size=200, samples_per_step=came)]
    sides = {"of": {"batch_size": 200}, "over": {"batch_size": 100}, "range": [1, 2]}
    finding = verdict({"ratio_between": {"metric": metric, **sides}}, rows, steps_per_run=steps)
    assert finding["measured"] == pytest.approx(ratio)


def crossover(low: float, high: float, **where: Any) -> dict[str, Any]:
    return {"crossover_between": {"range": [low, high], "where": where}}


SIZES = {2: 100, 3: 500, 4: 2000, 5: 100_000}
"""Parameters by size; with `power_laws`, CPU and GPU take the same time at 1000, and trials differ by 1 %."""


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (500, 2000, "reproduced"),
        (990, 2000, "compatible"),
        (500, 1010, "compatible"),
        (1000, 1005, "inconclusive"),  # the set is 5.0 times as wide
        (2000, 100_000, "differs"),
    ],
)
def test_a_claimed_crossover_is_compared_with_the_set(
    power_laws: PowerLaws, low: float, high: float, expected: str
) -> None:
    """Halfway between 500 and 2000, the standard error is ln(1.01) / sqrt(3). Each of the four cells has 2 degrees of
    freedom from its trials and 4 from the shared spread: t(0.98, 24) = 2.1715.
    """
    finding = verdict(crossover(low, high), power_laws(SIZES, trials=3))
    ends = [1000 * 1.01 ** (sign * 2.1715 / math.sqrt(3)) for sign in (-1, 1)]
    assert (finding["verdict"], finding["measured"]) == (expected, pytest.approx(1000))
    assert (finding["x_axis"], finding["unit"]) == ("parameters", "parameters")
    assert [finding["measured_low"], finding["measured_high"]] == pytest.approx(ends, rel=1e-4)


def test_a_crossover_from_one_trial_lies_between_two_sizes(power_laws: PowerLaws) -> None:
    finding = verdict(crossover(500, 2000), power_laws(SIZES))
    assert outcome(finding) == ("inconclusive", "one_trial", "500 and 2,000 parameters")
    assert (finding["measured"], finding["measured_low"]) == (pytest.approx(1000), None)


@pytest.mark.parametrize(
    ("gpu_s", "low", "high", "expected", "ends"),
    [
        (1e-9, 2000, 1e5, ("differs", "faster_before", "100 parameters"), (None, 100)),
        (1e-9, 100, 1e5, ("differs", "faster_before", "100 parameters"), (None, 100)),
        (1e-9, 50, 1e5, ("inconclusive", "below_range", "100 parameters"), (None, 100)),
        (1.0, 100, 2000, ("differs", "slower_after", "100 k parameters"), (1e5, None)),
        (1.0, 100, 1e5, ("differs", "slower_after", "100 k parameters"), (1e5, None)),
        (1.0, 100, 1e6, ("inconclusive", "above_range", "100 k parameters"), (1e5, None)),
    ],
)
def test_a_gpu_faster_or_slower_everywhere_bounds_the_crossover(
    power_laws: PowerLaws, gpu_s: float, low: float, high: float, expected: Any, ends: Any
) -> None:
    finding = verdict(crossover(low, high), power_laws(SIZES, trials=3, gpu_s=gpu_s))
    assert outcome(finding) == expected
    assert (finding["measured_low"], finding["measured_high"]) == ends


def test_with_a_size_out_of_memory_the_crossover_lies_between_the_significant_sizes(power_laws: PowerLaws) -> None:
    rows = power_laws({**SIZES, 6: 1500}, trials=3)
    lost = (rows["size"] == 6) & (rows["device"] == "cuda")
    rows.loc[lost, ["status", "step_time_s"]] = ["oom", None]
    finding = verdict(crossover(500, 2000), rows)
    assert outcome(finding) == ("reproduced", "inside", "500 and 2,000 parameters")
    assert (finding["measured"], finding["measured_low"], finding["measured_high"]) == (None, 500, 2000)
    assert outcome(verdict(crossover(600, 2000), rows))[:2] == ("compatible", "overlaps")
    assert outcome(verdict(crossover(900, 1000), rows))[:2] == ("inconclusive", "too_wide")
    below = rows[rows["parameters"] < 2000]
    assert outcome(verdict(crossover(600, 2000), below)) == ("no_data", "incomplete", "1,500 parameters")


def test_sides_that_cross_twice_have_no_crossover(power_laws: PowerLaws) -> None:
    rows = power_laws(SIZES, trials=3)
    rows.loc[(rows["size"] == 2) & (rows["device"] == "cuda"), "step_time_s"] = 1e-9
    finding = verdict(crossover(50, 200_000), rows)
    assert (*outcome(finding)[:2], finding["measured"]) == ("inconclusive", "multiple", None)
    assert finding["place"] == "358 and 1,140 parameters"  # as estimated
    assert outcome(verdict(crossover(500, 2000), rows)) == ("differs", "faster_before", "100 parameters")


def test_a_crossover_needs_an_accelerator_and_one_series(power_laws: PowerLaws) -> None:
    rows = power_laws(SIZES, trials=3)
    only_cpu = rows[rows["device"] == "cpu"]
    assert outcome(verdict(crossover(500, 2000), only_cpu)) == ("no_data", "no_accelerator", None)
    failed = only_cpu.assign(status="oom", step_time_s=float("nan"))
    assert outcome(verdict(crossover(500, 2000), failed)) == ("no_data", "no_times", None)
    apart = rows[(rows["device"] == "cpu") == (rows["size"] < 4)]
    assert outcome(verdict(crossover(500, 2000), apart)) == ("no_data", "no_common_size", "CPU and GPU")
    both = pd.concat([rows, power_laws(SIZES, trials=3, gpu_s=1.0, protocol="as_published")], ignore_index=True)
    with pytest.raises(UserError, match="pin protocol in 'where'"):
        verdict(crossover(500, 2000), both)
    assert verdict(crossover(500, 2000, protocol="resident"), both)["verdict"] == "reproduced"
    assert verdict(crossover(500, 2000, protocol="as_published"), both)["verdict"] == "differs"
    more = pd.concat([rows, rows[rows["device"] == "cuda"].assign(device="xpu")], ignore_index=True)
    assert outcome(verdict(crossover(500, 2000), more)) == ("inconclusive", "several_devices", "cuda and xpu")
    assert verdict(crossover(500, 2000, device="xpu"), more)["verdict"] == "reproduced"


def ratings(**accuracies: list[float | str]) -> pd.DataFrame:
    """Trainings by device_precision, each given by its accuracy on 1,000 rows or its status, in the order of seeds."""
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
PLAIN, WORSE, BETTER = [0.8, 0.81, 0.82], [0.75, 0.76, 0.77], [0.84, 0.85, 0.86]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [((-0.001, 0.0, 0.001), "reproduced"), ((0.019, 0.02, 0.021), "differs"), ((-0.01, 0.0, 0.01), "compatible")],
)
def test_quality_by_hand(row: Row, steps: tuple[float, ...], expected: str) -> None:
    """Three seeds whose differences have the standard deviation `steps[2] - steps[1]`, and four added rows of 1,000."""
    seeds = [0.8, 0.5, 0.9]
    quality = ratings(cpu_fp32=seeds, cuda_fp32=[value + step for value, step in zip(seeds, steps, strict=True)])
    finding = verdict(SAME, tables_of([row()], quality))
    of_seeds = 4.302653 * (steps[2] - steps[1]) / math.sqrt(3)
    differing = sum(round(1000 * abs(step)) / 9 for step in steps)  # each in one seed of three
    of_rows = 1.959964 * math.sqrt(differing + 4 - 1000 * steps[1] ** 2) / 1000
    spread = math.sqrt(of_seeds**2 + of_rows**2)
    measured = [finding[name] for name in ("measured", "measured_low", "measured_high")]
    assert (finding["verdict"], finding["published"], finding["place"]) == (
        expected,
        "tested: within ±0.01",
        "GPU, fp32",
    )
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
        # Of two differences, the larger one decides, although the other one is above 0.
        (
            {"cpu_fp32": PLAIN, "cuda_fp32": BETTER, "cuda_bf16": WORSE},
            {},
            ("differs", "outside", "GPU, bf16"),
        ),
        # The CPU in other precisions does not count.
        ({"cpu_fp32": PLAIN, "cuda_fp32": PLAIN, "cpu_bf16": WORSE}, {}, ("reproduced", "inside", "GPU, fp32")),
        ({"cpu_fp32": PLAIN, "cpu_bf16": WORSE}, {"device": "cpu"}, ("differs", "outside", "CPU, bf16")),
        (
            {"cpu_fp32": PLAIN, "cuda_fp32": ["oom"] * 3, "cuda_bf16": PLAIN},
            {},
            ("no_data", "failed", "GPU, fp32: oom"),
        ),
        # A failed training of the baseline is not reported as too few seeds.
        (
            {"cpu_fp32": [0.8, "timeout", "timeout"], "cuda_fp32": PLAIN},
            {},
            ("no_data", "baseline_failed", "GPU, fp32: timeout"),
        ),
        ({"cuda_fp32": PLAIN}, {}, ("inconclusive", "one_seed", "GPU, fp32")),
        ({"cpu_fp32": PLAIN, "cpu_bf16": PLAIN}, {}, ("no_data", "no_accelerator", None)),
        ({"cpu_fp32": PLAIN, "cuda_fp32": ["unsupported"]}, {}, ("no_data", "no_contender", None)),
        ({}, {}, ("no_data", "not_trained", "disc_depth")),
    ],
)
def test_a_claim_about_quality_covers_every_device_and_precision(
    row: Row, quality: dict[str, Any], where: dict[str, Any], expected: tuple[str, str, str | None]
) -> None:
    form = {"same_quality": {**SAME["same_quality"], "where": where}}
    assert outcome(verdict(form, tables_of([row()], ratings(**quality)))) == expected


def test_quality_on_generated_rows_gives_no_verdict(row: Row) -> None:
    for accuracies in (PLAIN, WORSE):
        trainings = ratings(cpu_fp32=PLAIN, cuda_fp32=accuracies).assign(generated_data=True)
        finding = outcome(verdict(SAME, tables_of([row()], trainings)))
        assert finding == ("no_data", "generated_data", "datasets.disc")


def test_models_are_compared_with_the_same_model_on_the_cpu(row: Row) -> None:
    """Two sizes with different accuracies; on the GPU only size 20 differs, by 0.05 from seed 1 on."""
    small = ratings(cpu_fp32=[0.6] * 3, cuda_fp32=[0.6] * 3).assign(size=10)
    large = ratings(cpu_fp32=[0.9] * 3, cuda_fp32=[0.9] * 3).assign(size=20)
    changed = ratings(cpu_fp32=[0.9] * 3, cuda_fp32=[0.9, 0.85, 0.85]).assign(size=20)
    assert verdict(SAME, tables_of([row()], pd.concat([small, large])))["verdict"] == "reproduced"
    assert verdict(SAME, tables_of([row()], pd.concat([small, changed])))["reason"] == "too_wide"
    elsewhere = {"same_quality": {**SAME["same_quality"], "study": "quality"}}
    assert verdict(elsewhere, tables_of([row()], large.assign(study="quality")))["verdict"] == "reproduced"
    assert outcome(verdict(elsewhere, tables_of([row()], large)))[1:] == ("not_trained", "quality")


def test_every_machine_is_checked_separately(row: Row) -> None:
    rows = [*pair(row, 4.5), *(trial | {"machine": "other"} for trial in pair(row, 9.0))]
    table = check_claims(claiming(SPEEDUP) | claiming(SPEEDUP, "unmeasured"), tables_of(rows))
    verdicts = table[["study", "machine", "verdict"]].to_numpy().tolist()
    assert verdicts[:2] == [["disc_depth", "here", "reproduced"], ["disc_depth", "other", "differs"]]
    assert verdicts[2:] == [["unmeasured", "here", "no_data"]]
    assert list(table.columns) == list(check_claims({}, run_tables()).columns) == list(TABLES["claims"])


def on_references(row: Row, devices: Sequence[str], *, source: str = "Somebody (2019)", **there: Any) -> list[Any]:
    """What a claim on the GPU's speed-up gives with a reference, whose GPU is 4.5 times as fast as its CPU."""

    def trials(devices: Sequence[str], **values: Any) -> pd.DataFrame:
        times_s = {"cpu": 9e-3, "cuda": 2e-3}
        rows = [
            row(**{"device": device, "trial": trial, "step_time_s": times_s[device] * 1.01**trial, "model_key": "key"})
            | values
            for device in devices
            for trial in (1, 2, 3)
        ]
        return pd.DataFrame(rows).reindex(columns=list(COLUMNS))

    facts = Facts("far", "NVIDIA H100 80GB HBM3", "Xeon", 16, "2026-11-26", "2", "3", None, "Linux", None, None)
    reference = Reference(facts, trials(("cpu", "cuda"), machine="far", **there))
    tables, claimed = tables_of(trials(devices)), claiming(SPEEDUP | {"source": source, "published": None})
    rows = check_claims(claimed, tables, references=[reference])
    return [tuple(each.values()) for each in records(rows[["machine", "verdict", "elsewhere"]])]


FAR = ("far", "reproduced", "an H100 measured elsewhere (2026-11-26)")


def test_a_published_claim_that_nothing_here_can_judge_is_judged_on_references(row: Row) -> None:
    """Its verdict has its own row, which names where it was measured."""
    assert on_references(row, ["cpu"]) == [("here", "no_data", ""), FAR]


@pytest.mark.parametrize("change", [{"model_key": "other"}, {"precision": "bf16"}, {"batch_size": 7}])
def test_a_reference_judges_only_the_same_series_of_the_same_model(row: Row, change: dict[str, Any]) -> None:
    assert on_references(row, ["cpu"], **change) == [("here", "no_data", "")]


def test_a_reference_judges_neither_our_own_claims_nor_what_is_judged_here(row: Row) -> None:
    assert on_references(row, ["cpu"], source="ours") == [("here", "no_data", "")]
    assert on_references(row, ["cpu", "cuda"]) == [("here", "reproduced", "")]


@pytest.mark.parametrize("elsewhere", ["", FAR[2]])
def test_a_verdict_from_elsewhere_says_so(elsewhere: str) -> None:
    words: Any = environment_of(TEMPLATES).get_template("words.j2").module
    claim = {"source": "Somebody", "verdict": "reproduced", "elsewhere": elsewhere}
    said = words.verdict(claim).strip()
    assert said == ("✓ reproduced" if not elsewhere else f"on {elsewhere}: ✓ reproduced")
