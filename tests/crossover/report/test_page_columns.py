from __future__ import annotations

from crossover.report.page_columns import FIRST, METRICS, TITLES, column_specs, metric_specs
from crossover.statistics.summary import CELL_COLUMNS
from crossover.tables.frames import CELL_AXES


def test_the_table_has_every_column_once_and_says_its_unit() -> None:
    names = [*CELL_AXES, *CELL_COLUMNS]
    specs = {spec["key"]: spec for spec in column_specs(names)}
    assert sorted(specs) == sorted(names)
    assert list(specs)[: len(FIRST)] == list(FIRST)
    time = specs["step_time_s"]
    assert (time["title"], time["unit"], time["factor"]) == ("time per step", "ms", 1000)
    assert specs["peak_allocated_bytes"]["unit"] == "MB"
    assert specs["hostname"]["doc"] == "name of the host"


def test_a_new_column_has_its_name() -> None:
    (spec,) = column_specs(["some_new_one"])
    assert (spec["title"], spec["unit"], spec["factor"]) == ("some new one", "", 1)


def test_a_chart_shows_the_metrics_that_there_are() -> None:
    assert [spec["key"] for spec in metric_specs(["samples_per_s", "step_time_s", "hostname"])] == [
        "step_time_s",
        "samples_per_s",
    ]
    assert set(METRICS) <= set(TITLES)
