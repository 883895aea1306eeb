"""The page's data for its chart and its table of cells."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.report.page_data import page_data
from report_pages import study, tables_of, trial_command

Row = Callable[..., dict[str, Any]]


def data_of(rows: pd.DataFrame, **changes: Any) -> dict[str, Any]:
    if "published" in changes:
        changes["published"] = {"statement": "x", "source": "y", **changes["published"]}
    studies = {name: study(**changes) for name in rows["study"].unique()}
    data: dict[str, Any] = json.loads(page_data(studies, tables_of(rows, studies)))
    return data


@pytest.mark.parametrize("trials", [1, 3])
def test_cells_and_crossovers(power_laws: Callable[..., pd.DataFrame], trials: int) -> None:
    """The CPU takes 1 us per parameter, the GPU 1 ms: they cross at 1,000 parameters."""
    data = data_of(power_laws({2: 10, 3: 100, 4: 10_000}, trials=trials), x_axis="parameters")
    assert data["count"] == 6
    assert "machine" not in data["axes"]
    (crossover,) = data["crossovers"]
    value, low, high, words = crossover["on"]["parameters"]
    assert value == pytest.approx(1000)
    assert crossover["cell"] == 1
    assert 100 <= low < 1000 < high <= 10_000
    assert ((low, high) == (100, 10_000)) == (trials == 1)  # one trial has the bracket
    assert words.startswith("1,000")
    assert data["metrics"][0]["key"] == "step_time_s"
    assert data["metrics"][0]["interval"] == ["step_time_low_s", "step_time_high_s"]


def test_cells_have_the_start_up_and_step_time_of_a_job(row: Row) -> None:
    """Start-ups of 0.1 + 0.4 and 0.1 + 0.6 s: the variance of their mean is 0.01 s^2. None if a phase is missing."""
    rows = [
        row(device=device, trial=trial, spent_s=json.dumps({"context": 0.1} | build), first_step_s=1e-3)
        for device, builds in {"cpu": [{"build": 0.4}, {"build": 0.6}], "cuda": [{}]}.items()
        for trial, build in enumerate(builds, 1)
    ]
    job, unknown = data_of(pd.DataFrame(rows))["jobs"]
    assert unknown is None
    assert job[:4] == pytest.approx([0.6, 1e-3, 0.01, 0])
    assert job[-1] == 2


@pytest.mark.parametrize(("trials", "signs"), [(1, [-1, 0, 1]), (3, [-1, 1, 1])])
def test_cells_have_the_side_that_is_significantly_ahead(
    power_laws: Callable[..., pd.DataFrame], trials: int, signs: list[int]
) -> None:
    """Speed-ups of 0.1, 1.2 and 10: 1.2 is not significant with a single trial, but is with trials 1 % apart."""
    data = data_of(power_laws({2: 100, 3: 1200, 4: 10_000}, trials=trials))
    ahead = data["cells"]["ahead"]
    assert [ahead["values"][index] for index in ahead["at"]][1::2] == signs


@pytest.mark.parametrize("batch", [100, None])
def test_the_time_of_a_published_run_is_divided_by_its_steps(row: Row, batch: int | None) -> None:
    """Three epochs of 200 samples in batches of 100 are six steps."""
    run = {"protocol": "resident", "size": 2, "device": "cuda", "batch_size": batch, "run_time_s": 6.0}
    published = {"crossover": [700, 700], "rows": [run | {"hardware": "Tesla T4"}]}
    changes = {"published": published, "steps_per_run": {"samples": 200, "epochs": 3}, "batch_sizes": [100]}
    data = data_of(pd.DataFrame([row()]), **changes)["published"]["disc_depth"]
    (mark,) = data["marks"]
    assert (mark["metric"], mark["value"], mark["words"]) == ("step_time_s", 1.0, "GPU, Tesla T4")
    assert mark["on"] == {"protocol": "resident", "size": 2} | ({"batch_size": batch} if batch else {})


def test_published_marks_have_their_parameters(power_laws: Callable[..., pd.DataFrame]) -> None:
    """A size tells its number of parameters and the other way round; a run over batch sizes needs neither."""
    places = [{"size": 2}, {"parameters": 100}, {"size": 9}, {"parameters": 7}, {"batch_size": 4}]
    rows = [{**place, "device": "cuda", "step_time_s": 1.0} for place in places]
    changes = {"published": {"crossover": None, "rows": rows}, "x_axis": "parameters"}
    data = data_of(power_laws({2: 10, 3: 100}), **changes)["published"]["disc_depth"]
    on = [mark["on"] for mark in data["marks"]]
    assert len(on) == len(places)
    for place in ({"size": 2, "parameters": 10}, {"size": 3, "parameters": 100}, *places[2:]):
        assert place in on


def test_each_cell_has_the_command_of_its_first_trial(row: Row) -> None:
    commands = [trial_command(1, "cpu", size=size) for size in (2, 3)]
    rows = [row(size=size, command=command) for size, command in zip((2, 3), commands, strict=True)]
    parts = data_of(pd.DataFrame(rows))["commands"]
    whole = ["".join(part["all"] if "all" in part else part[index] for part in parts) for index in (0, 1)]
    assert whole == commands
