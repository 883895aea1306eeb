from __future__ import annotations

from pathlib import Path

from crossover.report.page_files import file_facts, with_csv

OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""SHA-256 of the three letters, as FIPS 180-2 has it."""


def test_a_file_is_told_by_its_checksum_and_linked_from_the_page(tmp_path: Path) -> None:
    (tmp_path / "a b.csv").write_text("abc")
    page = tmp_path / "results" / "report.html"
    facts = list(file_facts("table", [tmp_path / "a b.csv", tmp_path / "missing"], page))
    assert facts == [{"kind": "table", "name": "a b.csv", "link": "../a%20b.csv", "bytes": 3, "sha256": OF_ABC}]


def test_a_table_brings_its_csv_where_it_has_one(tmp_path: Path) -> None:
    for name in ("cells.parquet", "cells.csv", "measurements.parquet"):
        (tmp_path / name).touch()
    tables = [tmp_path / "measurements.parquet", tmp_path / "cells.parquet"]
    assert [path.name for path in with_csv(tables)] == ["measurements.parquet", "cells.parquet", "cells.csv"]
