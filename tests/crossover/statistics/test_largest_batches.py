from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from collect_largest_batches import matching_searches
from crossover.errors import UserError
from crossover.measurement.largest_batch import LargestBatch, Throughput, Try, describe
from crossover.measurement.process.requests import BatchTry
from crossover.statistics.largest_batches import SEARCH_AXES, SEARCH_COLUMNS, collect_searches, searches_view
from crossover.tables.frames import read_table, write_table
from trials import CELL

Row = Callable[..., dict[str, Any]]

FOUND = LargestBatch(
    "ok",
    None,
    14336,
    14337,
    [Try(64, "ok", None, 1.5), Try(14337, "oom", "too much", 2.0)],
    {"hostname": "here", "device_name": "Brand C1", "threads": 2},
    Throughput(24_000.0, 100, 59.7),
)
NOT_EVEN_ONE = LargestBatch("oom", "batch 1 does not fit: too much", None, 1, [Try(1, "oom", "too much", 1.0)])
STOPPED = LargestBatch("timeout", "batch 64: not done after 300 s", None, None, [Try(64, "timeout", "late", 300.0)])


def written(path: Path, found: LargestBatch, memory_limit: int | None = 8 * 10**9) -> Path:
    """A file as scripts/find_largest_batch.py writes it."""
    search = describe(BatchTry(CELL, 0, None, 2, 300.0, memory_limit), None, found, "python3 ...")
    path.write_text(json.dumps(search))
    return path


def test_a_search_becomes_a_row(tmp_path: Path) -> None:
    table = collect_searches([written(tmp_path / "a.json", FOUND), written(tmp_path / "b.json", NOT_EVEN_ONE, None)])
    assert list(table.columns) == [*SEARCH_AXES, *SEARCH_COLUMNS]
    assert "batch_size" not in table.columns
    assert table["largest"].tolist() == [14336, pd.NA]
    assert table["smallest_failing"].tolist() == [14337, 1]
    assert table["memory_limit_bytes"].tolist() == [8 * 10**9, pd.NA]
    assert table["throughput_samples_per_s"].tolist()[0] == 24_000
    assert table["tries_count"].tolist() == [2, 1]
    assert table["search_s"].tolist() == [3.5, 1.0]
    assert table["hostname"].dropna().tolist() == ["here"]
    assert set(table["study"]) == {CELL.study}


def words(tmp_path: Path, found: LargestBatch, memory_limit: int | None = None) -> dict[str, str]:
    (row,) = searches_view(collect_searches([written(tmp_path / "one.json", found, memory_limit)]))
    return row


@pytest.mark.parametrize(
    ("memory_limit", "said"),
    [
        (None, "largest batch that fits: 14,336"),
        (8 * 10**9, "largest batch that fits: 14,336 (limit 8 GB)"),
        (16 * 2**30, "largest batch that fits: 14,336 (limit 16 GiB)"),
        (103_456_789_000, "largest batch that fits: 14,336 (limit 103 GB)"),
    ],
)
def test_the_largest_batch_is_said_with_its_limit(tmp_path: Path, memory_limit: int | None, said: str) -> None:
    row = words(tmp_path, FOUND, memory_limit)
    assert (row["of"], row["words"], row["throughput"], row["tries"], row["reason"]) == (
        "CPU (Brand C1)",
        said,
        "24,000/s",
        "2",
        "",
    )


def test_however_a_search_ends_it_is_said(tmp_path: Path) -> None:
    row = words(tmp_path, NOT_EVEN_ONE, 10**6)
    assert (row["words"], row["throughput"]) == ("not even a batch of 1 fits (limit 1.00 MB)", "")
    assert row["reason"] == "batch 1 does not fit: too much"
    row = words(tmp_path, STOPPED)
    assert row["words"] == "largest batch not found: timeout"
    assert row["reason"] == "batch 64: not done after 300 s"
    late = LargestBatch("timeout", "batch 8192: not done after 300 s; raise it", None, None, largest_fitting=4096)
    assert words(tmp_path, late)["words"] == (
        "largest batch: at least 4,096, then timeout: batch 8192: not done after 300 s"
    )
    assert words(tmp_path, late, 10**9)["words"].startswith("largest batch: at least 4,096 (limit 1 GB), then timeout")
    assert words(tmp_path, late)["reason"] == "batch 8192: not done after 300 s; raise it"
    long = LargestBatch("invalid", "batch 8: RuntimeError:\n" + "much " * 99, None, None, largest_fitting=4)
    said = words(tmp_path, long)["words"].removeprefix("largest batch: at least 4, then ")
    assert said.startswith("invalid: batch 8: RuntimeError: much much")
    assert said.endswith("much …")
    assert len(said) <= 60
    row = words(tmp_path, LargestBatch("ok", None, 4096, None))
    assert row["words"] == "largest batch tried: 4,096, which fits"
    untimed = LargestBatch("ok", None, 10, 11, throughput=Throughput(throughput_reason="timeout: not done"))
    row = words(tmp_path, untimed)
    assert (row["throughput"], row["reason"]) == ("", "not timed: timeout: not done")


@pytest.mark.parametrize("text", ["", "[]", "{}", "half of {", '{"schema_version": 1, "tries": 3}'])
def test_a_file_that_is_no_search_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cpu.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"cpu\.json: not a readable search; delete it and run again"):
        collect_searches([path])


def test_a_search_of_another_version_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "cpu.json", FOUND)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 0}))
    with pytest.raises(UserError, match=r"cpu\.json: written by another version"):
        collect_searches([path])


def collect(folder: Path, *searches: Path, several_hosts: bool = False) -> pd.DataFrame:
    write_table(matching_searches(searches, several_hosts), folder / "all.parquet", folder / "all.csv")
    return read_table(folder / "all.parquet")


def test_the_table_is_written_for_machines_and_for_people(tmp_path: Path) -> None:
    table = collect(tmp_path, written(tmp_path / "a.json", STOPPED))
    pd.testing.assert_frame_equal(table, collect_searches([tmp_path / "a.json"]))
    assert pd.read_csv(tmp_path / "all.csv")["reason"].tolist() == ["batch 64: not done after 300 s"]


def test_searches_of_two_machines_are_not_mixed(tmp_path: Path) -> None:
    here = written(tmp_path / "here.json", FOUND)
    there = written(tmp_path / "there.json", LargestBatch("ok", None, 9, 10, [], {**FOUND.facts, "hostname": "there"}))
    failed = written(tmp_path / "failed.json", STOPPED)  # it never came to know its host
    with pytest.raises(UserError, match=r"device 'cpu' come from unlike environments: hostname \(here, there\)"):
        collect(tmp_path, here, there, failed)
    assert len(collect(tmp_path, here, there, failed, several_hosts=True)) == 3
    assert len(collect(tmp_path, here, failed)) == 2


def test_without_a_study_that_asks_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="set `largest_batch: true` in a study's file"):
        collect(tmp_path)
