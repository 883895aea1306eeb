"""Provenance of merged runs, and differences between machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from crossover.report.provenance import differing_software, read_provenances

COMPLETE: dict[str, Any] = {
    "made_at": "then",
    "code": {},
    "config": {},
    "studies": {},
    "rerun": [],
    "files": [],
    "runs": [],
}


def read(folder: Path, text: str | None) -> dict[str, Any]:
    (folder / "measurements.parquet").write_bytes(b"rows")
    if text is not None:
        (folder / "provenance.json").write_text(text)
    (run,) = read_provenances([("h200", folder)])
    return run


@pytest.mark.parametrize(
    ("text", "caveat"),
    [
        (None, "no_file"),
        ("{", "unreadable"),
        (json.dumps(COMPLETE | {"rerun": 1}), "unreadable"),
        (json.dumps(COMPLETE | {"files": [{"name": "measurements.parquet", "sha256": "0"}]}), "other_rows"),
        (json.dumps(COMPLETE), None),
    ],
)
def test_a_run_with_unreliable_provenance_has_a_caveat(tmp_path: Path, text: str | None, caveat: str | None) -> None:
    run = read(tmp_path, text)
    assert (run["name"], run["caveat"]) == ("h200", caveat)
    assert (run["provenance"] is not None) is (caveat in (None, "other_rows"))


def test_differences_between_machines(row: Callable[..., dict[str, Any]]) -> None:
    def measured(machine: str, torch: str, timed_min_s: float) -> dict[str, Any]:
        packages = {"python": "3.12", "torch": torch, "transformers": "5.17.0"}
        effort = {"blocks_min": 5, "timed_min_s": timed_min_s}
        return row(
            machine=machine, torch_version=torch, packages=json.dumps(packages), effort=json.dumps(effort), size=2
        )

    rows = [measured("a", "2.11", 1.0), measured("a", "2.11", 2.0), measured("b", "2.13", 1.0)]
    differences = differing_software(pd.DataFrame([*rows, row(machine="b", status="timeout")]))
    assert differences == [
        {"what": "version of torch", "each": "2.11 on a, 2.13 on b"},
        {"what": "effort timed_min_s", "each": "1.0 and 2.0 on a, 1.0 on b"},
    ]
