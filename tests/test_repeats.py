"""Disturbed trials are measured again at the end of a run; the workflow runs with stand-in trials."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from workflow_copy import WorkflowCopy

pytestmark = pytest.mark.slow

TARGET = "results/measurements.parquet"
Trial = tuple[int, str, int, int]
"""Size, device, trial and repeat."""


@pytest.fixture
def workflow(tmp_path: Path) -> WorkflowCopy:
    workflow = WorkflowCopy(tmp_path / "workflow")
    workflow.pretend(devices=["cpu"], trials=2, repeat_disturbed=1)
    return workflow


def disturb(workflow: WorkflowCopy, *trials: Trial) -> None:
    (workflow.path / "disturbed").write_text("\n".join(" ".join(map(str, trial)) for trial in trials))


def measured(workflow: WorkflowCopy) -> list[Trial]:
    """The trials measured since the last call, in order."""
    notes = sorted(workflow.notes(), key=lambda note: note["began"])
    for path in (workflow.path / "notes").iterdir():
        path.unlink()
    return [(note["size"], note["device"], note["trial"], note["repeat"]) for note in notes]


def counting(workflow: WorkflowCopy) -> dict[tuple[int, int], tuple[int, float, bool]]:
    """The repeat that is used, its time in ms, and whether it is flagged, by size and trial."""
    table = pd.read_parquet(workflow.path / TARGET)
    return {
        (row["size"], row["trial"]): (row["repeat"], round(1e3 * row["step_time_s"]), len(row["flag_names"]) > 0)
        for _, row in table.iterrows()
    }


def test_disturbed_trials_are_repeated_last_and_the_less_disturbed_row_counts(
    workflow: WorkflowCopy,
) -> None:
    """Two trials were disturbed; the repeat of one is disturbed as well."""
    disturb(workflow, (2, "cpu", 1, 0), (3, "cpu", 2, 0), (3, "cpu", 2, 1))
    workflow.run(TARGET)
    trials = measured(workflow)
    assert len(trials) == 4 + 2
    assert set(trials[4:]) == {(2, "cpu", 1, 1), (3, "cpu", 2, 1)}
    assert counting(workflow) == {
        (2, 1): (1, 2, False),
        (2, 2): (0, 2, False),
        (3, 1): (0, 3, False),
        (3, 2): (0, 150, True),
    }
    replaced = list(workflow.results.rglob("size-2/cpu/trial-1*.parquet"))
    assert sorted(path.name for path in replaced) == ["trial-1-repeat-1.parquet", "trial-1.parquet"]
    assert workflow.would_run(TARGET) == Counter()

    # After an interruption only the missing row is measured; a further repeat measures the rest.
    next(workflow.results.rglob("size-2/cpu/trial-1-repeat-1.parquet")).unlink()
    (workflow.path / TARGET).unlink()
    workflow.run(TARGET)
    assert measured(workflow) == [(2, "cpu", 1, 1)]
    # The default target requests all rows; a single table is up to date unless it is deleted.
    (workflow.path / TARGET).unlink()
    workflow.run(TARGET, "--config", "repeat_disturbed=2")
    assert measured(workflow) == [(3, "cpu", 2, 2)]
    assert counting(workflow)[3, 2] == (2, 3, False)


@pytest.mark.parametrize(("helps", "repeats"), [(1, 3), (2, 6)])
def test_the_rest_is_repeated_only_if_that_helps_a_sample(workflow: WorkflowCopy, helps: int, repeats: int) -> None:
    """Of six disturbed trials, three are repeated first, and one or two of these are then undisturbed."""
    trials = [(size, trial) for size in (2, 3) for trial in (1, 2, 3)]
    sample = [trials[0], trials[2], trials[4]]
    first = [(size, "cpu", trial, 0) for size, trial in trials]
    disturb(workflow, *first, *((size, "cpu", trial, 1) for size, trial in sample[helps:]))
    output = workflow.run(TARGET, "--config", "trials=3")
    again = measured(workflow)[6:]
    assert {(size, trial) for size, _, trial, _ in again[:3]} == set(sample)
    assert len(again) == repeats
    assert ("Repeats did not help: 2 of 3 were disturbed again." in output) is (helps == 1)
    assert workflow.would_run(TARGET, "--config", "trials=3") == Counter()


@pytest.mark.parametrize("extra_trials", [0, 4])
def test_crossovers_that_repeats_change_are_refined_after_them(workflow: WorkflowCopy, extra_trials: int) -> None:
    """With disturbed trials, the GPU seems to be far ahead; without, it takes the same time as the CPU."""
    workflow.config(devices=["cpu", "cuda"], cluster={"check_devices": False}, trials=3)
    workflow.edit("studies/disc_depth", refinement={"bisections": 0, "first_trials": 1, "extra_trials": extra_trials})
    disturb(workflow, (2, "cpu", 1, 0), (3, "cpu", 1, 0))
    workflow.run(TARGET)
    trials = measured(workflow)
    assert {trial for _, _, trial, _ in trials[:4]} == {1}
    assert {*trials[4:6]} == {(2, "cpu", 1, 1), (3, "cpu", 1, 1)}
    assert sorted(trials[6:]) == [(size, device, n, 0) for size in (2, 3) for device in ("cpu", "cuda") for n in (2, 3)]
    assert workflow.would_run(TARGET) == Counter()
    assert len(pd.read_parquet(workflow.path / TARGET)) == 12
