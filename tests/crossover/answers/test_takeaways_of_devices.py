"""What figures of a device's limits are summed up as."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crossover.answers.takeaways_of_devices import of_energy, of_host_share, of_memory, of_utilisation
from crossover.figures.views import StudyView
from crossover.statistics.memory_rows import PARTS

Row = Callable[..., dict[str, Any]]
Views = Callable[..., StudyView]
LOST: dict[str, Any] = {"step_time_s": None, "flags": None}


def gpu(row: Row, size: int, peak: int, status: str = "ok", **values: Any) -> list[dict[str, Any]]:
    """Two like trials; three quarters of the peak are activations."""
    split = dict.fromkeys(PARTS, 0) | {"parameter_bytes": peak // 4, "activation_bytes": 3 * peak // 4}
    lost = LOST if status != "ok" else {}
    return [
        row(trial=trial, device="cuda", size=size, peak_allocated_bytes=peak, device_memory_bytes=1000, status=status)
        | split
        | lost
        | values
        for trial in (1, 2)
    ]


def test_the_first_size_that_ran_out_and_the_largest_that_fitted(row: Row, view_of: Views) -> None:
    rows = [*gpu(row, 2, 100), *gpu(row, 4, 400), *gpu(row, 8, 0, "oom"), *gpu(row, 16, 0, "oom")]
    assert of_memory(view_of(rows)) == (
        "On the GPU memory ran out at 8 linear layers; 4 fitted there with 400 B of 1.00 kB, 75 % of it activations."
    )


def test_of_several_lines_the_first_that_ran_out_is_named(row: Row, view_of: Views) -> None:
    rows = [*gpu(row, 2, 100), *gpu(row, 4, 400), *gpu(row, 2, 200, precision="fp64")]
    rows += gpu(row, 4, 0, "oom", precision="fp64")
    assert of_memory(view_of(rows)).startswith(
        "On the GPU memory ran out in 1 of 2 lines, first at 4 linear layers (fp64); 2 fitted there with 200 B"
    )


def test_where_every_size_fitted_what_the_largest_took(row: Row, view_of: Views) -> None:
    rows = [*gpu(row, 2, 100), *gpu(row, 4, 400)]
    text = "very size fitted, up to 4 linear layers: on the GPU with 400 B of 1.00 kB, 75 % of it activations."
    assert of_memory(view_of(rows)) == f"E{text}"


def test_a_size_that_ended_otherwise_is_not_said_to_have_fitted(row: Row, view_of: Views) -> None:
    rows = [*gpu(row, 2, 100), *gpu(row, 4, 0, "timeout")]
    assert of_memory(view_of(rows)).startswith("Every size that ended well fitted, up to 2 linear layers: ")


def test_of_one_size_the_least_and_the_most(row: Row, view_of: Views) -> None:
    rows = [*gpu(row, 4, 100), *gpu(row, 4, 400, precision="bf16"), *gpu(row, 4, 0, "oom", precision="fp64")]
    assert of_memory(view_of(rows)) == (
        "On the GPU a step needs 100 B (fp32) to 400 B (bf16) of 1.00 kB, 1 of 3 cells ran out of memory."
    )


def test_cells_that_need_the_same_are_all_named(row: Row, view_of: Views) -> None:
    peaks = {"fp32": 100, "tf32": 100, "bf16": 400}
    rows = [trial for precision, peak in peaks.items() for trial in gpu(row, 4, peak, precision=precision)]
    assert of_memory(view_of(rows)) == "On the GPU a step needs 100 B (fp32; tf32) to 400 B (bf16) of 1.00 kB."
    alike = [trial for precision in peaks for trial in gpu(row, 4, 100, precision=precision)]
    assert of_memory(view_of(alike)) == "On the GPU each of 3 cells needs 100 B of 1.00 kB."


def test_the_highest_rate_and_its_share(row: Row, view_of: Views) -> None:
    """4 TFLOP in 2 s are 2 TFLOP/s."""
    rows = [row(size=size, step_time_s=time, flops_per_step=4 * 10**12) for size, time in ((2, 4.0), (4, 2.0))]
    assert of_utilisation(view_of(rows)) == (
        "Highest measured rate: 2.00 TFLOP/s at 4 linear layers on the CPU. One trial a cell: indicative."
    )


def test_between_which_shares_the_host_keeps_the_device_waiting(row: Row, view_of: Views) -> None:
    shares = {2: (0.9, 0.9), 4: (0.2, 0.2)}
    rows = [
        row(size=size, trial=trial, device="cuda", host_bound_share=share)
        for size, own in shares.items()
        for trial, share in enumerate(own, 1)
    ]
    assert of_host_share(view_of(rows)) == (
        "The GPU waits for the host 90 % (90 % to 90 %) of a step at 2 linear layers and 20 % (20 % to 20 %) of a step "
        "at 4 linear layers."
    )


def test_what_a_step_costs_at_the_largest_size(row: Row, view_of: Views) -> None:
    """3.6 an hour is 0.001 a second: a million steps of 1 ms cost 1."""
    rows = [row(size=size, device="cuda", energy_per_step_j=joules) for size, joules in ((2, 0.1), (4, 0.5))]
    view = replace(view_of(rows), price_per_hour={"cuda": 3.6}, currency="EUR")
    assert of_energy(view) == (
        "At 4 linear layers a step takes 0.500 J on the GPU; a million steps cost 1.0 EUR on the GPU. "
        "One trial a cell: indicative."
    )
    assert of_energy(view_of([row()])) == ""


def test_a_device_that_stopped_earlier_is_said_at_its_own_largest_size(row: Row, view_of: Views) -> None:
    """The GPU ran out of memory at 4 layers, and the CPU's energy could not be read there."""
    rows = [row(size=size, trial=trial) for size in (2, 4) for trial in (1, 2)]
    rows += [row(size=2, device="cuda", trial=trial, energy_per_step_j=0.1) for trial in (1, 2)]
    rows += [row(size=4, device="cuda", status="oom", step_time_s=None)]
    assert of_energy(view_of(rows)) == (
        "At 2 linear layers a step takes 0.100 J (95 %: 0.100 to 0.100) on the GPU; "
        "the energy of a step is not known on the CPU."
    )
    known = [own | {"energy_per_step_j": 0.3 * own["size"]} if own["device"] == "cpu" else own for own in rows]
    assert of_energy(view_of(known)) == (
        "At 4 linear layers a step takes 1.20 J (95 %: 1.20 to 1.20) on the CPU; "
        "at 2 linear layers a step takes 0.100 J (95 %: 0.100 to 0.100) on the GPU."
    )


def test_a_counter_that_stood_still_measured_nothing(row: Row, view_of: Views) -> None:
    assert of_energy(view_of([row(energy_per_step_j=0.0)])) == ""
