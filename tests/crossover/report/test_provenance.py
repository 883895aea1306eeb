from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from crossover.machine.checkout import Checkout
from crossover.plan.invocation import Invocation
from crossover.report.provenance import as_yaml, provenance, rerun

Row = Callable[..., dict[str, Any]]
RUN = Invocation("snakemake --cores 1", "/house", Checkout("c" * 40, "main", remote="https://example.org/x y.git"))


def gathered(rows: list[dict[str, Any]], run: Invocation | None = RUN, **studies: Any) -> dict[str, Any]:
    return provenance(
        [pd.DataFrame(rows)], {"trials": 3}, studies, run, {"table": [Path("missing")]}, Path("report.html"), "today"
    )


def test_rows_of_several_commits_are_counted(row: Row) -> None:
    rows = [row(code_version="a"), row(code_version="b-dirty"), row(code_version="a"), row()]
    assert gathered(rows)["measured_by"] == [
        {"code_version": "a", "crossover_version": None, "rows": 2},
        {"code_version": "b-dirty", "crossover_version": None, "rows": 1},
        {"code_version": None, "crossover_version": None, "rows": 1},
    ]


def test_switches_are_counted_by_device_and_precision(row: Row) -> None:
    rows = [row(backend_settings="{}"), row(backend_settings="{}"), row(device="cuda", precision="tf32")]
    assert gathered(rows)["settings"] == [
        {"device": "cpu", "precision": "fp32", "backend_settings": "{}", "rows": 2},
        {"device": "cuda", "precision": "tf32", "backend_settings": None, "rows": 1},
    ]


def test_what_a_table_of_trainings_does_not_hold_is_no_unknown(row: Row) -> None:
    trainings = pd.DataFrame([{"device": "cpu", "device_name": "C1", "hostname": "here", "code_version": "a"}])
    found = provenance([pd.DataFrame([row(effort="{}")]), trainings], {}, {}, None, {}, Path("report.html"), "today")
    assert found["effort"] == [{"study": "disc_depth", "effort": "{}", "rows": 1}]
    (only,) = found["settings"]
    assert only["rows"] == 1


def test_the_run_and_its_code_are_told(row: Row) -> None:
    found = gathered([row(command="python3 measure")])
    assert found["run"] == {"command": "snakemake --cores 1", "folder": "/house"}
    assert found["code"]["code_version"] == "c" * 40
    assert found["example"] == "python3 measure"
    assert found["rerun"] == [
        "git clone 'https://example.org/x y.git' crossover",
        "cd crossover",
        f"git checkout {'c' * 40}",
        "pip install -r requirements.txt",
        "snakemake --cores 1",
    ]


def test_without_git_and_without_a_run_only_the_installation_is_left() -> None:
    assert rerun(Checkout(unknown="git is not installed"), None) == ["pip install -r requirements.txt"]


def test_each_source_is_named_once_and_ours_is_none(row: Row) -> None:
    published = {"source": "A (2019)"}
    claims = ({"source": "B (2020)"}, {"source": "ours"}, {"source": "A (2019)"}, {"statement": "no source of its own"})
    found = gathered([row()], one={"published": published, "claims": claims}, two={"published": None, "claims": ()})
    assert found["sources"] == ["A (2019)", "B (2020)"]


def test_all_of_it_is_plain_json(row: Row) -> None:
    found = gathered([row()], one={"published": None, "claims": (), "sizes": (1, np.int64(2)), "file": Path("a/b")})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["studies"]["one"]["sizes"] == [1, 2]


def test_the_config_reads_back_as_it_was() -> None:
    config = {"b": None, "a": [1, "2"], "title": "é: 'x' #", "c": {"d": [{"e": 1, "f": []}]}}
    text = as_yaml(config)
    assert "a: [1, '2']\n" in text
    assert "- e: 1\n" in text
    assert yaml.safe_load(text) == config
    assert list(yaml.safe_load(text)) == ["b", "a", "title", "c"]
