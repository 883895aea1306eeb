"""The tables of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crossover.config.study import Study
from crossover.errors import UserError
from crossover.report.problems import list_problems
from crossover.tables.columns import arrow_schema
from crossover.tables.frames import read_run, records, write_rows, write_run
from crossover.tables.registry import CANDIDATES
from crossover.tables.run_tables import TABLES, RunTables
from crossover.topics.analysis import analyse
from report_pages import study, tables_of

Row = Callable[..., dict[str, Any]]


def tables(*rows: dict[str, Any], **studies: Study) -> RunTables:
    measurements = pd.DataFrame(rows) if rows else arrow_schema().empty_table().to_pandas()
    return tables_of(measurements, studies, prices={"cpu": 1.0})


def as_text(value: Any) -> str:
    """A value as text; a list read from Parquet is an array."""
    return str(list(value) if isinstance(value, list | np.ndarray) else value)


def test_the_tables_of_a_run_are_written_and_read(tmp_path: Path, row: Row) -> None:
    run = tables(row(size=2), row(size=2, device="cuda", flag_names=["drift"]))
    write_run(run, tmp_path)
    with pytest.raises(UserError, match=r"measurements\.parquet"):
        read_run(tmp_path)
    write_rows(arrow_schema().empty_table(), tmp_path / "measurements.parquet")
    read = read_run(tmp_path)
    for name in TABLES:
        read_back, made = getattr(read, name), getattr(run, name)
        assert read_back.dtypes.to_dict() == made.dtypes.to_dict(), name
        assert read_back.map(as_text).equals(made.map(as_text)), name
        assert (tmp_path / f"{name}.csv").is_file()


def test_the_tables_of_one_study(row: Row) -> None:
    rows = [row(study=study, device=device) for study in ("one", "other") for device in ("cpu", "cuda")]
    of_other = tables(*rows).of_study("other")
    for name in ("measurements", "cells", "ratios", "crossovers"):
        assert set(getattr(of_other, name)["study"]) == {"other"}, name
    assert list(of_other.claims.columns) == list(TABLES["claims"])


@pytest.mark.parametrize(("lost", "x_axis"), [(["cuda"], "parameters"), (["cpu", "cuda"], "size")])
def test_parameters_are_those_of_other_trials_if_a_model_was_not_built(row: Row, lost: list[str], x_axis: str) -> None:
    """If no trial at a size built its model, crossovers are over sizes instead."""
    rows = [row(size=size, parameters=100 * size, device=device) for size in (2, 3) for device in ("cpu", "cuda")]
    rows += [
        row(size=4, device=device, parameters=400)
        | ({"status": "crash", "step_time_s": None, "parameters": None} if device in lost else {})
        for device in ("cpu", "cuda")
    ]
    run = tables(*rows, disc_depth=study(x_axis="parameters"))
    assert set(run.crossovers["x_axis"]) == {x_axis}
    known = run.cells.loc[run.cells["size"] == 4, "parameters"]
    assert known.notna().tolist() == [x_axis == "parameters"] * 2


def test_grid_and_x_axis_are_those_of_the_study(row: Row) -> None:
    """Sizes that are not in the study's file count as refined; crossovers are along its x axis."""
    devices = ("cpu", "cpu-1", "cuda")
    rows = [row(size=size, parameters=100 * size, device=device) for size in (2, 3) for device in devices]
    others = [row(study="other", size=2, device=device) for device in ("cpu", "cuda")]
    spec = study(sizes=[2], x_axis="parameters")
    run = tables(*rows, *others, disc_depth=spec, other=study())
    refined = {(cell["study"], cell["size"]): cell["refined"] for cell in records(run.cells)}
    assert refined == {("disc_depth", 2): False, ("disc_depth", 3): True, ("other", 2): False}
    assert run.crossovers.groupby("study")["x_axis"].first().to_dict() == {
        "disc_depth": "parameters",
        "other": "size",
    }
    assert run.cells["price_per_million_steps"].notna().sum() == 5
    elsewhere = analyse(
        pd.DataFrame(rows), run.quality, run.searched_cells, {"disc_depth": spec}, None, grids_known=False
    )
    assert not elsewhere.cells["refined"].any()


def test_candidates_change_no_other_table(row: Row) -> None:
    """The candidates are a compiled step, a CUDA graph and one core, at two of three sizes; one candidate fails."""
    sizes = (100, 1000, 10_000)
    plain = [
        row(size=size, device=device, trial=trial, step_time_s=seconds * 1.01**trial)
        for size in sizes
        for device, seconds in (("cpu", size * 1e-6), ("cuda", 2e-3))
        for trial in (1, 2, 3)
    ]
    added = [
        row(size=size, device=device, execution=execution, step_time_s=1e-4)
        for size in sizes[:2]
        for device, execution in (("cpu", "compile"), ("cuda", "compile"), ("cuda", "cuda-graph"), ("cpu-1", "eager"))
    ]
    lost = row(size=100, device="cuda", execution="compile", status="oom", step_time_s=None, trial=2)
    claims = [{"statement": "from 2000 on", "source": "ours", "crossover_between": {"range": [1000, 10_000]}}]
    spec = study(sizes=list(sizes), claims=claims, executions=["eager"], precisions=["fp32"])
    candidates = {"executions": ["compile", "cuda-graph"], "cpu_threads": [1], "sizes": list(sizes[:2])}
    before = tables(*plain, disc_depth=spec)
    after = tables(*plain, *added, lost, disc_depth=replace(spec, candidates=candidates))
    for name in set(TABLES) - {"crossovers", "answers", "machines"}:  # corrected for one more comparison
        kept = [column for column in TABLES[name] if name != "cells" or column not in CANDIDATES]
        assert getattr(after, name)[kept].map(str).equals(getattr(before, name)[kept].map(str)), name
    assert before.claims["verdict"].tolist() == ["reproduced"]
    crossovers = after.crossovers[after.crossovers["pair"] != "best"]
    assert crossovers.map(str).equals(before.crossovers.map(str))
    assert len(before.candidate_cells) == 0
    assert len(after.candidate_cells) == len(added)
    assert after.cells["in_play"].notna().all()
    all_trials = replace(after, measurements=pd.DataFrame([*plain, *added, lost]))
    assert [problem["kind"] for problem in list_problems(all_trials)] == ["oom"]


@pytest.mark.parametrize("machines", [["here"], ["laptop", "h200"]])
def test_series_are_in_the_order_of_the_study(row: Row, machines: list[str]) -> None:
    """The rows are in the order of the alphabet, in which as_published comes before resident, and 8 before 64."""
    protocols, batch_sizes = ["resident", "as_published"], [64, 8]
    rows = [
        row(machine=machine, protocol=protocol, batch_size=batch_size, device=device, size=size, trial=trial)
        | {"step_time_s": (1e-3 if device == "cuda" else 1e-4 * size) * (1 + trial / 1000)}
        for machine in machines
        for protocol in sorted(protocols)
        for batch_size in sorted(batch_sizes)
        for size in (1, 3, 30, 100)
        for device in ("cpu", "cuda")
        for trial in (1, 2, 3)
    ]
    spec = study(figures=["times", "speedups"], protocols=protocols, batch_sizes=batch_sizes)
    made = tables_of(pd.DataFrame(rows), {"disc_depth": spec})
    order = [(protocol, batch_size) for protocol in protocols for batch_size in batch_sizes]
    for table in (made.cells, made.crossovers):
        series = table[table["cost"] == "time"] if "cost" in table else table
        assert [*dict.fromkeys(zip(series["protocol"], series["batch_size"], strict=True))] == order
        assert [*dict.fromkeys(table["machine"])] == machines
    main = [answer for answer in records(made.answers) if answer["main"] and answer["kind"] == "crossover"]
    assert main[0]["series"].startswith(
        ("resident, batch 64", "laptop, resident, batch 64", "resident, batch 64, laptop")
    )
