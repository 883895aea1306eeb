"""The plan of a run is written at once, whoever has the host."""

from __future__ import annotations

import runpy
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from crossover.machine import turns
from crossover.plan.plan_file import read
from plans import configured, planned


def test_the_plan_needs_no_turn_on_the_host(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, path = configured(), tmp_path / "plan.json"
    params = SimpleNamespace(
        run=asdict(planned(config)),
        config=config.complete,
        planned_keys=[],
        several_hosts=False,
        references=[],
        note=None,
    )
    job = SimpleNamespace(log=[str(tmp_path / "log")], params=params, output=SimpleNamespace(plan=str(path)))
    monkeypatch.setattr(turns, "host_turn", lambda *_, **__: pytest.fail("waits for a turn"))
    runpy.run_path(str(root / "scripts" / "write_plan.py"), {"snakemake": job}, "__main__")
    assert list(read(path).studies) == ["disc_depth"]
