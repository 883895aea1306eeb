"""A run exported to the formats of other tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import frictionless
import pandas as pd
import pytest

from crossover.report.exports import action_benchmark, bencher, data_package
from crossover.tables.frames import write_run
from report_pages import Page, write_page


@pytest.fixture(scope="module")
def page(row: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Page:
    rows = [
        row(device=device, size=size, trial=trial, step_time_s=1e-3 * (1 + trial / 100), flag_names=["drift"])
        for device in ("cpu", "cuda")
        for size in (2, 3)
        for trial in (1, 2, 3)
    ]
    return write_page(pd.DataFrame(rows), tmp_path_factory.mktemp("run"))


def test_the_tables_are_a_valid_data_package(page: Page) -> None:
    write_run(page.tables, page.folder)
    described = data_package(page.folder, "2026-11-23 10:00 UTC")
    (page.folder / "datapackage.json").write_text(json.dumps(described))
    validation = frictionless.validate(str(page.folder / "datapackage.json"))
    assert validation.valid, validation.flatten(["title", "message"])
    fields = {field["name"]: field for resource in described["resources"] for field in resource["schema"]["fields"]}
    assert (fields["step_time_s"]["type"], fields["step_time_s"]["unit"]) == ("number", "s")
    assert all(field["description"] for field in fields.values())


def test_bencher_has_latency_in_ns_and_throughput_with_their_intervals(page: Page) -> None:
    metrics = bencher(page.tables.cells)
    assert len(metrics) == 4
    measures = metrics["disc_depth: 2 linear layers, plain, resident, batch 100, fp32, eager, here, GPU"]
    values = {"latency": 1.02e6, "throughput": 100 / 1.02e-3}
    assert {name: measure["value"] for name, measure in measures.items()} == pytest.approx(values, rel=1e-3)
    for measure in measures.values():
        assert measure.keys() == {"value", "lower_value", "upper_value"}
        assert measure["lower_value"] < measure["value"] < measure["upper_value"]


def test_the_github_action_has_times_in_ms(page: Page) -> None:
    entries = action_benchmark(page.tables.cells)
    assert all(entry.keys() == {"name", "unit", "value", "range", "extra"} for entry in entries)
    assert (entries[0]["unit"], entries[0]["value"]) == ("ms/step", pytest.approx(1.02, rel=1e-3))
    low, high = map(float, entries[0]["range"].split(" to "))
    assert low < entries[0]["value"] < high
