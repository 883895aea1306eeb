"""The workflow's refinement of crossovers, with a measuring script that makes its times up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from house import House

MEASURE = '''
"""Writes rows of a CPU whose step takes 1 us x size, and of a GPU and an XPU that take 100 and 300 us at any size."""

import json, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from crossover.records import COLUMNS, Measurement, arrow_schema

options = dict(part[2:].split("=", 1) for part in sys.argv[1:] if "=" in part)
cell = {key.replace("-", "_"): value for key, value in options.items() if key.replace("-", "_") in COLUMNS}
cell |= {key: int(cell[key]) for key in ("size", "batch_size", "trial", "seed")}
if (cell["size"], cell["device"]) == tuple(json.loads(Path("broken.json").read_text())):
    sys.exit("error: this cell is broken")
with open("order.txt", "a") as file:
    print(cell["size"], cell["device"], cell["trial"], file=file)
time_s = {"cpu": 1e-6 * cell["size"], "cuda": 1e-4, "xpu": 3e-4}[cell["device"]]
spread = float(Path("spread.txt").read_text())
plain = {"schema_version": Measurement.schema_version, "status": "ok", "flags": [], "size_name": "neurons", "parameters": cell["size"] ** 2,
         "step_time_s": time_s * (1 + spread * (cell["trial"] % 2 - 0.5)), "device_name": cell["device"],
         "hostname": "here", "command": " ".join(sys.argv)}
output = Path(options["output"])
output.parent.mkdir(parents=True, exist_ok=True)
pq.write_table(pa.Table.from_pylist([dict.fromkeys(COLUMNS) | plain | cell], schema=arrow_schema()), output)
'''


class MadeUp(House):
    """A copy of the workflow with made-up measurements: of a CPU and a GPU that take the same time at size 100."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        (path / "scripts" / "measure_cell.py").write_text(MEASURE)
        self.edit("studies/linear_stack", sizes=[50, 400], precisions=["fp32"], figures=["times"], claims=[])
        self.edit("studies/linear_stack", published=None)
        self.config(studies=["linear_stack"], trials=2, devices=["cpu", "cuda"], check_devices=False)
        self.config(refinement={"bisections": 2, "extra_trials": 1, "target_width": 0.1})
        self.spread(0.2)
        self.broken(0, "")

    def spread(self, share: float) -> None:
        """How far odd and even trials are apart."""
        (self.path / "spread.txt").write_text(str(share))

    def broken(self, size: int, device: str) -> None:
        """The cell whose trials fail."""
        (self.path / "broken.json").write_text(json.dumps([size, device]))

    def measured(self) -> list[tuple[int, str, int]]:
        """Size, device and trial of what was measured since the last time, in the order of it."""
        path = self.path / "order.txt"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        path.unlink(missing_ok=True)
        return [(int(size), device, int(trial)) for size, device, trial in map(str.split, lines)]

    def collect(self, *arguments: str) -> None:
        done = self.snakemake("--cores", "2", "collect_measurements", *arguments)
        assert done.returncode == 0, done.stderr

    def plan(self, stage: int) -> dict[str, Any]:
        return json.loads((self.path / f"results/refinement/stage-{stage}.json").read_text())

    def rows(self) -> pd.DataFrame:
        return pd.read_parquet(self.path / "results" / "measurements.parquet")
