from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from crossover.figures.style import side_look
from crossover.report.page_data import page_data
from crossover.statistics.summary import summarise
from report_pages import tables_of

PowerLaws = Callable[..., pd.DataFrame]


def data_of(rows: pd.DataFrame) -> dict[str, Any]:
    tables = tables_of(rows, steps_per_run={"disc_depth": 1000})
    data: dict[str, Any] = json.loads(page_data({"disc_depth": {"title": "A title", "x_axis": "parameters"}}, tables))
    return data


def column(encoded: Any, count: int) -> list[Any]:
    """A column as the page reads it."""
    if isinstance(encoded, list):
        return encoded
    return [encoded["all"]] * count if "all" in encoded else [encoded["values"][place] for place in encoded["at"]]


def test_the_cells_come_back_as_they_were(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 3: 1000, 4: 100_000}, trials=2)
    data, cells = data_of(rows), summarise(rows)
    assert data["count"] == 6
    for name in ("size", "device", "parameters", "status", "trials"):
        assert column(data["cells"][name], 6) == cells[name].tolist()
    assert column(data["cells"]["step_time_s"], 6) == pytest.approx(cells["step_time_s"].tolist(), rel=1e-7)
    assert column(data["cells"]["device_label"], 6)[:2] == ["CPU (Brand C1)", "GPU (Brand G1)"]


def test_a_command_is_that_of_the_first_trial_to_the_letter(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 3: 1000, 4: 100_000}, trials=2)
    commands = [
        f"python3 measure --size={one.size} 'a  b'/x={one.trial}/ --device={one.device} " for one in rows.itertuples()
    ]
    rows["command"] = commands
    rows.loc[rows["size"] == 3, "command"] = "short"
    data = data_of(rows.iloc[::-1])
    parts = [column(place, 6) for place in data["commands"]]
    written = ["".join(part[cell] for part in parts) for cell in range(6)]
    cells = summarise(rows.iloc[::-1])
    wanted = rows[rows["trial"] == 1].set_index(["size", "device"])["command"]
    assert written == [wanted[size, device] for size, device in zip(cells["size"], cells["device"], strict=True)]


def test_what_commands_share_is_written_once(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 3: 1000, 4: 100_000})
    rows["command"] = [
        f"python3 measure --size={one.size} --seed=0 --output=a/b/{one.size}" for one in rows.itertuples()
    ]
    assert [place["all"] for place in data_of(rows)["commands"] if "all" in place] == [
        *("python3 ", "measure ", "--size="),
        *("--seed=", "0 ", "--output=", "a/", "b/"),
    ]


def test_a_crossover_has_its_place_on_both_axes_and_a_cell_of_its_line(power_laws: PowerLaws) -> None:
    (found,) = data_of(power_laws({2: 100, 4: 100_000}, trials=3))["crossovers"]
    value, low, high, words = found["on"]["parameters"]
    assert (value, low < 1000 < high) == (pytest.approx(1000, rel=1e-3), True)
    assert words == "1,000 (984 to 1,020)"
    assert found["on"]["size"][0] == pytest.approx(2.52, rel=0.01)
    assert found["cell"] == 1  # the first of the GPU


def test_a_model_knows_its_cells_and_a_line_without_one_its_reason(power_laws: PowerLaws) -> None:
    cpu, gpu = data_of(power_laws({n: 10 * n**2 for n in (2, 4, 8, 16, 32)}))["models"]
    assert (cpu["device"], cpu["run_steps"], cpu["sizes"]) == ("CPU (Brand C1)", 1000, 5)
    assert (cpu["cells"], gpu["cells"]) == ([0, 2, 4, 6, 8], [1, 3, 5, 7, 9])
    assert cpu["line"] == gpu["line"]
    (first, _) = data_of(power_laws({2: 100, 4: 1000}))["models"]
    assert first["a_s"] is None
    assert "takes 4 sizes" in first["reason"]


def test_only_metrics_that_a_cell_has_are_offered(power_laws: PowerLaws) -> None:
    keys = [metric["key"] for metric in data_of(power_laws({2: 100, 4: 1000}))["metrics"]]
    assert keys == ["step_time_s", "samples_per_s"]


def test_the_chart_offers_energy_where_a_cell_has_it(power_laws: PowerLaws) -> None:
    """Two trials of 2 and 8 J: their geometric mean is 4."""
    rows = power_laws({2: 100}, trials=2)
    joules = rows["trial"].map({1: 2.0, 2: 8.0}).where(rows["device"] == "cuda")
    data = data_of(rows.assign(energy_per_step_j=joules))
    assert "energy_per_step_j" in [metric["key"] for metric in data["metrics"]]
    devices, energies = (column(data["cells"][name], 2) for name in ("device", "energy_per_step_j"))
    assert dict(zip(devices, energies, strict=True)) == {"cpu": None, "cuda": 4}


def test_every_side_has_the_colour_of_its_line_in_the_figures(row: Callable[..., dict[str, Any]]) -> None:
    sides = ["cpu", "cpu-half", "cpu-1", "cpu-16", "cuda", "mps", "xpu"]
    rows = pd.DataFrame([row(device=side, machine=machine) for side in sides for machine in ("a", "b")])
    colours = data_of(rows)["colours"]["devices"]
    assert colours == {side: side_look(side)[0] for side in sides}
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for colour in colours.values())


def test_a_run_without_cells_has_data_too(power_laws: PowerLaws) -> None:
    """A study may train models only."""
    data = data_of(power_laws({2: 100}).head(0))
    assert (data["count"], data["models"], data["crossovers"], data["metrics"]) == (0, [], [], [])


def test_a_link_to_a_cell_names_the_machine_where_machines_have_names(power_laws: PowerLaws) -> None:
    rows = power_laws({2: 100, 3: 1000})
    axes = data_of(rows)["axes"]
    assert "machine" not in axes
    assert set(data_of(rows.assign(machine="h200"))["axes"]) == {*axes, "machine"}
