"""Measurement of a device's roofs, on a fake clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import probe_roofs
from crossover.measurement import roofs
from crossover.measurement.clock.timing import Stopwatch
from crossover.measurement.process.child import do
from crossover.measurement.process.jobs import Job, Outcome, ProbeJob
from crossover.measurement.step.devices import open_device
from crossover.plan.keys import Key, outdated_results
from crossover.tables.registry import ROOF_KINDS
from crossover.tables.roof_files import Roofs, read_roofs

ROWS, WORKING_SETS = (8, 16), (2**12, 2**14)
BLOCK_S = 0.5


@pytest.fixture(autouse=True)
def threads() -> Any:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "HOST_ROWS", ROWS)
    monkeypatch.setattr(roofs, "host_working_sets", lambda *_: WORKING_SETS)


def probed(monkeypatch: pytest.MonkeyPatch, longest_step_s: float = 100.0) -> pd.DataFrame:
    """The roofs of a CPU on which every block takes half a second."""
    readings = iter(range(10**6))
    watch = Stopwatch(wall_ns=lambda: int(next(readings) * BLOCK_S * 1e9), synchronise=lambda: None)
    monkeypatch.setattr(roofs, "LONGEST_STEP_S", longest_step_s)
    make_small(monkeypatch)
    return pd.DataFrame(roofs.probe(open_device("cpu"), 1, watch, ProbeJob.precisions))


def in_this_process(job: Job) -> Outcome:
    status, reason, result = do(job)
    return Outcome(status, reason, written=False, facts={}, result=json.loads(json.dumps(result)))


def test_a_rate_is_work_per_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = probed(monkeypatch)
    products = table[table["roof"] == "matmul"].set_index("precision")
    assert set(products.index) == {"fp32", "bf16", "fp16", "fp64"}  # a CPU has no tf32
    assert products["value"].tolist() == [pytest.approx(2 * 16**3 / BLOCK_S)] * 4
    assert products.loc["fp64", "working_set_bytes"] == 3 * 16 * 16 * 8
    memory = table[table["roof"] == "memory"]
    assert memory["working_set_bytes"].tolist() == list(WORKING_SETS)
    assert memory["value"].tolist() == pytest.approx([size / BLOCK_S for size in WORKING_SETS])
    launch = table[table["roof"] == "launch"]
    assert launch["value"].tolist() == [pytest.approx(BLOCK_S / roofs.LAUNCHES)]
    assert table["value"].between(table["lowest"], table["highest"]).all()
    assert {"framework", "interpreter"} <= set(table["roof"]) <= set(ROOF_KINDS)


def test_no_larger_products_than_fit_into_memory_are_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "MOST_BYTES", 3 * 8 * 8 * 8)
    table = probed(monkeypatch)
    products = table[table["roof"] == "matmul"].set_index("precision")["working_set_bytes"]
    half = 3 * 16 * 16 * 2
    assert products.to_dict() == {"fp32": 3 * 8 * 8 * 4, "fp64": 3 * 8 * 8 * 8, "bf16": half, "fp16": half}


MIB = 2**20


@pytest.mark.parametrize(
    ("cache_mib", "free_mib", "mib"),
    [
        (None, 10**6, []),  # unknown
        (1152, 10**6, [1024, 2304]),  # a server whose cache is larger than all default working sets
        (1152, 16_000, [1024, 2000]),
        (1152, 1000, []),
    ],
)
def test_working_sets_of_a_cpu_exceed_its_caches_within_free_memory(
    cache_mib: int | None, free_mib: int, mib: list[int]
) -> None:
    working_sets = roofs.host_working_sets(cache_mib and cache_mib * MIB, free_mib * MIB)
    assert [size / MIB for size in working_sets] == [1, 4, 16, 64, 256, *mib]


def test_no_larger_working_set_is_probed_once_a_pass_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    table = probed(monkeypatch, longest_step_s=0.9)
    assert table.loc[table["roof"] == "memory", "working_set_bytes"].tolist() == [2**12]


def test_the_roofs_of_a_device_are_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    monkeypatch.setattr(roofs, "BLOCK_S", 1e-6)
    monkeypatch.setattr(probe_roofs, "run_supervised", in_this_process)
    file = tmp_path / "cpu.json"
    job = json.dumps({"cell": {"machine": "laptop"}, "precisions": ["fp32", "fp64"]})
    probe_roofs.main([job, "--device=cpu", f"--output={file}", "--cpu-threads=1"])
    table = read_roofs([file])
    assert set(table["machine"]) == {"laptop"}
    assert table["value"].gt(0).all()
    measured = Roofs.of(table)
    assert measured.working_sets == list(map(float, WORKING_SETS))
    assert set(measured.peaks) == {"fp32", "fp64"}
    assert pd.isna(measured.graph_launch_s)


def roof(name: str, value: float, unit: str, **columns: Any) -> dict[str, Any]:
    return {"roof": name, "value": value, "lowest": value / 2, "highest": value * 2, "unit": unit, **columns}


def test_a_roof_is_the_best_value_of_all_attempts_which_end_once_nothing_disturbs() -> None:
    def rows(rate: float, launch_s: float) -> list[dict[str, Any]]:
        sizes = [roof("memory", rate * size, "B/s", working_set_bytes=size) for size in (4, 8)]
        return [*sizes, roof("matmul", rate, "FLOP/s", precision="fp32"), roof("launch", launch_s, "s")]

    attempts = [
        (rows(3.0, 9.0), "busy_host"),
        (rows(5.0, 7.0), "steal"),
        (rows(4.0, 6.0), None),
        (rows(99.0, 1.0), None),
    ]
    for used, disturbed in ((3, None), (2, "steal")):
        left = iter(attempts[:used] if disturbed is None else [attempts[1]] * 3)
        best = roofs.best_roofs(left.__next__)
        assert [row["value"] for row in best] == [20.0, 40.0, 5.0, 6.0 if used == 3 else 7.0]
        assert {row["disturbed"] for row in best} == {disturbed}
        assert next(left, None) is None
    (launch,) = [row for row in roofs.best_roofs(iter(attempts).__next__) if row["roof"] == "launch"]
    assert (launch["lowest"], launch["highest"]) == (3.0, 18.0)


def test_a_probe_is_disturbed_by_what_disturbs_a_trial() -> None:
    quiet = {"device": "cpu", "threads": 2, "affinity_cores": 2, "logical_cpus": 2, "timed_s": 10.0}
    assert roofs.disturbances(quiet | {"others_cpus": 0.1, "steal_share": 0.01}) is None
    assert roofs.disturbances(quiet | {"others_cpus": 1.0, "steal_share": 0.2}) == "busy_host, steal"
    foreign = roofs.disturbances({"device": "cuda", "timed_s": 10.0, "foreign_gpu_share": 0.5})
    assert (foreign or "").startswith("other processes used 50% of the GPU")


def test_the_next_run_probes_disturbed_roofs_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless nothing is to be repeated. A machine may always be busy."""
    path = tmp_path / "roofs" / "cpu.json"
    planned = Key.of({})

    def reasons(disturbed: str | None, repeats: int = 1) -> list[str]:
        """Why roofs are probed again after a probe."""
        rows = [roof("launch", 1.0, "s", disturbed=disturbed)]
        outcome = Outcome("ok", None, written=False, facts={}, result={"rows": rows})
        monkeypatch.setattr(probe_roofs, "run_supervised", lambda _: outcome)
        job = json.dumps({"plan_key": planned.key})
        probe_roofs.main([job, "--device=cpu", f"--output={path}", "--cpu-threads=1"])
        return outdated_results(tmp_path, lambda *_: planned, lambda _: 1.0, repeats).get(str(path), [])

    again = ["the peak rates of cpu were measured while other work or heat disturbed them; one more try"]
    assert [reasons(each) for each in (None, "busy_host", "steal")] == [[], again, []]
    assert [reasons(each) for each in ("steal", None)] == [again, []]
    assert reasons("steal", repeats=0) == []
