"""A run exported to formats of other tools, each checked with its tool or schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import frictionless
import jsonschema
import pandas as pd
import pytest

from crossover.report.exports import action_benchmark, bencher, data_package
from crossover.tables.frames import write_run
from report_pages import Page, write_page

BENCHER = {
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")},
                    "required": ["value"],
                }
            },
        }
    },
}
"""The schema of Bencher Metric Format (bencher.dev/docs/reference/bencher-metric-format)."""

ACTION = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "unit", "value"],
        "properties": {
            "name": {"type": "string"},
            "unit": {"type": "string"},
            "value": {"type": "number"},
            "range": {"type": "string"},
            "extra": {"type": "string"},
        },
    },
}
"""The format customSmallerIsBetter according to github-action-benchmark's README."""


@pytest.fixture(scope="module")
def page(row: Callable[..., dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Page:
    rows = [
        row(device=device, size=size, trial=trial, step_time_s=1e-3 * (1 + trial / 100), flags=["drift"])
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


def test_bencher_takes_times_with_their_intervals(page: Page) -> None:
    metrics = bencher(page.tables.cells)
    jsonschema.validate(metrics, BENCHER)
    latency = metrics["disc_depth: 2 linear layers, plain, resident, batch 100, fp32, eager, here, GPU"]["latency"]
    assert latency["value"] == pytest.approx(1.02e6, rel=1e-3)
    assert latency["lower_value"] < latency["value"] < latency["upper_value"]
    assert len(metrics) == 4


def test_the_github_action_takes_milliseconds(page: Page) -> None:
    entries = action_benchmark(page.tables.cells)
    jsonschema.validate(entries, ACTION)
    assert entries[0]["value"] == pytest.approx(1.02, rel=1e-3)
    assert " to " in entries[0]["range"]
