from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.errors import UserError
from crossover.tables.columns import SCHEMA_VERSION, arrow_schema
from crossover.tables.frames import write_rows
from crossover.tables.merged_runs import join_runs

Row = Callable[..., dict[str, Any]]


@pytest.fixture
def run(row: Row, tmp_path: Path) -> Callable[..., Path]:
    def write(folder: str, *rows: dict[str, Any], **values: Any) -> Path:
        path = tmp_path / folder / "measurements.parquet"
        path.parent.mkdir()
        records = [row(**{"schema_version": SCHEMA_VERSION, **values, **changes}) for changes in rows or ({},)]
        write_rows(pa.Table.from_pylist(records, schema=arrow_schema()), path)
        return path.parent

    return write


def names(*runs: Path | tuple[str, Path]) -> list[str]:
    named = [run if isinstance(run, tuple) else (None, run) for run in runs]
    machines: list[str] = join_runs(named)[0]["machine"].to_pylist()
    return machines


def test_machines_have_the_given_name_or_that_of_their_host(run: Callable[..., Path]) -> None:
    three = [{"hostname": f"node{number}", "size": number} for number in (1, 2, 3)]
    machines = names(run("a", hostname="zeta"), ("laptop", run("b")), run("c", *three))
    assert machines == ["zeta", "laptop", *["node1 and 2 more"] * 3]


def test_classes_of_nodes_keep_their_names(run: Callable[..., Path]) -> None:
    classes = ({"machine": "a100"}, {"machine": "h200"})
    assert names(run("a", *classes), ("laptop", run("b"))) == ["a100", "h200", "laptop"]
    assert names(("site", run("c", *classes))) == ["site-a100", "site-h200"]


def test_roofs_have_the_name_of_their_machine(run: Callable[..., Path]) -> None:
    folders = [run("a"), run("b"), run("c")]
    for folder in folders[:2]:
        (folder / "roofs").mkdir()
        roof = {"machine": "here", "device": "cpu", "roof": "matmul", "precision": "fp32", "value": 1e12}
        (folder / "roofs" / "cpu.json").write_text(json.dumps([roof]))
    _, roofs = join_runs([*zip(("desk", "laptop", "old"), folders, strict=True)])
    assert roofs["machine"].tolist() == ["desk", "laptop"]


def test_a_run_without_a_table_is_read_from_its_rows(row: Row, run: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path / "b" / "cells" / "disc_depth" / "more" / "cuda"
    folder.mkdir(parents=True)
    records = [row(schema_version=SCHEMA_VERSION, trial=trial, device="cuda", hostname="b") for trial in (1, 2)]
    records[0] |= {"status": "invalid", "reason": "wrong", "check": "failed"}  # invalidates the cell's other trial too
    for record in records:
        pq.write_table(
            pa.Table.from_pylist([record], schema=arrow_schema()), folder / f"trial-{record['trial']}.parquet"
        )
    rows, _ = join_runs([(None, run("a")), (None, tmp_path / "b")])
    assert rows["machine"].to_pylist() == ["here", "b", "b"]
    assert rows["status"].to_pylist() == ["ok", "invalid", "invalid"]


def test_rows_may_differ_between_machines_but_not_within_one(run: Callable[..., Path]) -> None:
    mixed = run("a", {"torch_version": "2.12.0"}, {"torch_version": "2.13.0", "trial": 2})
    with pytest.raises(UserError, match=rf"^{mixed}: the rows of device 'cpu' come .*torch_version"):
        names(mixed)
    assert len(names(run("b", torch_version="2.12.0", hostname="b"), run("c", torch_version="2.13.0"))) == 2


def test_an_empty_or_unknown_table_is_rejected(run: Callable[..., Path]) -> None:
    folder = run("a")
    file = folder / "measurements.parquet"
    write_rows(pq.read_table(file).slice(0, 0), file)
    with pytest.raises(UserError, match=f"^{folder}: it contains no rows; allowed: the results folder of a run"):
        names(folder)
    pq.write_table(pq.read_table(file).replace_schema_metadata(None), file)
    with pytest.raises(UserError, match=f"^{file}: not the table 'measurements' of this version .*; copy it again"):
        names(folder)


def test_unsuitable_folders_and_names_are_rejected(run: Callable[..., Path], tmp_path: Path) -> None:
    folder = run("a")
    with pytest.raises(UserError, match=r"neither measurements\.parquet nor rows in cells/"):
        names(tmp_path)
    with pytest.raises(UserError, match="a: it is given twice"):
        names(folder, ("x", folder / ".." / "a"))
    with pytest.raises(UserError, match="'here' means a machine without a name"):
        names(("here", folder))
    with pytest.raises(UserError, match=r"are both of machine 'here'; give each a name: laptop="):
        names(folder, run("b"))
    (folder / "measurements.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"not a readable table .*; copy it again"):
        names(folder)
