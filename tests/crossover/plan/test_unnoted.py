from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.errors import UserError
from crossover.plan.unnoted import check_unnoted
from crossover.tables.columns import Measurement
from crossover.tables.row_files import write_record


def row(path: Path, command: str | None) -> Path:
    write_record(Measurement(command=command, code_key="now"), path)
    return path


def test_a_row_of_todays_command_passes(tmp_path: Path) -> None:
    path = row(tmp_path / "a.parquet", "python3 measure.py '--output=a b'")
    for key in ("now", None):
        check_unnoted([(path, "python3 measure.py --output='a b' > log 2>&1", key)])


def test_a_row_of_other_code_is_named(tmp_path: Path) -> None:
    path = row(tmp_path / "a.parquet", "python3 measure.py --trial=1")
    with pytest.raises(UserError, match=rf"^{path}: measured by another command than this config's, or by other code"):
        check_unnoted([(path, "python3 measure.py --trial=1 > log", "another")])


@pytest.mark.parametrize("command", ["python3 measure.py --blocks-min=3 --trial=1", "", None])
def test_a_row_of_another_command_is_named(command: str | None, tmp_path: Path) -> None:
    path = row(tmp_path / "a.parquet", command)
    same = row(tmp_path / "b.parquet", "python3 measure.py --trial=2")
    today = "python3 measure.py --blocks-min=4 --trial=1 > log"
    with pytest.raises(UserError, match=rf"^{path}: measured by another command .* delete"):
        check_unnoted([(same, "python3 measure.py --trial=2 > log", "now"), (path, today, "now")])


def test_several_rows_are_counted(tmp_path: Path) -> None:
    rows = [row(tmp_path / f"{name}.parquet", "python3 measure.py --trial=1") for name in "abc"]
    with pytest.raises(UserError, match=r"a.parquet \(and 2 more\): "):
        check_unnoted((path, "python3 measure.py --trial=2 > log", "now") for path in rows)


def test_rows_that_cannot_be_read_are_named_before_any_job(tmp_path: Path) -> None:
    rows = [row(tmp_path / f"{name}.parquet", "python3 measure.py") for name in "abc"]
    rows[0].write_bytes(rows[0].read_bytes()[:-10])
    rows[2].write_bytes(b"")
    with pytest.raises(UserError, match=r"a\.parquet: not a readable row .* again: rm \S*a\.parquet \S*c\.parquet$"):
        check_unnoted((path, "python3 measure.py > log", None) for path in rows)
    pq.write_table(pa.table({"size": [1]}), rows[1])
    with pytest.raises(UserError, match=r"^\S*b\.parquet: measured by another command"):
        check_unnoted([(rows[1], "python3 measure.py > log", None)])
