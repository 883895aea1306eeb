"""The caveats of claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.report.report import Run, write_report
from crossover.tables.frames import records
from report_pages import CONFIG, TEMPLATES, study, tables_of

Row = Callable[..., dict[str, Any]]

SLOW_CPU = {"ratio_below": {"metric": "step_time_s", "of": {"device": "cpu"}, "over": {"device": "cuda"}, "limit": 1}}
METRICS = {"ratio_below": {"of": {"metric": "latency_p50_s"}, "over": {"metric": "latency_p99_s"}, "limit": 0.9}}
CROSSES = {"crossover_between": {"range": [100, 1000]}}
BUSY_CPU = ["busy_machine", "busy_host"]


@pytest.mark.parametrize(
    ("form", "where", "caveats"),
    [
        (SLOW_CPU, {"size": 100}, BUSY_CPU),
        (SLOW_CPU, {"size": 10_000}, []),
        (METRICS, {"size": 100, "device": "cpu"}, BUSY_CPU),
        (METRICS, {"size": 100, "device": "cuda"}, []),
        (CROSSES, {}, BUSY_CPU),
    ],
)
def test_a_claim_has_the_caveats_of_the_cells_that_it_rests_on(
    row: Row, form: dict[str, Any], where: dict[str, Any], caveats: list[str]
) -> None:
    """Other programs ran beside the CPU's cells at the two smaller of three sizes, at which the sides cross."""
    rows = [
        row(
            device=device,
            size=size,
            parameters=size,
            trial=trial,
            step_time_s=time_s * 1.01**trial,
            latency_p50_s=1e-3 * 1.01**trial,
            latency_p99_s=2e-3,
            flag_names=["busy_host"] if device == "cpu" and size < 10_000 else [],
        )
        for size in (100, 1000, 10_000)
        for device, time_s in (("cpu", 4e-6 * size), ("cuda", 1.5e-3))
        for trial in range(1, 4)
    ]
    ((name, values),) = form.items()
    claim = {"statement": "said", "source": "Somebody", name: {**values, **({"where": where} if where else {})}}
    studies = {"disc_depth": study(claims=[claim])}
    run = tables_of(pd.DataFrame(rows), studies)
    (found,) = records(run.claims)
    assert found["verdict"] != "no_data"
    assert found["caveats"] == caveats


def test_a_summary_says_busy_once_a_study_and_beside_each_claim_and_explains_its_series(
    row: Row, tmp_path: Path
) -> None:
    """All cells had other programs beside them; the table of answers has the caveat on each answer."""
    rows = [
        row(device=device, size=size, parameters=size, trial=trial, protocol=protocol, flag_names=["busy_host"])
        | {"step_time_s": time_s * 1.01**trial}
        for protocol in ("as_published", "resident")
        for size in (100, 1000, 10_000)
        for device, time_s in (("cpu", 4e-6 * size), ("cuda", 1.5e-3))
        for trial in range(1, 4)
    ]
    claim = {"statement": "said", "source": "Somebody", "crossover_between": {"range": [100, 1000]}}
    claim["crossover_between"] |= {"where": {"protocol": "resident"}}
    studies = {"disc_depth": study(claims=[claim])}
    run = tables_of(pd.DataFrame(rows), studies)
    write_report(Run(run, studies, CONFIG), tmp_path, TEMPLATES)
    busy = [answer for answer in records(run.answers) if "busy_machine" in answer["caveats"]]
    assert len([answer for answer in busy if answer["kind"] == "crossover" and answer["main"]]) == 2
    for name in ("summary.md", "summary.txt", "report.html"):
        text = (tmp_path / name).read_text()
        assert text.count("On a busy machine: ") == 1, name
        assert text.index("On a busy machine: ") < text.index("GPU faster above"), name
        assert "; busy machine" in text, name
    series = "resident (data already on the device), as published (as in the published source)"
    assert f"say where the data of a step come from: {series}\n" in (tmp_path / "summary.md").read_text()
