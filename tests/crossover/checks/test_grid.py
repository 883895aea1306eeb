from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crossover.checks.grid import make_grid, write_rows
from crossover.tables.frames import collect_rows
from crossover.tables.guards import check_environments
from house import ROOT


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grid") / "copy"
    make_grid(ROOT, folder, 20)
    return folder


def test_rows_are_written_where_the_workflow_looks_for_them_with_its_commands(
    grid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(grid)
    paths = write_rows(grid)
    assert len(set(paths)) == 20
    rows = collect_rows([Path(path) for path in paths])
    assert set(zip(rows["size"].to_pylist(), rows["batch_size"].to_pylist(), strict=True)) == {
        (size, batch_size) for size in (1, 2) for batch_size in range(1, 11)
    }
    check_environments(rows, several_hosts=False)
    (command,) = pq.read_table(paths[0], columns=["command"], partitioning=None)["command"].to_pylist()
    assert shlex.split(command)[-1] == f"--output={paths[0]}"
    assert (grid / shlex.split(command)[1]).is_file()
