from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from crossover.figures.figures import plot_times
from crossover.figures.style import DEVICE_COLOURS
from crossover.figures.views import StudyView, study_view
from crossover.statistics.cost_models import COST_MODEL_COLUMNS, model_lines
from crossover.statistics.summary import summarise
from crossover.tables.frames import DEVICE_LINE_AXES, read_table, records, write_table

PowerLaws = Callable[..., pd.DataFrame]
Row = Callable[..., dict[str, Any]]
SIZES = {2: 100, 3: 900, 4: 8000, 5: 60_000, 6: 500_000}


def test_every_line_and_device_has_a_row(power_laws: PowerLaws) -> None:
    rows = pd.concat([power_laws(SIZES, trials=3), power_laws({2: 100, 4: 1000}, precision="tf32")])
    models = model_lines(rows, {"disc_depth": 1000})
    assert list(models.columns) == [*DEVICE_LINE_AXES, *COST_MODEL_COLUMNS]
    assert models.groupby(["precision", "device"])["sizes"].first().dropna().to_dict() == {
        ("fp32", "cpu"): 5,
        ("fp32", "cuda"): 5,
    }
    assert set(models.loc[models["precision"] == "tf32", "reason"]) == {
        "a model takes 4 sizes with a time or more, not 2"
    }
    assert models.loc[models["precision"] == "fp32", "reason"].isna().all()
    assert set(models["run_steps"]) == {1000}


def test_only_ok_trials_count(row: Row) -> None:
    def line(size: int, trial: int, status: str, step_time_s: float) -> dict[str, Any]:
        return row(size=size, trial=trial, status=status, step_time_s=step_time_s)

    rows = [line(n, 1, "ok", 1e-4 * n) for n in (10, 20, 40, 80)]
    rows += [line(n, 2, "invalid", 9.0) for n in (10, 20, 40, 80)] + [line(160, 1, "timeout", 9.0)]
    (model,) = records(model_lines(pd.DataFrame(rows), {"disc_depth": None}))
    assert (model["largest_size"], model["trial_spread"], model["run_steps"]) == (80, None, None)
    assert (model["a_s"], model["b_s"], model["c"]) == pytest.approx((0, 1e-4, 1), rel=1e-3, abs=1e-7)


def test_run_steps_follow_the_batch_size(power_laws: PowerLaws) -> None:
    models = model_lines(power_laws(SIZES), {"disc_depth": {"epochs": 2, "samples": 950}})
    assert set(models["run_steps"]) == {20}  # batches of 100: 10 an epoch, the last one short


def view(rows: pd.DataFrame, **changes: Any) -> StudyView:
    from crossover.statistics.comparisons import compare_lines

    spec = {"name": "disc_depth", "title": "", "x_axis": "size", "steps_per_run": 1000, "published": None} | changes
    crossovers = compare_lines(rows, {"disc_depth": spec["x_axis"]})
    models = model_lines(rows, {"disc_depth": spec["steps_per_run"]})
    return study_view(rows, summarise(rows), crossovers, spec, None, cost_models=models)


def guides(axes: Axes) -> dict[Any, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The dotted lines that have many more points than there are cells, by colour."""
    return {
        line.get_color(): (np.asarray(line.get_xdata()), np.asarray(line.get_ydata()))
        for line in axes.lines
        if len(np.asarray(line.get_xdata())) > 50
    }


def test_a_guide_runs_over_the_measured_range_and_no_further(power_laws: PowerLaws) -> None:
    (axes,) = plot_times(view(power_laws(SIZES, trials=2))).axes
    drawn = guides(axes)
    assert set(drawn) == {DEVICE_COLOURS["cpu"], DEVICE_COLOURS["cuda"]}
    x, y = drawn[DEVICE_COLOURS["cuda"]]
    assert (x.min(), x.max()) == pytest.approx((2, 6))
    assert y == pytest.approx(np.full(100, 1.0), rel=0.01)  # 1000 steps of 1 ms


def test_over_parameters_a_guide_has_the_parameters_of_its_sizes(power_laws: PowerLaws) -> None:
    (axes,) = plot_times(view(power_laws(SIZES), x_axis="parameters")).axes
    x, _ = guides(axes)[DEVICE_COLOURS["cuda"]]
    assert (x[0], x[-1]) == pytest.approx((100, 500_000))
    assert (np.diff(x) > 0).all()


def test_many_lines_have_their_guides_too(power_laws: PowerLaws) -> None:
    names = ("fp32", "tf32", "amp-bf16")
    rows = pd.concat([power_laws(SIZES, precision=name, gpu_s=s) for name, s in zip(names, (1, 2, 3), strict=True)])
    (axes,) = plot_times(view(rows)).axes
    long = [line for line in axes.lines if len(np.asarray(line.get_xdata())) > 50]
    assert len(long) == 6
    flat = sorted(float(np.median(np.asarray(line.get_ydata()))) for line in long)
    assert flat[-3:] == pytest.approx([1000, 2000, 3000], rel=0.01)


def test_a_line_without_a_model_has_no_guide(power_laws: PowerLaws) -> None:
    (axes,) = plot_times(view(power_laws({2: 100, 3: 1000, 4: 10_000}))).axes
    assert guides(axes) == {}


def test_the_table_comes_back_as_it_was_written(power_laws: PowerLaws, tmp_path: Path) -> None:
    models = model_lines(power_laws(SIZES, trials=2), {"disc_depth": None})
    write_table(models, tmp_path / "m.parquet", tmp_path / "m.csv")
    assert records(read_table(tmp_path / "m.parquet")) == records(models)
    assert len(pd.read_csv(tmp_path / "m.csv")) == 2
