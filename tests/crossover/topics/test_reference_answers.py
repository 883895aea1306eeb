"""Answers on references, which were measured elsewhere, and thresholds for programs."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover import thresholds as thresholds_reader
from crossover.compare.cells import means_of, summarise
from crossover.compare.crossovers import crossovers_of
from crossover.compare.pairings import pairings
from crossover.compare.ratios import ratios_of
from crossover.config.models import Model
from crossover.report.report import Run, write_report
from crossover.report.thresholds import thresholds_of
from crossover.tables.columns import COLUMNS
from crossover.tables.reference_files import Facts, Reference
from crossover.tables.run_tables import RunTables, table_of
from crossover.thresholds import read_thresholds, should_use_gpu
from crossover.topics.answer import group_alike, summed
from crossover.topics.answers import read_answers
from crossover.topics.bottlenecks.bounds import bounds_of
from crossover.topics.references.table import agreeing
from crossover.topics.wording import amount_text
from report_pages import CONFIG, TEMPLATES, study, tables_of

Row = Callable[..., dict[str, Any]]
SIZES = (100, 1000, 10_000)
STUDY = "disc_depth"
FACTS = Facts("h200", "NVIDIA H200", "Xeon", 16, "2026-11-23", "2.13.0", "3.12.3", None, "Linux", "abc", None)


def trials(row: Row, device: str, seconds: Callable[[int], float], **values: Any) -> list[dict[str, Any]]:
    """Three trials at each size, whose times are 1 % apart."""
    return [
        row(
            **{"device": device, "size": size, "parameters": 7 * size, "trial": trial, "model_key": "key"}
            | {"step_time_s": seconds(size) * 1.01 ** (trial - 2), "device_name": device.upper(), **values}
        )
        for size in SIZES
        for trial in (1, 2, 3)
    ]


@pytest.fixture(scope="module")
def cpu_rows(row: Row) -> list[dict[str, Any]]:
    """Trials of a machine without a GPU, whose CPU takes 4 us x size."""
    return trials(row, "cpu", lambda size: 4e-6 * size)


@pytest.fixture(scope="module")
def elsewhere(row: Row) -> Callable[..., Reference]:
    """A reference with a GPU that takes 2 ms at every size, nearly all on the host, whose CPU is four times as fast."""

    def build(**values: Any) -> Reference:
        of_gpu = {"device_name": "NVIDIA H200", "device_busy_s": 1e-9}
        rows = trials(row, "cuda", lambda _: 2e-3, **of_gpu | values)
        rows += trials(row, "cpu", lambda size: 1e-6 * size, **values)
        table = pd.DataFrame(rows).assign(machine="h200").reindex(columns=list(COLUMNS))
        return Reference(FACTS, table)

    return build


def tables(rows: list[dict[str, Any]], *references: Reference, **more: Any) -> RunTables:
    return tables_of(pd.DataFrame(rows), {STUDY: study(**more)}, references=references)


@pytest.fixture(scope="module")
def cpu_alone(cpu_rows: Any) -> RunTables:
    return tables(cpu_rows)


@pytest.fixture(scope="module")
def with_reference(cpu_rows: Any, elsewhere: Any) -> RunTables:
    return tables(cpu_rows, elsewhere())


def of_kind(run: RunTables, kind: str) -> list[Any]:
    return [answer for answer in read_answers(run.answers) if answer.kind == kind]


def test_a_gpu_of_a_reference_is_compared_with_the_cpu_here(with_reference: RunTables) -> None:
    (answer,) = of_kind(with_reference, "reference")
    assert (answer.main, answer.status, answer.machine) == (True, "bracketed", "h200")
    assert (answer.winner, answer.loser) == ("an H200", "this CPU")
    assert answer.host_slowdown == pytest.approx(4)
    assert answer.host_share == pytest.approx(1)
    # 2 ms as measured; 8 ms with this CPU, which takes four times as long as the reference's, and 5.3 to 12.1 ms with
    # other exponents (0.7 and 1.3). The spread between hosts and the trials add little.
    assert answer.crossover == pytest.approx(2000)
    assert 1000 < answer.crossover_low < 1320 < 3030 < answer.crossover_high < 3600
    assert answer.measured_on == "2026-11-23"
    assert not of_kind(with_reference, "crossover")


NAMES = {"low": "crossover_low", "high": "crossover_high"}


def test_a_crossover_with_a_reference_says_what_is_known(with_reference: RunTables) -> None:
    (answer,) = of_kind(with_reference, "reference")
    low, high = (amount_text(end, answer.unit) for end in (answer.crossover_low, answer.crossover_high))
    source = "Estimated from its steps elsewhere (2026-11-23): "
    assert answer.basis() == f"{source}the host's work, 100 % of a step here, is 4.00x slower; 95 % interval"
    undecided = replace(answer, status="undecided", host_share=None, host_slowdown=0.5, crossover_low=None)
    assert undecided.basis() == f"{source}the host's work is 2.00x faster here"

    def said(**changes: Any) -> tuple[str, str]:
        changed = replace(answer, **{NAMES.get(name, name): value for name, value in changes.items()})
        return changed.statement(), changed.notes()

    assert said() == (
        f"An H200 would be faster above about 2,000 linear layers ({low} to {high})",
        "",
    )
    one_sided = "95 % confidence"
    from_high = f"An H200 would be faster than this CPU from {high} linear layers up; below, this run cannot tell"
    up_to_low = f"This CPU is faster than an H200 up to {low} linear layers; above, this run cannot tell"
    assert said(low=None) == said(low=answer.smallest) == (from_high, one_sided)
    assert said(high=None) == said(high=answer.largest) == (up_to_low, one_sided)
    untold = ("This run cannot tell whether an H200 would be faster than this CPU", "")
    assert said(low=answer.smallest, high=answer.largest) == untold
    up_to_high = f"An H200 would be faster than this CPU up to {low} linear layers; above, this run cannot tell"
    assert said(status="reversed", high=None) == (up_to_high, one_sided)
    several = {"status": "multiple", "roots": [200.0, 3000.0], "reach": answer.largest}
    crossings = "An H200 and this CPU would cross 2 times, near 200 and 3,000 linear layers"
    assert said(**several) == (f"{crossings}; an H200 would be faster than this CPU above the last", "")
    preliminary = "An H200 would be faster than this CPU above about 3,000 linear layers; undecided below"
    assert said(**several, trials=1) == (preliminary, "")
    single = {"low": None, "high": None, "bracket_high": answer.largest, "bracket_low": None, "trials": 1}
    at_largest = "An H200 would be faster than this CPU at 10,000 linear layers; below, this run cannot tell"
    assert said(**single) == (at_largest, "")


def test_a_summary_of_estimates_says_what_each_and_what_the_best_tells(with_reference: RunTables) -> None:
    (answer,) = of_kind(with_reference, "reference")
    would, cpu = "An H200 would be faster", "This CPU is faster than an H200"
    gpu = f"{would} than this CPU"
    answer = replace(answer, crossover_low=700, crossover_high=2500)
    other = replace(answer, crossover_low=300, crossover_high=2600, crossover=1500)

    def said(*changes: dict[str, Any]) -> list[str]:
        named = [{NAMES[name]: value for name, value in change.items()} for change in changes]
        groups = group_alike([replace(each, **change) for change in named for each in (answer, other)])
        return [summed(group) for group in groups]

    within = "by series (intervals within 300 to 2,600 linear layers)"
    assert said({}) == [f"{would} above about 1,500 to 2,000 linear layers, {within}"]
    up = f"{gpu} from 2,600 linear layers up; below, this run cannot tell; in one series, from 2,500 linear layers"
    assert said({"low": None}) == said({"low": 100}) == [up]
    up_to = f"{cpu} up to 300 linear layers; above, this run cannot tell; in one series, up to 700 linear layers"
    assert said({"high": None}) == said({"high": 10_000}) == [up_to]
    assert said({"low": None, "high": 2500}) == [f"{gpu} from 2,500 linear layers up; below, this run cannot tell"]
    assert said({"low": None}, {"high": None}) == [up, up_to]
    assert said({"low": 100, "high": 10_000}) == [f"This run cannot tell whether {gpu[:1].lower()}{gpu[1:]}"]
    lead = replace(answer, status="edge_tie", crossover_low=None, ratio_low=2.0, ratio_high=3.0, reach=2000)
    longer = replace(lead, reach=1000, ratio_low=1.5)
    (group,) = group_alike([longer, lead])
    assert summed(group) == (
        f"{gpu} from 2,000 linear layers up, 1.50 to 3.00x; below, this run cannot tell; in one series, from 1,000 "
        "linear layers"
    )
    (group,) = group_alike([replace(longer, status="below_range"), replace(lead, status="below_range", reach=100)])
    assert summed(group) == f"{gpu} at every size measured, 1.50 to 3.00x"


def test_how_fast_a_gpu_elsewhere_would_be_is_given(cpu_rows: Any, elsewhere: Any) -> None:
    """40 ms on this CPU over 8 ms, also in a study without crossovers."""
    for figures in (["times"], ["latency"]):
        run = tables(cpu_rows, elsewhere(), figures=figures)
        (answer,) = of_kind(run, "elsewhere")
        assert answer.ratio == pytest.approx(5)
        assert answer.statement() == "An H200 would be 5.00x as fast as this CPU at 10,000 linear layers"
        # The standard deviation is that of the exponent (0.3 x ln 4 / 1.96), of hosts (0.05), of a slowdown from
        # one small step (0.16) and of trials (0.008).
        assert math.log(answer.ratio_high / 5) == pytest.approx(1.96 * math.hypot(0.212, 0.05, 0.16, 0.008), rel=0.01)
        assert answer.notes().startswith("95 % CI 2.94 to 8.50; estimated from its times elsewhere, 2026-11-23")
        assert not of_kind(run, "bound")


@pytest.mark.parametrize(("step_s", "repeats"), [(2e-3, 1), (1e-5, 0)])
def test_a_speedup_is_not_told_again_after_a_lead_that_contains_it(
    cpu_rows: Any, elsewhere: Any, tmp_path: Path, step_s: float, repeats: int
) -> None:
    """The GPU is ahead from 2,000 layers on, or at every size."""
    reference = elsewhere()
    is_gpu = reference.trials["device"] == "cuda"
    times_s = reference.trials["step_time_s"].mask(is_gpu, reference.trials["step_time_s"] * step_s / 2e-3)
    run = tables(cpu_rows, replace(reference, trials=reference.trials.assign(step_time_s=times_s)))
    write_report(Run(run, {STUDY: study()}, CONFIG), tmp_path, TEMPLATES)
    for name in ("summary.txt", "summary.md"):
        assert (tmp_path / name).read_text().count("as fast as this CPU") == repeats, name
    page = (tmp_path / "report.html").read_text()
    assert "as fast as this CPU" in page
    assert (page.count("Dashed: "), page.count("Dashed: estimated beside this CPU from <bdi>")) == (1, 1)


@pytest.mark.parametrize("figures", [["times"], ["latency"]])
def test_a_gpu_elsewhere_that_is_not_significantly_faster_is_said_so(
    cpu_rows: Any, elsewhere: Any, figures: list[str]
) -> None:
    """8.3 ms here, over 8 ms: a difference of 4 % is not significant."""
    noisy = [trial | {"step_time_s": 8.3e-3 * 1.1 ** (trial["trial"] - 2)} for trial in cpu_rows[-3:]]
    run = tables(cpu_rows[:-3] + noisy, elsewhere(), figures=figures)
    (answer,) = of_kind(run, "elsewhere")
    assert answer.status == "inconclusive"
    sentence = f"{answer.statement()} ({answer.notes()})"
    assert sentence.startswith("No significant difference between an H200 and this CPU at 10,000")
    assert "(none larger than" in sentence
    together = answer.summary_of([answer, answer])
    assert together.startswith("No significant difference between an H200 and this CPU at the largest size (none ")
    assert "95 % CI" not in sentence
    assert answer.compares
    assert not answer.states_difference


def test_ratios_to_gpus_elsewhere_are_corrected_with_all_that_a_study_says(cpu_rows: Any, elsewhere: Any) -> None:
    """Equal times are corrected, for the ratio and the crossover. Both of the reference's devices take 2 ms."""
    alike = [trial | {"step_time_s": 2e-3 * 1.01 ** (trial["trial"] - 2)} for trial in cpu_rows]
    there = elsewhere()
    there = replace(there, trials=there.trials.assign(step_time_s=2e-3 * 1.01 ** (there.trials["trial"] - 2)))
    (tied,) = of_kind(tables(alike, there, figures=["latency"]), "elsewhere")
    (alone,) = of_kind(tables(alike, there), "elsewhere")
    assert tied.detectable < alone.detectable


@pytest.mark.parametrize("there", [False, True])
def test_an_answer_from_a_busy_machine_says_so_first(row: Row, cpu_rows: Any, elsewhere: Any, there: bool) -> None:
    """Two of three CPU cells had other programs on their cores."""
    busy = [trial | {"flag_names": ["busy_host"] if trial["size"] < 10_000 else []} for trial in cpu_rows]
    run = tables(busy, elsewhere()) if there else tables(busy + trials(row, "cuda", lambda _: 2e-3))
    kinds = ("reference",) if there else ("crossover",)
    for answer in (answer for kind in kinds for answer in of_kind(run, kind)):
        assert answer.statement().startswith("On a busy machine: "), answer.kind
    series = thresholds_of(run, "today")["thresholds"][-1]
    assert series["caveats"][0] == "busy_machine"
    quiet = [trial | {"flag_names": ["busy_host"] if trial["size"] == 100 else []} for trial in cpu_rows]
    calm = tables(quiet, elsewhere()) if there else tables(quiet + trials(row, "cuda", lambda _: 2e-3))
    for answer in (answer for kind in kinds for answer in of_kind(calm, kind)):
        assert "busy_machine" not in answer.caveats


FIRST_PLACES = "this CPU at 100 linear layers, the H200 at 10,000 linear layers"
LAST_PLACE = "than each of this CPU and the H200 at 1,000 linear layers"


@pytest.mark.parametrize(
    ("prices", "steps", "sentence"),
    [
        (None, None, f"Fastest: {FIRST_PLACES}; this GPU is slower {LAST_PLACE}"),
        ({"here": 1.0, "h200": 1.0}, 500, f"Cheapest: {FIRST_PLACES}; this GPU is more expensive {LAST_PLACE}"),
    ],
)
def test_machines_are_ranked_by_time_or_money(
    row: Row, cpu_rows: Any, elsewhere: Any, cpu_alone: RunTables, prices: Any, steps: Any, sentence: str
) -> None:
    """This CPU takes 4 us x size, its GPU 20 ms, the reference's CPU, which no answer names, 1 us x size, its GPU 2."""
    rows = pd.DataFrame(cpu_rows + trials(row, "cuda", lambda _: 20e-3))
    run = tables_of(rows, {STUDY: study(steps_per_run=steps)}, prices=prices, references=[elsewhere()])
    (answer,) = of_kind(run, "ranking")
    assert answer.statement() == sentence
    assert (answer.main, answer.sides) == (False, ["this CPU", "this GPU", "the H200"])
    assert not of_kind(cpu_alone, "ranking")


def test_beside_its_only_cpu_gpus_elsewhere_have_no_ranking(with_reference: RunTables) -> None:
    """Ranked as measured beside its own CPU, a GPU would be ahead where the estimate beside this CPU is unsure."""
    assert not of_kind(with_reference, "ranking")
    assert len(with_reference.machines)


def test_a_ranking_by_money_has_its_currency(row: Row, cpu_rows: Any, elsewhere: Any, tmp_path: Path) -> None:
    rows = pd.DataFrame(cpu_rows + trials(row, "cuda", lambda _: 50e-3))
    prices = {"here": 0.01, "h200": 1.0, "currency": "EUR"}
    run = tables_of(rows, {STUDY: study()}, prices=prices, references=[elsewhere()])
    config = {**CONFIG, "prices": prices}
    write_report(Run(run, {STUDY: study()}, config), tmp_path, TEMPLATES)
    for name, words in (
        ("summary.txt", "Cheapest (EUR): this CPU at every size"),
        ("summary.md", "Cheapest (EUR): this CPU at every size"),
        ("report.html", "EUR of a million steps on each device"),
    ):
        assert words in (tmp_path / name).read_text(), name


@pytest.mark.parametrize("here", [False, True])
def test_a_lead_from_a_size_on_is_significant_at_all_larger_sizes(row: Row, here: bool) -> None:
    """The GPU is 4 times as fast from 1000 on, except at 4000, where trials scatter: the answer is "from 10,000 on"."""
    speedups = {10: 1, 1000: 4, 4000: 4, 10_000: 4, 100_000: 4}
    factors = {1: 0.3, 2: 1.0, 3: 3.0}

    def side(device: str, **values: Any) -> list[dict[str, Any]]:
        return [
            row(device=device, size=size, parameters=7 * size, trial=trial, model_key="key", **values)
            | {"step_time_s": 1e-3 * 1.01**trial * (factors[trial] if size == 4000 else 1.0)}
            | ({} if device == "cpu" else {"step_time_s": 1e-3 / speedup * 1.01**trial})
            for size, speedup in speedups.items()
            for trial in (1, 2, 3)
        ]

    if here:
        (answer,) = of_kind(tables(side("cpu") + side("cuda")), "crossover")
    else:
        there = pd.DataFrame(side("cuda") + side("cpu")).assign(machine="h200").reindex(columns=list(COLUMNS))
        (answer,) = of_kind(tables(side("cpu"), Reference(FACTS, there)), "reference")
    assert (answer.status, answer.reach) == ("edge_tie", 10_000)
    assert answer.caveat_at == [10, 4000]
    assert answer.ratio_low == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("change", [{"model_key": "other"}, {"batch_size": 7}, {"precision": "bf16"}, {"study": "s"}])
def test_only_equal_cells_of_the_same_model_are_compared(cpu_rows: Any, elsewhere: Any, change: dict[str, Any]) -> None:
    here = pd.DataFrame(cpu_rows)
    assert len(agreeing(here, [elsewhere()]))
    assert agreeing(here, [elsewhere(**change)]).empty


def test_a_reference_changes_no_other_rows(cpu_alone: RunTables, with_reference: RunTables) -> None:
    for name in ("cells", "candidate_cells"):
        pd.testing.assert_frame_equal(getattr(cpu_alone, name), getattr(with_reference, name))
    for name in ("crossovers", "ratios"):
        table = getattr(with_reference, name)
        pd.testing.assert_frame_equal(getattr(cpu_alone, name), table[table["pair"] != "reference"], check_dtype=False)


def test_with_a_gpu_here_devices_of_the_same_kind_are_compared(row: Row, cpu_rows: Any, elsewhere: Any) -> None:
    run = tables(cpu_rows + trials(row, "cuda", lambda _: 3e-3), elsewhere())
    assert not of_kind(run, "reference")
    values = {answer.device: (answer.ratio, answer.name_there) for answer in of_kind(run, "set_up")}
    assert values == {
        "cpu": (pytest.approx(4), "Xeon"),
        "cuda": (pytest.approx(1.5), "NVIDIA H200"),
    }


def read_back(run: RunTables, folder: Path) -> list[Any]:
    """The thresholds of a run, written to a file and read back with `read_thresholds`."""
    file = folder / "thresholds.json"
    file.write_text(json.dumps(thresholds_of(run, "today")))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* returns its default everywhere")
        return list(read_thresholds(file))


def uses_gpu(thresholds: Any, x: float, **axes: Any) -> bool | None:
    return should_use_gpu(thresholds, STUDY, x, gpu_measured_elsewhere=True, **axes)


class TestThresholds:
    @pytest.fixture
    def series_elsewhere(self, with_reference: RunTables, tmp_path: Path) -> list[Any]:
        return read_back(with_reference, tmp_path)

    def test_a_device_is_faster_outside_of_the_interval(self, series_elsewhere: Any) -> None:
        _, series = series_elsewhere
        assert (series["unit"], series["gpu"], series["gpu_measured_elsewhere"]) == (
            "linear layers",
            "NVIDIA H200",
            True,
        )
        assert (series["gpu_torch_version"], series["gpu_measured_on"]) == ("2.13.0", "2026-11-23")
        sizes = {100: False, 300: False, 5000: True, 10_000: True, 2000: None}
        assert {size: uses_gpu(series_elsewhere, size) for size in sizes} == sizes
        assert uses_gpu(series_elsewhere, 2000, default=True) is True

    def test_beyond_the_measured_sizes_the_answer_is_the_default(self, series_elsewhere: Any) -> None:
        assert {uses_gpu(series_elsewhere, size) for size in (1, 99, 10_001, 20_000)} == {None}
        assert uses_gpu(series_elsewhere, 1, default=True) is True
        nearest = {1: False, 20_000: True, 2000: None}
        assert {size: uses_gpu(series_elsewhere, size, beyond_measured=True) for size in nearest} == nearest

    def test_without_a_gpu_here_the_answer_is_the_default(
        self, series_elsewhere: Any, cpu_alone: RunTables, cpu_rows: Any, tmp_path: Path
    ) -> None:
        """With and without a GPU measured elsewhere, for any series or device, and also if several series match."""
        batches = read_back(tables(cpu_rows + [row | {"batch_size": 7} for row in cpu_rows]), tmp_path)
        assert should_use_gpu(batches, STUDY, 100) is None
        for thresholds in (series_elsewhere, read_back(cpu_alone, tmp_path), batches):
            assert should_use_gpu(thresholds, STUDY, 100, protocol="resident", default=False) is False
            assert should_use_gpu(thresholds, STUDY, 100, device="cuda", gpu="NVIDIA H200") is None

    def test_a_single_trial_is_used_on_request(self, row: Row, cpu_rows: Any, tmp_path: Path) -> None:
        """The GPU is 0.2, 2 and 20 times as fast, so at least twice from 1000 on."""
        rows = [trial for trial in cpu_rows + trials(row, "cuda", lambda _: 2e-3) if trial["trial"] == 1]
        (series,) = read_back(tables(rows), tmp_path)
        assert (series["single_trial"], series["trials"]) == (True, 1)
        assert {"one_trial", "no_interval"} <= set(series["caveats"])
        assert should_use_gpu([series], STUDY, 10_000) is None
        sizes = {100: False, 500: None, 1000: True, 10_000: True}
        assert {size: should_use_gpu([series], STUDY, size, single_trial=True) for size in sizes} == sizes

    def test_one_size_with_several_trials_is_not_enough(self, row: Row, cpu_rows: Any) -> None:
        """With only one such size the crossover has no interval, so its thresholds also count as single-trial."""
        rows = cpu_rows + trials(row, "cuda", lambda _: 2e-3)
        run = tables([trial for trial in rows if trial["trial"] == 1 or trial["size"] == 100])
        (series,) = thresholds_of(run, "today")["thresholds"]
        assert (series["crossover_low"], series["single_trial"]) == (None, True)
        assert [sizes["faster"] for sizes in series["ranges"]] == ["cpu", "gpu"]

    def test_a_series_without_a_gpu_may_be_a_single_trial(
        self, cpu_rows: Any, cpu_alone: RunTables, tmp_path: Path
    ) -> None:
        once = tables([trial for trial in cpu_rows if trial["trial"] == 1])
        for run, is_single in ((once, True), (cpu_alone, False)):
            (series,) = read_back(run, tmp_path)
            assert (series["device"], series["single_trial"]) == (None, is_single)

    @pytest.mark.parametrize(
        ("gpu", "trials_of_cell", "there", "reason"),
        [
            (None, 3, False, "no GPU was measured; run the study on a machine with one"),
            (None, 3, True, "it answers only with gpu_measured_elsewhere=True"),
            (2e-3, 1, False, "it answers only with single_trial=True"),
            ("as the CPU", 3, False, "no size has a significant difference; measure more trials or other sizes"),
            ("alone", 3, False, "no size has a result of both GPU and CPU; run the study with devices="),
        ],
    )
    def test_a_file_that_decides_nothing_says_so_when_it_is_loaded(
        self,
        row: Row,
        cpu_rows: Any,
        elsewhere: Any,
        tmp_path: Path,
        gpu: Any,
        trials_of_cell: int,
        there: bool,
        reason: str,
    ) -> None:
        rows = list(cpu_rows) if gpu != "alone" else []
        if gpu is not None:
            rows += trials(row, "cuda", lambda size: 4e-6 * size if isinstance(gpu, str) else gpu)
        rows = [trial for trial in rows if trial["trial"] <= trials_of_cell]
        file = tmp_path / "t.json"
        file.write_text(json.dumps(thresholds_of(tables(rows, *([elsewhere()] if there else [])), "today")))
        with pytest.warns(UserWarning, match=f"t.json: should_use_gpu returns its default everywhere: {reason}"):
            read_thresholds(file)

    def test_a_file_without_series_says_so_and_one_that_decides_is_read_in_silence(
        self, row: Row, cpu_rows: Any, tmp_path: Path
    ) -> None:
        file = tmp_path / "t.json"
        file.write_text('{"version": 5, "thresholds": []}')
        with pytest.warns(UserWarning, match="the run compared no devices over sizes"):
            read_thresholds(file)
        file.write_text(json.dumps(thresholds_of(tables(cpu_rows + trials(row, "cuda", lambda _: 2e-3)), "today")))
        assert len(read_thresholds(file)) == 1

    def test_at_an_undecided_size_the_answer_is_the_default(self, row: Row, cpu_rows: Any, tmp_path: Path) -> None:
        """The GPU is four times as fast at both ends; at 1000 its trials scatter around the CPU's time."""
        scatter = {1: 0.3, 2: 0.9, 3: 2.7}
        gpu = trials(row, "cuda", lambda size: 1e-6 * size)
        rows = [
            trial | {"step_time_s": 4e-3 * scatter[trial["trial"]]} if trial["size"] == 1000 else trial for trial in gpu
        ]
        (series,) = read_back(tables(cpu_rows + rows), tmp_path)
        assert (series["status"], series["caveats"]) == ("below_range", ["unsure_sizes"])
        sizes = {100: True, 500: None, 1000: None, 5000: None, 10_000: True}
        assert {size: should_use_gpu([series], STUDY, size) for size in sizes} == sizes

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("spread", "single_trial", "least", "most"), [(0.05, False, 0, 3), (0.1, True, 0, 0), (0.25, True, 8, 21)]
    )
    def test_equally_fast_devices_have_as_few_wrong_answers_as_documented(
        self, row: Row, cpu_alone: RunTables, spread: float, single_trial: bool, least: int, most: int
    ) -> None:
        """Both devices take the same time: at most 5 % of 60 runs name a faster one; with single trials 0 and 14 %."""
        random = np.random.default_rng(0)
        cells = pd.DataFrame(trials(row, "cpu", lambda _: 1.0) + trials(row, "cuda", lambda _: 1.0))
        if single_trial:
            cells = cells[cells["trial"] == 1]
        named = 0
        for _ in range(60):
            scattered = cells.assign(step_time_s=np.exp(random.normal(0, spread, len(cells))))
            x_axes = {STUDY: "size"}
            crossovers = crossovers_of(pairings(scattered, x_axes))
            like = replace(
                cpu_alone,
                measurements=scattered,
                crossovers=crossovers,
                ratios=ratios_of(scattered, means_of(scattered), pairings(scattered, x_axes)),
            )
            (series,) = thresholds_of(like, "today")["thresholds"]
            assert series["single_trial"] == single_trial
            named += any(
                should_use_gpu([series], STUDY, size, single_trial=single_trial) is not None
                for size in range(100, 10_001, 33)
            )
        assert least <= named <= most

    def test_a_gpu_here_has_the_facts_of_this_host(self, row: Row, cpu_rows: Any, tmp_path: Path) -> None:
        host = {"torch_version": "2.12.0", "driver_version": "580", "started_at": "2026-11-22T10:00:00Z"}
        (series,) = read_back(tables(cpu_rows + trials(row, "cuda", lambda _: 2e-3, **host)), tmp_path)
        facts = {"gpu_torch_version": "2.12.0", "gpu_driver_version": "580", "gpu_measured_on": "2026-11-22"}
        assert facts.items() <= series.items()
        assert should_use_gpu([series], STUDY, 100) is False

    @pytest.mark.parametrize("tie", [100, 10_000])
    def test_with_a_tie_at_one_end_a_device_is_faster_at_the_other(
        self, row: Row, cpu_rows: Any, tie: int, tmp_path: Path
    ) -> None:
        """A tie at the largest size, with the GPU slower below it, or at the smallest, with the GPU faster above it."""
        factor = 4 if tie == 10_000 else 0.25

        def seconds(size: int) -> float:
            return 4e-6 * size * (1 if size == tie else factor)

        (series,) = read_back(tables(cpu_rows + trials(row, "cuda", seconds)), tmp_path)
        assert series["status"] == "edge_tie"
        far = 100 if tie == 10_000 else 10_000
        assert should_use_gpu([series], STUDY, far) is (tie == 100)
        assert should_use_gpu([series], STUDY, tie) is None

    def test_one_of_several_series_must_be_chosen(self, series_elsewhere: Any) -> None:
        both = [*series_elsewhere, {**series_elsewhere[1], "batch_size": 5}]
        assert uses_gpu(both, 100, batch_size=5) is False
        with pytest.raises(
            ValueError, match=r"2 series of study 'disc_depth' have a GPU; name one value of batch_size \(5, 100\)"
        ):
            uses_gpu(both, 100)
        with pytest.raises(ValueError, match=r"study 'disc_depth' with protocol='resident' have a GPU; name"):
            uses_gpu(both, 100, protocol="resident")

    def test_errors_name_the_argument_and_the_allowed_values(self, series_elsewhere: Any) -> None:
        with pytest.raises(ValueError, match=r"study 'disc' has no thresholds; allowed: \['disc_depth'\]"):
            should_use_gpu(series_elsewhere, "disc", 100, default=True)
        with pytest.raises(
            ValueError, match=r"no series of study 'disc_depth' has precision='bf16'; allowed: \['fp32'\]"
        ):
            uses_gpu(series_elsewhere, 100, precision="bf16")
        with pytest.raises(
            ValueError, match=r"no thresholds are given: .* run Snakemake with a study that does, and read"
        ):
            should_use_gpu([], "disc", 100)
        with pytest.raises(ValueError, match="'batch' is not an axis of a series; allowed: size, batch_size, machine"):
            uses_gpu(series_elsewhere, 100, batch=100)
        for x in ("100", None, [100, 200]):
            with pytest.raises(TypeError, match=r"; allowed: a number"):
                uses_gpu(series_elsewhere, x)

    @pytest.mark.parametrize(
        "axes", [{"batch_size": 7}, {"size": 3}, {"gpu": "B200"}, {"cpu": "Arm"}, {"machine": "a"}, {"device": "xpu"}]
    )
    def test_for_an_unmeasured_series_the_answer_is_the_default(
        self, series_elsewhere: Any, axes: dict[str, Any]
    ) -> None:
        assert uses_gpu(series_elsewhere, np.float32(10_000)) is True
        assert uses_gpu(series_elsewhere, 10_000, default=False, **axes) is False

    @pytest.mark.parametrize(("x_axis", "unit"), [("size", 1), ("parameters", 7)])
    def test_at_sizes_without_a_time_on_the_gpu_the_answer_is_the_default(
        self, cpu_rows: Any, tmp_path: Path, x_axis: str, unit: int
    ) -> None:
        """The GPU is four times as fast at 100 and 10,000, and out of memory at 1000 and 100,000."""
        cpu = cpu_rows + [trial | {"size": 100_000, "parameters": 700_000} for trial in cpu_rows[-3:]]
        gpu = [trial | {"device": "cuda", "step_time_s": trial["step_time_s"] / 4} for trial in cpu]
        lost = {"status": "oom", "step_time_s": None}
        gpu = [trial | lost if trial["size"] in (1000, 100_000) else trial for trial in gpu]
        (series,) = read_back(tables(cpu + gpu, x_axis=x_axis), tmp_path)
        assert series["lost"] == [1000 * unit, 100_000 * unit]
        assert "lost_cells" in series["caveats"]
        assert [speedup["at"] for speedup in series["speedups"]] == [100 * unit, 10_000 * unit]
        assert all(s["ratio_low"] < s["ratio"] < s["ratio_high"] and s["trials"] == 3 for s in series["speedups"])
        verdicts = {size: should_use_gpu([series], STUDY, size * unit) for size in (100, 900, 1000, 2000, 10_000)}
        assert verdicts == {100: True, 900: None, 1000: None, 2000: None, 10_000: True}
        beyond = {
            size: should_use_gpu([series], STUDY, size * unit, beyond_measured=True) for size in (50, 50_000, 200_000)
        }
        assert beyond == {50: True, 50_000: True, 200_000: None}

    def test_flags_of_a_reference_are_caveats(
        self, cpu_rows: Any, elsewhere: Any, with_reference: RunTables, tmp_path: Path
    ) -> None:
        run = tables(cpu_rows, elsewhere(flag_names=["throttled"]))
        (series,) = [entry for entry in read_back(run, tmp_path) if entry["gpu_measured_elsewhere"]]
        assert "throttled" in series["caveats"]
        (answer,) = of_kind(run, "reference")
        assert "throttled" in answer.caveats
        (series,) = [s for s in read_back(with_reference, tmp_path) if s["gpu_measured_elsewhere"]]
        assert "throttled" not in series["caveats"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "not JSON; copy thresholds.json from"),
            ('{"version": 5, "thresh', "not JSON; copy thresholds.json from"),
            ("\xff", "not JSON; copy thresholds.json from"),
            ("[1]", "not thresholds of version 5; copy thresholds.py from"),
            ('{"version": 1}', "not thresholds of version 5; copy thresholds.py from"),
            ('{"version": 5}', "thresholds are incomplete; copy thresholds.json from"),
            ('{"version": 5, "thresholds": null}', "thresholds are incomplete; copy thresholds.json from"),
            ('{"version": 5, "thresholds": [{"study": "disc_depth"}]}', "thresholds are incomplete; copy"),
        ],
    )
    def test_a_file_that_is_not_thresholds_is_an_error(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "t.json").write_text(text, encoding="latin-1")
        with pytest.raises(ValueError, match=rf"t\.json: {message}"):
            read_thresholds(tmp_path / "t.json")
        with pytest.raises(FileNotFoundError):
            read_thresholds(tmp_path / "none.json")

    def test_a_copy_of_the_reader_needs_no_packages(self, cpu_alone: RunTables, tmp_path: Path) -> None:
        read_back(cpu_alone, tmp_path)
        shutil.copy(thresholds_reader.__file__, tmp_path)
        (tmp_path / "program.py").write_text(
            "from thresholds import read_thresholds, should_use_gpu\n"
            "thresholds = read_thresholds('thresholds.json')\n"
            f"print(should_use_gpu(thresholds, '{STUDY}', 2000, protocol='resident', default=False))\n"
        )
        command = [sys.executable, "-S", "-E", "program.py"]  # without any installed package
        program = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert program.stdout == "False\n"


ROOFS = [
    {"device": "cuda", "roof": "matmul", "precision": "fp32", "value": 5e11, "highest": 1e12, "unit": "FLOP/s"},
    {"device": "cuda", "roof": "memory", "working_set_bytes": 2**23, "value": 1e12, "highest": 2e12, "unit": "B/s"},
    {"device": "cuda", "roof": "graph_launch", "value": 9e-5, "lowest": 5e-5, "highest": 1e-4, "unit": "s"},
]


@pytest.mark.parametrize(
    ("bytes_moved", "flops", "ratios", "roofs"),
    [
        # This CPU takes 0.4, 4 and 40 ms; the GPU's limits are 10 us, 100 us and 1 ms for operations and 50 us for a
        # kernel launch.
        (0, 1e5, [8, 40, 40], ["launch", "compute", "compute"]),
        # The limits are 2 us, 20 us and 0.2 ms for operations; 0.4, 4 and 40 ms for bytes.
        (8e6, 2e4, [1, 1, 1], ["memory"] * 3),
    ],
)
def test_the_roofs_of_a_reference_limit_its_speedup(
    row: Row, elsewhere: Any, bytes_moved: float, flops: float, ratios: list[float], roofs: list[str]
) -> None:
    """Each rate is the fastest repeat."""
    rows = [
        trial
        | {"flops_per_step": int(flops * trial["size"]), "products_bytes_by_working_set": [0.0]}
        | {"others_bytes_by_working_set": [bytes_moved * trial["size"]]}
        for trial in trials(row, "cpu", lambda size: 4e-6 * size)
    ]
    reference = replace(elsewhere(model_key="another"), roofs=table_of("roofs", ROOFS))
    run = tables(rows, reference)
    highest = run.ratios[run.ratios["pair"] == "bound"]
    assert highest["contender"].tolist() == roofs
    assert highest["ratio"].tolist() == pytest.approx(ratios)
    assert (highest["ratio_low"] < highest["ratio"]).all()
    assert not of_kind(run, "reference")
    assert of_kind(run, "crossover")[0].main
    assert not of_kind(run, "no_estimate")
    (answer,) = of_kind(run, "bound")
    assert not answer.main
    assert answer.notes() == "a limit by the rates measured there, not an estimate: a step launches many kernels"
    first, _, second = answer.statement().partition("; ")
    assert first.startswith("The GPU of h200 would be at most ")
    assert first.endswith("x as fast as this CPU at 10,000 linear layers")
    starting = "up to 100 linear layers, the work of a step takes less time there than one kernel of a CUDA graph"
    assert second == (starting if "launch" in roofs else "")


def test_of_the_limits_of_several_references_the_highest_is_told(row: Row, elsewhere: Any) -> None:
    """At the largest size this CPU takes 40 ms; the limits are 1 ms, and 2 ms at half of all rates."""
    counted = {"products_bytes_by_working_set": [0.0], "others_bytes_by_working_set": [0.0]}
    rows = [
        trial | counted | {"flops_per_step": 10**5 * trial["size"]}
        for trial in trials(row, "cpu", lambda size: 4e-6 * size)
    ]
    fast = replace(elsewhere(model_key="another"), roofs=table_of("roofs", ROOFS))
    halved = [roof | {"highest": roof["highest"] / 2} for roof in ROOFS]
    facts = replace(FACTS, name="slow", device_name="NVIDIA H100 PCIe")
    slow = Reference(facts, fast.trials.assign(machine="slow"), table_of("roofs", halved))
    for references in ((fast, slow), (slow, fast)):
        run = tables(rows, *references)
        assert set(run.ratios.loc[run.ratios["pair"] == "bound", "machine"]) == {"h200", "slow"}
        (answer,) = of_kind(run, "bound")
        assert (answer.machine, answer.ratio) == ("h200", pytest.approx(40))


NO_ESTIMATE = "No estimate for a GPU: no reference of this run has these steps"


@pytest.mark.parametrize(
    ("step_s", "flops", "highest"),
    [
        (4e-6, 10**4, pytest.approx(400)),  # 40 ms over 0.1 ms for operations: too high to say anything
        (4e-7, 10**3, pytest.approx(80)),  # 4 ms over 50 us: 10 us for operations, which one kernel exceeds
    ],
)
def test_a_high_limit_or_that_of_a_launch_is_no_estimate(
    row: Row, elsewhere: Any, step_s: float, flops: int, highest: Any
) -> None:
    counted = {"products_bytes_by_working_set": [0.0], "others_bytes_by_working_set": [0.0]}
    rows = [
        trial | counted | {"flops_per_step": flops * trial["size"]}
        for trial in trials(row, "cpu", lambda size: step_s * size)
    ]
    reference = replace(elsewhere(model_key="another"), roofs=table_of("roofs", ROOFS))
    run = tables(rows, reference)
    assert run.ratios.loc[run.ratios["pair"] == "bound", "ratio"].iloc[-1] == highest
    assert not of_kind(run, "bound")
    (answer,) = of_kind(run, "no_estimate")
    assert (answer.main, answer.text()) == (False, NO_ESTIMATE)
    assert not of_kind(tables(rows, reference, devices=("cpu",)), "no_estimate")


def test_a_cpu_that_other_programs_take_has_no_estimate(row: Row, elsewhere: Any) -> None:
    """Its steps take 25 times as long as on the reference's CPU; a reference without a GPU says nothing."""
    slow = trials(row, "cpu", lambda size: 25 * 4e-6 * size)
    (answer,) = of_kind(tables(slow, elsewhere()), "no_estimate")
    assert answer.text() == (
        "No estimate for a GPU: steps take over 20 times as long on this CPU as on those beside the GPUs measured "
        "elsewhere, as if other programs took it; measure again without them"
    )
    assert not of_kind(tables(trials(row, "cpu", lambda size: 4e-6 * size), elsewhere()), "no_estimate")
    reference = elsewhere()
    on_cpus = replace(reference, trials=reference.trials[reference.trials["device"] == "cpu"])
    assert not of_kind(tables(slow, on_cpus), "no_estimate")


def test_a_model_of_the_user_without_counted_operations_has_no_estimate(
    cpu_rows: Any, with_reference: RunTables, row: Row, tmp_path: Path
) -> None:
    assert not of_kind(tables(cpu_rows), "no_estimate")
    assert not of_kind(with_reference, "no_estimate")
    mine = study(user_model=Model("net", "build"))
    assert not of_kind(
        tables_of(pd.DataFrame(cpu_rows + trials(row, "cuda", lambda _: 1e-3)), {STUDY: mine}), "no_estimate"
    )
    run = tables_of(pd.DataFrame(cpu_rows), {STUDY: mine})
    write_report(Run(run, {STUDY: mine}, CONFIG), tmp_path, TEMPLATES)
    for name in ("summary.txt", "summary.md", "report.html"):
        text = (tmp_path / name).read_text()
        assert (text.count(NO_ESTIMATE), text.count("a machine with a GPU")) == (1, 1), name


def test_a_limit_is_given_only_without_a_measurement(row: Row, elsewhere: Any) -> None:
    counted = {"flops_per_step": 1, "products_bytes_by_working_set": [0.0], "others_bytes_by_working_set": [0.0]}
    plain = [trial | counted for trial in trials(row, "cpu", lambda size: 4e-6 * size)]
    here = [trial | counted for trial in trials(row, "cuda", lambda _: 1e-3)]
    reference = replace(elsewhere(model_key="another"), roofs=table_of("roofs", ROOFS))
    measured = replace(elsewhere(), roofs=table_of("roofs", ROOFS))
    compiled = [trial | {"execution": "compile"} for trial in plain]
    uncounted = [trial | {"flops_per_step": None} for trial in plain]
    in_bf16 = [trial | {"precision": "bf16"} for trial in plain]

    def limits(rows: list[dict[str, Any]], *references: Reference) -> int:
        measurements = pd.DataFrame(rows)
        there = agreeing(measurements, references)
        return len(bounds_of(summarise(measurements), measurements, references, there))

    assert limits(plain, reference) == len(SIZES)
    another = Reference(replace(FACTS, name="other"), elsewhere().trials.assign(machine="other"))
    assert not limits(plain, reference, another)  # the same product
    other_product = replace(another, facts=replace(another.facts, device_name="NVIDIA H100 PCIe"))
    assert limits(plain, reference, other_product) == len(SIZES)
    for rows, other in (
        (plain, measured),
        (plain, replace(reference, roofs=table_of("roofs"))),
        (plain + here, reference),
        (compiled, reference),
        (uncounted, reference),
        (in_bf16, reference),
    ):
        assert not limits(rows, other)
