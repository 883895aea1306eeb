"""Trials of a server measure the current code, whatever earlier trials have imported."""

from __future__ import annotations

import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from planting import plant
from trials import CELL, read_row, run_script, trial_options, write_points

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("own_servers"),
    pytest.mark.skipif(sys.platform != "linux", reason="the trial server needs Linux"),
]

POISON = """
import os, random, threading
import numpy as np
import helper

threading.Thread(target=threading.Event().wait, daemon=True).start()
os.environ["LEFT_BEHIND"] = "by " + os.environ["READ_AT_IMPORT"]
"""

MODEL = "    return nn.Linear(2, 2)"
POISONED_MODEL = """
    return nn.Sequential(nn.Linear(2, helper.WIDTH), nn.Linear(helper.WIDTH, int(os.environ["READ_AT_IMPORT"])))"""

BUILT = "def build(cell, data, arithmetic):\n"
CHECKED = (
    BUILT
    + """    drawn = float(os.environ["DRAWN"]), float(os.environ["DRAWN_BY_NUMPY"])
    assert (random.random(), np.random.rand()) == drawn
"""
)


class Bench:
    """A copy of the scripts with a workload that changes its process in many ways, and imports a helper."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = plant(folder)
        self.measurement = folder / "scripts" / "crossover" / "measurement"
        workload = self.measurement / "workloads" / "planted.py"
        text = workload.read_text().replace(MODEL, POISONED_MODEL).replace(BUILT, CHECKED)
        workload.write_text(POISON + text)
        write_points(folder / "points.safetensors")
        (folder / "elsewhere").mkdir()
        self.widen(3)

    def widen(self, width: int) -> None:
        """Edit the helper, which is outside of the library."""
        (self.folder / "elsewhere" / "helper.py").write_text(f"WIDTH = {width}\n")

    def measure(self, number: int, outputs: int) -> tuple[dict[str, Any], str]:
        """Measure a model with this number of outputs; returns the trial's row and the output."""
        seed = number + 7  # seed and trial
        output = self.folder / f"{number}.parquet"
        shared = trial_options(
            replace(CELL, workload="planted", batch_size=10, size=1),
            seed=7,
            cpu_threads=1,
            time_limit_s=60,
            isolation="server",
        )
        done = run_script(
            [*shared, f"--trial={number}", f"--dataset={self.folder / 'points.safetensors'}", f"--output={output}"],
            script=self.script,
            PYTHONPATH=str(self.folder / "elsewhere"),
            READ_AT_IMPORT=str(outputs),
            DRAWN=repr(random.Random(seed).random()),
            DRAWN_BY_NUMPY=repr(float(np.random.RandomState(seed).rand())),
        )
        assert done.returncode == 0, done.stderr
        return read_row(output), done.stderr


def servers() -> set[int]:
    sockets = os.environ["XDG_RUNTIME_DIR"]
    ours = [
        process.info
        for process in psutil.process_iter(["pid", "ppid", "status", "cmdline"])
        if any(sockets in part for part in process.info["cmdline"] or ())
    ]
    parents = {info["pid"]: info["ppid"] for info in ours if info["status"] != psutil.STATUS_ZOMBIE}
    return {pid for pid, parent in parents.items() if parent not in parents}


def test_a_workload_cannot_affect_trials_of_another_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first, _ = bench.measure(1, outputs=2)
    server = servers()
    assert len(server) == 1
    bench.widen(5)
    second, _ = bench.measure(2, outputs=4)
    assert [(row["status"], row["isolation"]) for row in (first, second)] == [("ok", "server")] * 2
    assert [row["parameters"] for row in (first, second)] == [2 * 3 + 3 + 3 * 2 + 2, 2 * 5 + 5 + 5 * 4 + 4]
    assert first["code_key"] != second["code_key"]
    assert first["packages"] == second["packages"]
    assert '"numpy"' in first["packages"]
    assert servers() == server

    # A file that the server has imported.
    tasks = bench.measurement / "step" / "tasks.py"
    tasks.write_text(tasks.read_text() + "HARMLESS = 1\n")
    third, said = bench.measure(3, outputs=4)
    assert "no trial server" not in said
    assert (third["status"], third["isolation"]) == ("ok", "process")
    assert third["code_key"] not in (first["code_key"], second["code_key"])
    fourth, _ = bench.measure(4, outputs=4)
    assert (fourth["isolation"], fourth["code_key"]) == ("server", third["code_key"])
    assert not servers() & server
