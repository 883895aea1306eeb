from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossover.config.studies import SEARCH_VERSION
from crossover.errors import UserError
from crossover.tables.frames import records
from crossover.tables.registry import TABLES
from crossover.tables.searches import collect_searches

AXES = {"study": "mine", "workload": "disc_mlp", "variant": "plain", "protocol": "resident", "precision": "fp32"}


def search(path: Path, **values: Any) -> Path:
    """A file as a search writes it."""
    plain = AXES | {"execution": "eager", "size": 3, "device": "cpu", "status": "ok", "schema_version": SEARCH_VERSION}
    path.write_text(json.dumps(plain | {"tries": [{"duration_s": 1.5}, {"duration_s": 2.0}]} | values))
    return path


def test_a_search_becomes_a_row(tmp_path: Path) -> None:
    found = search(tmp_path / "a.json", size=9, largest=14336, smallest_failing=14337, throughput_samples_per_s=24e3)
    none = search(tmp_path / "b.json", status="oom", reason="full", smallest_failing=1, tries=[], machine="h200")
    table = collect_searches([found, none])
    assert list(table.columns) == list(TABLES["largest_batches"])
    first, second = records(table)
    assert (first["size"], first["largest"], first["status"], first["machine"]) == (3, None, "oom", "h200")
    assert (second["size"], second["largest"], second["machine"]) == (9, 14336, "here")
    assert (second["throughput_samples_per_s"], second["tries_count"], second["search_s"]) == (24_000, 2, 3.5)


@pytest.mark.parametrize("text", ["", "[]", "{}", "half of {", f'{{"schema_version": {SEARCH_VERSION}, "tries": 3}}'])
def test_a_file_that_is_no_search_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cpu.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"cpu\.json: not a readable search; delete it and run again"):
        collect_searches([path])


def test_a_search_of_another_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cpu\.json: written by another version"):
        collect_searches([search(tmp_path / "cpu.json", schema_version=0)])
