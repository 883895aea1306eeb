"""What figures over size are summed up as, by numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from crossover.answers.takeaways_over_size import of_precisions, of_speedups, of_times
from crossover.figures.views import StudyView

Row = Callable[..., dict[str, Any]]
PowerLaws = Callable[..., pd.DataFrame]
Views = Callable[..., StudyView]
LOST: dict[str, Any] = {"status": "oom", "step_time_s": None, "flags": None}


def test_times_say_where_the_devices_cross(power_laws: PowerLaws, view_of: Views) -> None:
    """1 us x parameters is the GPU's 1 ms at 1000 parameters, in the middle of 100 and 10,000."""
    rows = power_laws({2: 100, 4: 10_000}).to_dict("records")
    assert of_times(view_of(rows, x_axis="parameters")) == (
        "The GPU takes less time than the CPU from about 1,000 parameters on; one trial a cell, indicative only."
    )


def test_each_of_few_lines_has_its_sentence(row: Row, view_of: Views) -> None:
    """The GPU wins everywhere with resident data, nowhere with those that it must fetch."""
    rows = [
        row(protocol=protocol, size=size, device=device, step_time_s=time)
        for protocol, gpu_s in (("as_published", 2e-3), ("resident", 0.5e-3))
        for device, time in (("cpu", 1e-3), ("cuda", gpu_s))
        for size in (2, 4)
    ]
    assert of_times(view_of(rows, protocols=["as_published", "resident"])) == (
        "The GPU takes more time than the CPU at every size measured on both; one trial a cell, indicative only "
        "(as published). The GPU takes less time than the CPU at every size measured on both; one trial a cell, "
        "indicative only (resident)."
    )


def test_many_lines_are_counted(row: Row, view_of: Views) -> None:
    """CPU 1 ms and 10 ms; the GPU's times by precision: ahead, behind, and crossing in the middle of 2 and 8."""
    gpu_s = {"fp32": (0.1e-3, 0.1e-3), "tf32": (0.2e-3, 0.2e-3), "fp64": (20e-3, 20e-3), "bf16": (10**-2.5, 10**-2.5)}
    rows = [
        row(precision=precision, size=size, device=device, step_time_s=time)
        for precision, times in gpu_s.items()
        for device, own in (("cpu", (1e-3, 1e-2)), ("cuda", times))
        for size, time in zip((2, 8), own, strict=True)
    ]
    assert of_times(view_of(rows)) == (
        "Of 4 lines the accelerator takes less time than the CPU at every size in 2, from some size on in 1, at no "
        "size in 1. One trial a cell: indicative."
    )


def test_of_one_device_the_shortest_and_the_longest_time(power_laws: PowerLaws, view_of: Views) -> None:
    rows = power_laws({2: 200, 4: 10_000})
    text = of_times(view_of(rows[rows["device"] == "cpu"].to_dict("records")))
    assert text == (
        "A step takes 200 µs at 2 linear layers to 10.0 ms at 4 linear layers on the CPU. One trial a cell: indicative."
    )


def test_the_largest_speedup_has_its_interval(power_laws: PowerLaws, view_of: Views) -> None:
    """100 times at 4 layers; trials 1 % apart: half-width t(4) sqrt(2 / 3) ln(1.01) = 0.02256, so 97.8 to 102.3."""
    rows = power_laws({2: 100, 4: 100_000}, trials=3).to_dict("records")
    assert of_speedups(view_of(rows)) == (
        "Largest measured speed-up over the CPU: 100 times (95 %: 97.8 to 102), at 4 linear layers on the GPU."
    )


def test_a_speedup_that_may_be_none_is_said_to_be(row: Row, view_of: Views) -> None:
    """1.05 times, the trials 11 % apart."""
    rows = [
        row(size=size, device=device, trial=trial, step_time_s=time * factor)
        for size in (2, 4)
        for device, time in (("cpu", 1.05e-3), ("cuda", 1e-3))
        for trial, factor in ((1, 0.95), (2, 1 / 0.95))
    ]
    assert "1.05 times (95 %: 0.7" in of_speedups(view_of(rows))
    assert of_speedups(view_of(rows)).endswith("; the interval holds 1.")


def test_no_speedup_is_claimed_where_every_interval_lies_below_one(power_laws: PowerLaws, view_of: Views) -> None:
    rows = power_laws({2: 100, 4: 500}, trials=3).to_dict("records")
    assert of_speedups(view_of(rows)) == (
        "No speed-up over the CPU: at best 0.500 times (95 %: 0.489 to 0.511), at 4 linear layers on the GPU."
    )


def test_the_flags_of_the_cells_that_are_named_are_named_too(power_laws: PowerLaws, view_of: Views) -> None:
    """The largest is at 4 layers; what the cells at 2 layers carry does not count, nor how many trials carry it."""
    rows = power_laws({2: 100, 4: 100_000}, trials=3)
    at_4, on_gpu, last = rows["size"] == 4, rows["device"] == "cuda", rows["trial"] == 3

    def said(**flags: pd.Series) -> str:
        carried = [[name for name, which in flags.items() if which[place]] for place in rows.index]
        return of_speedups(view_of(rows.assign(flags=carried).to_dict("records"))).partition("on the GPU.")[2]

    assert said(drift=~at_4) == ""
    assert said(drift=at_4 & on_gpu & last) == " It rests on a cell with times that drift."
    assert said(busy_host=at_4 & ~on_gpu) == " It rests on a cell with other programs on their cores."
    assert said(drift=at_4 & on_gpu, throttled=at_4) == (
        " It rests on cells with times that drift and on a GPU that clocked down."
    )


@pytest.fixture
def precisions(row: Row, view_of: Views) -> StudyView:
    """bf16 is twice as slow as fp32 at 2 layers and 4 times as fast at 4; tf32 ran out of memory."""
    times = {("fp32", 2): 1e-3, ("fp32", 4): 8e-3, ("bf16", 2): 2e-3, ("bf16", 4): 2e-3}
    rows = [
        row(precision=precision, size=size, trial=trial, device="cuda", step_time_s=time * factor)
        for (precision, size), time in times.items()
        for trial, factor in ((1, 0.999), (2, 1 / 0.999))
    ]
    rows += [row(precision="tf32", size=size, device="cuda", **LOST) for size in (2, 4)]
    return view_of(rows)


def test_precisions_name_the_best_and_what_is_slower_somewhere(precisions: StudyView) -> None:
    """Half-width t(2) * 0.001 sqrt(2) = 0.0061: 3.98 to 4.02."""
    assert of_precisions(precisions) == (
        "Largest measured speed-up over fp32: 4.00 times (95 %: 3.98 to 4.02), at 4 linear layers on the GPU (bf16). "
        "Slower at some size, with the whole interval: bf16."
    )


def test_a_speedup_over_the_plain_precision_names_the_flags_of_both_cells(precisions: StudyView) -> None:
    flags = {("bf16", 4): ["throttled"], ("fp32", 4): ["quota"], ("fp32", 2): ["drift"]}
    cells = precisions.cells
    carried = [flags.get(cell, []) for cell in zip(cells["precision"], cells["size"], strict=True)]
    text = of_precisions(replace(precisions, cells=cells.assign(flags=carried)))
    assert "(bf16). It rests on cells on a GPU that clocked down and held back by a CPU quota. Slower at some" in text


def test_of_one_precision_nothing_is_said(row: Row, view_of: Views) -> None:
    assert of_precisions(view_of([row(size=2), row(size=4)])) == ""
