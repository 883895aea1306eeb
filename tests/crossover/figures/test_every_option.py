"""Every optional key of a config and of a study, with and without a GPU: from the rows that it leaves to the report."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from crossover.answers.takeaways import TAKEAWAYS, takeaway
from crossover.figures.views import study_view
from crossover.report.report_tables import ReportTables
from crossover.statistics.largest_batches import SEARCH_AXES, SEARCH_COLUMNS
from crossover.statistics.summary import summarise
from matplotlib import pyplot as plt

from crossover.statistics.cores_worth import compare_cores
from crossover.statistics.quality import quality_table
from crossover.tables.columns import Training
from crossover.tables.frames import write_table
from render_report import render_report
from report_pages import FACTS, TEMPLATES, tables_of

Row = Callable[..., dict[str, Any]]
Rows = list[dict[str, Any]]

ROOT = Path(__file__).parents[3]
STUDY = "disc_depth"
SIZES = {2: 12, 8: 120, 32: 1800}
DEVICES = {"CPU only": ["cpu"], "CPU and GPU": ["cpu", "cuda"], "GPU only": ["cuda"]}
SECONDS = {"cpu": 1e-5, "cpu-half": 2e-5, "cpu-1": 4e-5}
"""What a device takes at size 1; a CPU takes size^1.5 times as long, a GPU always 0.5 ms."""


def rows_of(row: Row, devices: Sequence[str], *, trials: int = 2, **values: Any) -> Rows:
    """Trials 1 % apart, with an energy of 50 W."""
    return [
        row(
            **{"effort": '{"blocks_min": 30}', "command": "python3 scripts/measure_cell.py", "trial": trial},
            **{"size": size, "parameters": parameters, "device": device, "peak_allocated_bytes": 1000 * parameters},
            **{"step_time_s": time_s, "energy_per_step_j": 50 * time_s},
            **{"started_at": f"2026-01-01T0{trial}:00:00.000+00:00", **values},
        )
        for (size, parameters), device, trial in product(SIZES.items(), devices, range(1, trials + 1))
        for time_s in [(SECONDS[device] * size**1.5 if device in SECONDS else 5e-4) * 1.01**trial]
    ]


@dataclass
class Case:
    """What a run with an option hands to its report."""

    rows: Rows
    study: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def priced(**prices: float) -> Callable[[Row, Sequence[str]], Case]:
    return lambda row, devices: Case(rows_of(row, devices), facts={"price_per_hour": prices, "currency": "EUR"})


def without_energy(row: Row, devices: Sequence[str]) -> Case:
    """As most runs are, and prices of no device that ran."""
    rows = [own | {"energy_per_step_j": None} for own in rows_of(row, devices)]
    return Case(rows, facts={"price_per_hour": {"xpu": 1.0}})


def on_fewer_cores(row: Row, devices: Sequence[str]) -> Case:
    sides = [*devices, "cpu-half", "cpu-1"] if "cpu" in devices else devices
    rows = [own | {"threads": 1 if own["device"] == "cpu-1" else 2} for own in rows_of(row, sides)]
    worth = compare_cores(pd.DataFrame(rows))
    return Case(rows, more={"cores_worth": worth} if len(worth) else {})


def with_failures(row: Row, devices: Sequence[str]) -> Case:
    lost = {"status": "oom", "reason": "too much", "step_time_s": None, "energy_per_step_j": None}
    return Case([own | lost if own["size"] == 32 else own for own in rows_of(row, devices)])


def of_machines(row: Row, devices: Sequence[str]) -> Case:
    return Case([one for name in ("a", "b") for one in rows_of(row, devices, machine=name, hostname=name)])


def searched(row: Row, devices: Sequence[str]) -> Case:
    rows = rows_of(row, devices)
    plain = dict.fromkeys([*SEARCH_AXES, *SEARCH_COLUMNS]) | {"status": "ok", "largest": 512, "tries_count": 3}
    found = [plain | {axis: own[axis] for axis in SEARCH_AXES} for own in rows if own["trial"] == 1]
    return Case(rows, {"largest_batch": True, "figures": ["throughput"]}, more={"searches": pd.DataFrame(found)})


def trained(row: Row, devices: Sequence[str]) -> Case:
    plain = {one.name: None for one in fields(Training)} | {"status": "ok", "loss": 0.5, "machine": "here"}
    axes = {"study": STUDY, "workload": "disc_mlp", "variant": "plain", "protocol": "resident", "execution": "eager"}
    labels = {"labels": np.array([0, 0, 1, 1]), "predictions": np.array([0, 1, 1, 1]), "device_name": "Brand"}
    own = {"precision": "fp32", "batch_size": 32, "size": 2}
    models = [
        plain | axes | labels | own | {"device": device, "seed": seed} for device, seed in product(devices, (1, 2))
    ]
    return Case(rows_of(row, devices), more={"quality": quality_table(pd.DataFrame(models), {STUDY: None})})


OPTIONS: Mapping[str, Callable[[Row, Sequence[str]], Case]] = {
    "price_per_hour": priced(cpu=0.8),
    "price_per_hour of a GPU": priced(cuda=4.0),
    "price_per_hour of both": priced(cpu=0.8, cuda=4.0),
    "currency": without_energy,
    "hardware": of_machines,
    "merge": lambda row, devices: Case([*rows_of(row, devices, machine="a"), *rows_of(row, ["cpu"], machine="b")]),
    "several_hosts": lambda row, devices: Case(
        [*rows_of(row, devices), *rows_of(row, devices, hostname="there", batch_size=10)]
    ),
    "trials": lambda row, devices: Case(rows_of(row, devices, trials=1), facts={"trials": 1}),
    "side_by_side": lambda row, devices: Case(rows_of(row, devices, flags=["side_by_side", "drift"])),
    "largest_batch": searched,
    "quality": trained,
    "cpu_threads": on_fewer_cores,
    "time_limit_s": with_failures,
    "protocols": lambda row, devices: Case(
        [*rows_of(row, devices), *rows_of(row, devices, protocol="as_published")], {"figures": ["comparison"]}
    ),
    "executions": lambda row, devices: Case([*rows_of(row, devices), *rows_of(row, devices, execution="compile")]),
    "precisions": lambda row, devices: Case([*rows_of(row, devices), *rows_of(row, devices, precision="bf16")]),
    "steps_per_run": lambda row, devices: Case(rows_of(row, devices), {"steps_per_run": 1000}),
    "latency_mistakes": lambda row, devices: Case(
        rows_of(row, devices, latencies_s=[1.0, 1.1], latencies_cold_s=[2.0, 2.2]), {"figures": ["latency"]}
    ),
}


def spec(case: Case) -> dict[str, Any]:
    """The study's file, completed with defaults."""
    plain = {"name": STUDY, "title": "A title", "question": "From where on?", "published": None, "figures": ["times"]}
    grid = {"precisions": ["fp32", "bf16"], "batch_sizes": [100], "variants": ["plain"], "protocols": ["resident"]}
    return plain | grid | {"x_axis": "size", "steps_per_run": None, "executions": ["eager"], **case.study}


def tables(case: Case) -> ReportTables:
    rows = pd.DataFrame(case.rows)
    made = tables_of(rows, x_axis="size", prices=case.facts.get("price_per_hour"), **case.more)
    # Of the study's own sizes there are two; refinement added the third.
    return ReportTables(**{**vars(made), "cells": summarise(rows, {STUDY: [2, 32]})})


@pytest.mark.parametrize(
    ("option", "devices"),
    [
        *product(OPTIONS, ("CPU only", "CPU and GPU")),
        *product([name for name in OPTIONS if "price" in name], ["GPU only"]),
    ],
)
def test_an_option_ends_in_a_report_with_its_summaries(option: str, devices: str, row: Row, tmp_path: Path) -> None:
    case = OPTIONS[option](row, DEVICES[devices])
    made = tables(case)
    paths = dict.fromkeys(ReportTables.__dataclass_fields__, "")
    for name, table in vars(made).items():
        if table is not None:
            paths[name] = str(tmp_path / f"{name}.parquet")
            write_table(table, tmp_path / f"{name}.parquet", tmp_path / f"{name}.csv")
    render_report(
        path_to_templates=TEMPLATES,
        paths_to_tables=paths,
        figures=[],
        studies={STUDY: spec(case)},
        facts={**FACTS, **case.facts},
        path_to_method=ROOT / "docs" / "method.md",
        path_to_report=tmp_path / "report.html",
        path_to_markdown=tmp_path / "summary.md",
        path_to_csv=tmp_path / "summary.csv",
        path_to_closing=tmp_path / "summary.txt",
        path_to_provenance=tmp_path / "provenance.json",
        config={},
        paths_to_data={},
        merged=[],
    )
    assert "From where on?" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert pd.read_csv(tmp_path / "summary.csv")["answer"].notna().all()
    assert json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8"))["machines"]
    prices = case.facts.get("price_per_hour")
    view = study_view(made.measurements, made.cells, made.crossovers, spec(case), None, price_per_hour=prices)
    for kind in TAKEAWAYS:
        takeaway(kind, view)


@pytest.mark.parametrize("devices", ["CPU only", "CPU and GPU"])
@pytest.mark.parametrize("kind", TAKEAWAYS)
def test_every_kind_of_figure_is_drawn_of_every_side(kind: str, devices: str, row: Row) -> None:
    """With energy, prices, the CPU on fewer cores and several batch sizes."""
    case = on_fewer_cores(row, DEVICES[devices])
    rows = [*case.rows, *[own | {"batch_size": 10} for own in case.rows]]
    made = tables(Case(rows, facts={"price_per_hour": {"cpu": 0.8, "cuda": 4.0}}))
    view = study_view(
        made.measurements,
        made.cells,
        made.crossovers,
        spec(case),
        None,
        cost_models=made.cost_models,
        price_per_hour={"cpu": 0.8, "cuda": 4.0},
    )
    figure = vars(importlib.import_module(f"plot_{kind}"))[f"plot_{kind}"](view)
    assert figure.axes or figure.texts
    plt.close(figure)


def test_no_optional_key_is_left_out() -> None:
    """Those that may be null, or of which a run has none unless its config asks for some."""
    schema = yaml.safe_load((ROOT / "config" / "schema.yaml").read_text())
    nullable = {name for name, key in schema["properties"].items() if "null" in key.get("type", "")}
    assert nullable - set(OPTIONS) == {"compare", "check_pairs"}  # keys of other targets than the report
