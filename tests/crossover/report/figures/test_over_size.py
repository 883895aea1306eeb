"""Figures over size: times, speed-ups, precisions, shares, rates and costs are those of the tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

from crossover.config.published_rows import read_published_rows
from crossover.drawing.style import DEVICE_COLOURS
from crossover.drawing.view import StudyView, on_line, published_table
from crossover.report.figure_files import FIGURES
from crossover.tables.reference_files import Facts, Reference
from report_pages import study

from .conftest import as_points, labelled, marked, words

View = Callable[..., StudyView]
Row = Callable[..., dict[str, Any]]
PowerLaws = Callable[..., pd.DataFrame]

SIZES = {2: 100, 4: 1000, 8: 10_000}
CPU, GPU = "CPU (Brand C1)", "GPU (Brand G1)"


def bands(axes: Any) -> list[tuple[float, float]]:
    shades = [collection for collection in axes.collections if isinstance(collection, PolyCollection)]
    heights = [path.vertices[:, 1] for shade in shades for path in shade.get_paths()]
    return [(float(y.min()), float(y.max())) for y in heights]


def test_times_of_each_device_in_its_colour(view_of: View, power_laws: PowerLaws) -> None:
    (axes,) = FIGURES["times"].draw(view_of(power_laws(SIZES))).axes

    shown = labelled(axes)
    assert shown[CPU] == pytest.approx({2: 1e-4, 4: 1e-3, 8: 1e-2})
    assert shown[GPU] == pytest.approx({2: 1e-3, 4: 1e-3, 8: 1e-3})
    colours = {str(line.get_label()): line.get_color() for line in axes.lines}
    assert (colours[CPU], colours[GPU]) == (DEVICE_COLOURS["cpu"], DEVICE_COLOURS["cuda"])
    assert axes.get_xlabel() == "linear layers"
    assert axes.get_ylabel() == "time per step"


def test_two_trials_have_a_shaded_interval_and_one_has_none(view_of: View, power_laws: PowerLaws) -> None:
    (one_trial,) = FIGURES["times"].draw(view_of(power_laws(SIZES))).axes
    (two_trials,) = FIGURES["times"].draw(view_of(power_laws(SIZES, trials=2))).axes

    assert bands(one_trial) == []
    # exp(t(1 degree of freedom) * half the difference of the logarithms), from a table of t: 12.706.
    wide = float(np.exp(12.706 * 0.5 * np.log(1.01)))
    assert bands(two_trials)[0] == pytest.approx((1e-4 / wide, 1e-2 * wide), rel=1e-3)


def test_a_gpu_elsewhere_is_drawn_beside_this_cpu_with_its_interval(view_of: View, power_laws: PowerLaws) -> None:
    """It takes 3 ms beside a CPU three times as slow; CPUs of other hosts are not drawn."""
    facts = Facts("far", "Brand G1", "Brand C1", 16, "2026-11-23", "2", "3", None, "Linux", None, None)
    rows = power_laws(SIZES).assign(model_key="key")
    trials = [rows.assign(trial=trial, step_time_s=1.01 ** (trial - 2) * rows["step_time_s"]) for trial in (1, 2, 3)]
    rows = pd.concat(trials, ignore_index=True)
    elsewhere = Reference(facts, rows.assign(machine="far", step_time_s=3 * rows["step_time_s"]))
    here = rows[rows["device"] == "cpu"]
    (axes,) = FIGURES["times"].draw(view_of(here[here["size"] > 2], references=[elsewhere])).axes

    shown = labelled(axes)
    assert shown[CPU] == pytest.approx({4: 1e-3, 8: 1e-2})
    name = f"estimated beside this CPU (far): {GPU}"
    assert shown.keys() == {CPU, name}
    assert shown[name] == pytest.approx({4: 1e-3, 8: 1e-3})
    assert {line.get_linestyle() for line in axes.lines if line.get_label() == name} == {"--"}
    *_, band = [part for part in axes.collections if isinstance(part, PolyCollection)]
    (path,) = band.get_paths()
    low_s, high_s = path.vertices[:, 1].min(), path.vertices[:, 1].max()
    # The device's part is unknown, so the exponent may be 0: the interval reaches 3 ms on a log scale.
    assert (low_s, high_s) == pytest.approx((1e-3 / 3, 3e-3), rel=0.1)


def test_machines_are_drawn_by_time_or_money_with_named_lines(view_of: View, power_laws: PowerLaws) -> None:
    """A step of 1 ms at 0.36 per hour costs 0.1 per million steps."""
    facts = Facts("far", "Brand G1", "Brand C1", 16, "2026-11-23", "2", "3", None, "Linux", None, None)
    rows = power_laws(SIZES).assign(model_key="key")
    elsewhere = Reference(facts, rows.assign(machine="far"))
    here = rows[rows["device"] == "cpu"]
    (by_time,) = FIGURES["machines"].draw(view_of(here, references=[elsewhere])).axes
    assert as_points(by_time.lines[0]) == pytest.approx({2: 1e-4, 4: 1e-3, 8: 1e-2})
    assert sorted(words(by_time)) == ["CPU of far", "GPU of far", "this CPU"]
    heights = sorted(text.get_position()[1] for text in by_time.texts)
    assert min(np.diff(heights)) >= 0.069  # both CPU curves end at the same time, so their labels must be moved apart

    view = view_of(here, references=[elsewhere], prices={"here": 0.36, "far": 3.6})
    (by_money,) = FIGURES["machines"].draw(view).axes
    assert as_points(by_money.lines[0]) == pytest.approx({2: 0.01, 4: 0.1, 8: 1.0})
    assert by_money.get_ylabel() == "USD for a million steps"


def test_measured_and_published_crossovers_are_vertical_lines(view_of: View, power_laws: PowerLaws) -> None:
    view = view_of(power_laws(SIZES | {6: 3000}, gpu_s=2e-3), x_axis="parameters", crossover=(300, 300))
    axes = FIGURES["times"].draw(view).axes[0]

    lines = {label: next(iter(points)) for label, points in labelled(axes).items() if label not in (CPU, GPU)}
    assert lines == pytest.approx({"crossover 2,000": 2000, "published: 300": 300}, rel=0.01)


PARAMETERS = {2: 100, 4: 1000, 8: 10_000}


def published_points(axes: Any) -> dict[str, dict[float, float]]:
    return {name: points for name, points in labelled(axes).items() if "published" in name}


def test_over_parameters_published_runs_are_at_the_parameters_of_their_size(
    view_of: View, power_laws: PowerLaws
) -> None:
    published = [{"size": size, "device": "cuda", "step_time_s": float(size)} for size in (2, 8)]
    published += [{"parameters": 1000, "device": "cuda", "step_time_s": 4.0}]
    published += [{"parameters": 50_000, "device": "cuda", "step_time_s": 9.0}]
    (axes,) = FIGURES["times"].draw(view_of(power_laws(PARAMETERS), published, x_axis="parameters")).axes
    assert published_points(axes) == {"published: GPU": {100: 2, 10_000: 8, 1000: 4, 50_000: 9}}
    (axes,) = FIGURES["times"].draw(view_of(power_laws(PARAMETERS), published, x_axis="size")).axes
    lost = "not drawn: published without a number of linear layers"
    assert published_points(axes) == {"published: GPU": {2: 2, 8: 8, 4: 4}, lost: {}}


def test_a_published_run_matches_a_series_on_every_axis_that_it_states(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(
        "# Somebody (2019)\nprotocol,precision,batch_size,size,device,run_time_s\n"
        "as_published,fp32,,2,cpu,1\nresident,fp32,,2,cpu,2\n,tf32,,2,cpu,3\n,,32,2,cuda,4\n,,64,2,cpu,5\n"
    )
    rows = read_published_rows(tmp_path / "runs.csv")
    runs = published_table(study(published={"statement": "x", "source": "y", "rows": rows}))
    line = {"study": "mine", "protocol": "as_published", "precision": "fp32", "batch_size": 32, "size": 9}
    assert on_line(runs, line, "size")["run_time_s"].tolist() == [1, 4]
    assert on_line(runs, line | {"size": 2}, "batch_size")["run_time_s"].tolist() == [1, 4, 5]


def test_a_study_with_a_run_shows_the_time_of_all_its_steps(view_of: View, power_laws: PowerLaws) -> None:
    run = {"device": "cuda", "hardware": "Old G0", "size": 4, "run_time_s": 7.0}
    (axes,) = FIGURES["times"].draw(view_of(power_laws(SIZES), [run], steps_per_run=2000)).axes

    shown = labelled(axes)
    assert shown[GPU] == pytest.approx({2: 2, 4: 2, 8: 2})
    assert shown["published: GPU (Old G0)"] == {4: 7}
    assert axes.get_ylim()[1] > 7
    assert axes.get_ylabel().startswith("time for 2,000 steps in s")


def test_over_parameters_the_upper_axis_has_the_sizes(view_of: View, power_laws: PowerLaws) -> None:
    axes = FIGURES["times"].draw(view_of(power_laws(SIZES), x_axis="parameters")).axes[0]
    axes.figure.canvas.draw()

    (above,) = axes.child_axes
    assert labelled(axes)[CPU] == pytest.approx({100: 1e-4, 1000: 1e-3, 10_000: 1e-2})
    assert [tick.get_text() for tick in above.get_xticklabels()] == ["2", "4", "8"]
    assert (axes.get_xlabel(), above.get_xlabel()) == ("parameters", "linear layers")


def test_lost_cells_are_crosses_and_words(view_of: View, row: Row) -> None:
    rows = [
        row(size=size, device="cuda", precision=precision, **values)
        for size, precision in product((2, 4), ("fp32", "fp16"))
        for values in [{"status": "oom", "step_time_s": None} if (size, precision) == (4, "fp32") else {}]
    ]
    rows += [row(size=2, precision="fp16", status="unsupported", step_time_s=None), row(size=2)]
    (axes,) = FIGURES["times"].draw(view_of(rows)).axes

    assert [*labelled(axes)] == ["CPU, fp32", "GPU, fp32, oom at 4", "CPU, fp16: unsupported", "GPU, fp16"]
    # If no size of a line has a result, only the legend says so; there is no cross.
    assert [x for x, _ in marked(axes, "x")] == [4]


def test_speedups_over_the_cpu_and_over_fewer_cores(view_of: View, power_laws: PowerLaws) -> None:
    whole = power_laws(SIZES)
    (plain,) = FIGURES["speedups"].draw(view_of(whole)).axes
    fewer = whole[whole["device"] == "cpu"].assign(device="cpu-1", threads=1)
    fewer["step_time_s"] *= 2
    (cores,) = FIGURES["speedups"].draw(view_of(pd.concat([whole, fewer]))).axes

    assert labelled(plain)[GPU] == pytest.approx({2: 0.1, 4: 1, 8: 10})
    assert labelled(cores)["GPU over the CPU"] == pytest.approx({2: 0.1, 4: 1, 8: 10})
    assert labelled(cores)["GPU over the CPU on 1 core"] == pytest.approx({2: 0.2, 4: 2, 8: 20})
    assert set(labelled(plain)["equally fast"].values()) == {1}


def test_precisions_are_relative_to_the_plain_one_on_the_same_device(view_of: View, power_laws: PowerLaws) -> None:
    plain = power_laws(SIZES)
    half = plain.assign(precision="bf16", step_time_s=plain["step_time_s"] / 4)
    figure = FIGURES["precisions"].draw(view_of(pd.concat([plain, half])))

    assert [axes.get_title("left") for axes in figure.axes] == [CPU, GPU]
    for axes in figure.axes:
        assert labelled(axes)["bf16"] == pytest.approx({2: 4, 4: 4, 8: 4})


def test_host_share_is_the_mean_on_a_linear_axis(view_of: View, row: Row) -> None:
    shares = {1: 0.2, 2: 0.4}
    rows = [row(device="cuda", size=4, trial=trial, host_bound_share=share) for trial, share in shares.items()]
    (axes,) = FIGURES["host_share"].draw(view_of([*rows, row(size=4)])).axes

    (line, *_) = axes.lines
    assert as_points(line) == pytest.approx({4: 0.3})
    assert axes.get_ylim() == (0, 1)
    assert axes.get_title("left") == GPU


def test_utilisation_rings_and_labels_the_maximum(view_of: View, row: Row) -> None:
    rows = [
        row(workload="matmul", device="cuda", size=size, flops_per_step=flops, step_time_s=1.0)
        for size, flops in {2: 10**12, 4: 4 * 10**12, 8: 2 * 10**12}.items()
    ]
    (axes,) = FIGURES["utilisation"].draw(view_of(rows)).axes

    assert labelled(axes) == {f"{GPU}\n4.00 TFLOP/s, 100 % of matmul": {2: 1, 4: 4, 8: 2}}
    assert [as_points(line) for line in axes.lines if line.get_markersize() == 11] == [{4: 4}]


def test_energy_and_money_have_separate_panels(view_of: View, row: Row) -> None:
    rows = [row(device="cuda", size=size, step_time_s=3.6e-3, energy_per_step_j=size / 2) for size in (2, 4)]
    joules, money = FIGURES["energy"].draw(view_of(rows, prices={"cuda": 4.0})).axes
    (alone,) = FIGURES["energy"].draw(view_of(rows)).axes

    assert labelled(joules)[GPU] == labelled(alone)[GPU] == {2: 1, 4: 2}
    assert labelled(money)[GPU] == pytest.approx({2: 4, 4: 4})
    assert (joules.get_title("left"), money.get_title("left")) == ("energy", "money")
    assert money.get_ylabel() == "USD for\na million steps"
