"""The workflow's refinement of crossovers, with a measuring script that returns prepared rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crossover.config.studies import Cell, Refinement
from crossover.machine.code_key import code_of
from crossover.tables.columns import Measurement, arrow_schema
from crossover.tables.frames import write_rows
from plan_refinement import plan_refinement
from report_pages import study
from workflow_copy import WorkflowCopy

NO_KEY = "0" * 32
MEASURE = f"""
import json
import sys
from pathlib import Path

job = json.loads(sys.argv[1])
options = {{**job["cell"], **dict(part[2:].split("=", 1) for part in sys.argv[2:])}}
with open("measured.txt", "a") as file:
    print(options["size"], options["device"], options["trial"], file=file)
row = Path("made", "{{size}}-{{device}}-{{precision}}-{{trial}}.parquet".format(**options))
if not row.exists():
    sys.exit("error: this trial fails")
Path(options["output"]).write_bytes(row.read_bytes().replace(b"{NO_KEY}", job["plan_key"].encode()))
"""

Row = Callable[..., dict[str, Any]]
Trial = tuple[int, str, int]
"""Size, device and number."""
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = "results/measurements.parquet"


class MadeUp(WorkflowCopy):
    """A workflow with prepared rows: CPU and GPU take the same time at size 100, trials are 2 % apart.

    A trial takes 10 s, and each starts when the one before it ends, by size, device and number.
    """

    def __init__(self, path: Path, row: Row) -> None:
        super().__init__(path)
        (path / "scripts" / "measure_cell.py").write_text(MEASURE)
        self.start_no_server()
        (path / "made").mkdir()
        axes = {"precisions": ["fp32"], "sizes": [50, 400], "batch_sizes": [100]}
        self.edit("studies/linear_stack", **axes, figures=["times"], claims=[], asks=None, published=None)
        self.config(studies=["linear_stack"], trials=2, devices=["cpu", "cuda"], cluster={"check_devices": False})
        refinement = {"bisections": 1, "extra_trials": 1, "target_width": 0.02}
        self.config(effort={"refinement": refinement})
        for size, device in product((50, 400, 141, 77, 120), ("cpu", "cuda")):
            self.make(row, {"cpu": 1e-6 * size, "cuda": 1e-4}[device], size=size, device=device)
        self.put((50, 400))

    def make(self, row: Row, time_s: float, **names: Any) -> None:
        for trial in (1, 2, 3):
            began = BEGAN + timedelta(seconds=10 * len(list((self.path / "made").iterdir())))
            values = row(
                **{"study": "linear_stack", "workload": "linear_stack", **names},
                trial=trial,
                started_at=began.isoformat(),
                spent_s='{"warm-up and timing": 10}',
                step_time_s=time_s * (1.02 if trial == 2 else 1),
                schema_version=Measurement.schema_version,
                code_key=code_of("trial", "linear_stack").key,
                plan_key=NO_KEY,
            )
            table = pa.Table.from_pylist([values], schema=arrow_schema())
            name = "{size}-{device}-{precision}-{trial}".format(**values)
            # Uncompressed, so that MEASURE can replace the key without importing Arrow.
            pq.write_table(table, self.path / "made" / f"{name}.parquet", compression="none")

    def put(self, sizes: Sequence[int]) -> None:
        """Measure two trials of each size, and forget that they were measured."""
        cells = [
            Cell("linear_stack", "linear_stack", "resident", 100, "fp32", "eager", size, device)
            for size, device in product(sizes, ("cpu", "cuda"))
        ]
        self.run(*(f"results/cells/{cell.path}/trial-{trial}.parquet" for cell in cells for trial in (1, 2)))
        (self.path / "measured.txt").unlink()

    def refine(self, *arguments: str) -> int:
        """Measure everything; returns Snakemake's exit status."""
        return self.snakemake(TARGET, *arguments).returncode

    def measured(self) -> list[Trial]:
        """The trials measured since the last call, in order."""
        path = self.path / "measured.txt"
        lines = [line.split() for line in path.read_text().splitlines()]
        path.unlink()
        return [(int(size), device, int(trial)) for size, device, trial in lines]

    def plans(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted((self.path / "results/refinement").iterdir())]

    def trials(self) -> dict[tuple[int, str], int]:
        table = pd.read_parquet(self.path / TARGET)
        return dict(table.groupby(["size", "device"]).size())


@pytest.fixture(scope="module")
def first_grid(tmp_path_factory: pytest.TempPathFactory, row: Row) -> MadeUp:
    return MadeUp(tmp_path_factory.mktemp("first") / "workflow", row)


@pytest.fixture
def workflow(first_grid: MadeUp, tmp_path: Path) -> MadeUp:
    return MadeUp.copy_of(first_grid, tmp_path / "workflow")


def on_both(size: int, *trials: int) -> set[Trial]:
    return set(product((size,), ("cpu", "cuda"), trials))


def decisions(workflow: MadeUp) -> list[str]:
    return [why["decision"] for plan in workflow.plans() for why in plan["why"]]


@pytest.mark.slow
def test_the_bracket_is_refined_and_a_failed_trial_is_measured_by_the_next_run(workflow: MadeUp) -> None:
    """sqrt(50 x 400) is 141.4; then 50 and 141 bracket the crossover, whose interval is still ±3 %."""
    jobs = workflow.would_run(TARGET)
    assert (jobs["plan_refinement"], jobs["measure_cell"], jobs["collect_measurements"]) == (1, 0, 1)
    lost = workflow.path / "made" / "141-cuda-fp32-2.parquet"
    kept = lost.rename(lost.with_suffix(".kept"))
    assert workflow.refine() != 0
    first = workflow.measured()
    assert set(first) == on_both(141, 1, 2)
    assert [trial for _, _, trial in first] == [1, 1, 2, 2]
    assert len(workflow.plans()) == 1

    kept.rename(lost)
    assert workflow.refine() == 0
    again = workflow.measured()
    assert again[0] == (141, "cuda", 2)
    assert set(again[1:]) == on_both(50, 3) | on_both(141, 3)
    assert decisions(workflow) == ["bisect", "add_trials"]
    assert [plan["why"][0]["bracket"] for plan in workflow.plans()] == [[50, 400], [50, 141]]
    assert all(plan["why"][0]["crossover"] == pytest.approx(100) for plan in workflow.plans())
    counts = {50: 3, 141: 3, 400: 2}
    assert workflow.trials() == {(size, device): counts[size] for size in counts for device in ("cpu", "cuda")}
    assert workflow.would_run(TARGET) == Counter()

    # One more trial of each cell; those of size 50 had been measured already.
    jobs = workflow.would_run(TARGET, "--config", "trials=3")
    assert (jobs["plan_refinement"], jobs["linear_stack 3"], jobs["measure_cell"]) == (1, 2, 2)

    # Another size makes another plan: sqrt(50 x 120) is 77.5. Rows added by the old plan stay, but are not used.
    workflow.edit("studies/linear_stack", sizes=[50, 120, 400])
    workflow.put((77,))
    assert workflow.refine("--config", "effort={refinement: {bisections: 1, extra_trials: 0}}") == 0
    assert set(workflow.measured()) == on_both(120, 1, 2)
    assert sorted(size for size, device in workflow.trials() if device == "cpu") == [50, 77, 120, 400]
    assert len(list((workflow.path / "results/cells").rglob("size-141/*/*.parquet"))) == 6


@pytest.mark.slow
def test_a_run_with_minutes_ends_in_time_and_goes_on_with_more(workflow: MadeUp) -> None:
    """The first grid takes 110 s with its gaps, a further trial 20 s, and 45 s are kept for the report.

    Of 4 min, 85 s are left, in which the four trials of a new size fit. These take 60 s more, and the next stage needs
    80 s, which it gets of 6 min.
    """
    refinement = {"bisections": 1, "extra_trials": 1, "target_width": 0.02, "doublings": 0}
    workflow.config(effort={"refinement": refinement}, repeat_disturbed=1)
    output = workflow.run(TARGET, "--config", "minutes=4")
    assert "Budget: 4 min" in output
    assert "by earlier rows, the first grid takes 1.8 min, which leaves about 1.4 min for refinement" in output
    assert "Refinement adds 4 trials. They take about 1.3 of the 1.4 min left." in output
    assert "No time is left for more trials." in output
    assert set(workflow.measured()) == on_both(141, 1, 2)
    assert [plan["is_last"] for plan in workflow.plans()] == [False, True]
    assert workflow.would_run(TARGET, "--config", "minutes=4") == Counter()

    output = workflow.run(TARGET, "--config", "minutes=6")
    assert "Refinement adds 4 trials. They take about 1.3 of the 2.4 min left; expected: ±" in output
    assert set(workflow.measured()) == on_both(50, 3) | on_both(141, 3)
    assert decisions(workflow) == ["bisect", "add_trials"]


def test_refinement_compares_with_the_first_value_that_the_study_lists(row: Row, tmp_path: Path) -> None:
    """Rows of files are in alphabetical order."""
    variants = ("torch", "numpy", "jax")
    paths = []
    for number, (variant, size) in enumerate(product(variants, (100, 400))):
        paths.append(tmp_path / f"{number}.parquet")
        values = row(study="mine", variant=variant, size=size, device="cpu", schema_version=Measurement.schema_version)
        write_rows(pa.Table.from_pylist([values], schema=arrow_schema()), paths[-1])
    plan_refinement(
        paths_to_rows=paths,
        stage=1,
        refinements={"mine": Refinement(pairs=("variant",))},
        studies={"mine": study(name="mine", variants=variants)},
        trials={"mine": 3},
        several_hosts=False,
        minutes=None,
        repeats=0,
        folders_of_references=[],
        path_to_plan=tmp_path / "plan.json",
    )
    why = json.loads((tmp_path / "plan.json").read_text())["why"]
    assert [(pair["baseline"], pair["contender"]) for pair in why] == [("torch", "numpy"), ("torch", "jax")]
