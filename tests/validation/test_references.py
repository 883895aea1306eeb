"""Leave-one-machine-out predictions of crossovers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import check_references
import pandas as pd
import pytest
from check_references import predictions, speedups

from crossover.errors import UserError
from crossover.tables.columns import COLUMNS
from crossover.tables.reference_files import Reference, write_reference

Row = Callable[..., dict[str, Any]]
FACTS = {"cpu_model": "Xeon", "physical_cores": 16, "torch_version": "2", "python_version": "3", "model_key": "key"}
FACTS |= {"operating_system": "Linux", "code_version": "abc"}


@pytest.fixture
def machine(row: Row, tmp_path: Path) -> Callable[..., Reference]:
    """A machine whose CPU takes 4 us x size and whose GPU takes 2 ms, each multiplied by a factor."""

    def build(name: str, cpu: float = 1, gpu: float = 1, sizes: tuple[int, ...] = (100, 300, 1000, 3000)) -> Reference:
        times = {"cpu": lambda size: 4e-6 * size * cpu, "cuda": lambda _: 2e-3 * gpu}
        rows = [
            row(device=device, size=size, trial=trial, step_time_s=time(size) * 1.01 ** (trial - 2), **FACTS)
            | {"device_name": device, "started_at": "2026-11-23T10:00:00Z"}
            for device, time in times.items()
            for size in sizes
            for trial in (1, 2, 3)
        ]
        measurements = pd.DataFrame(rows).reindex(columns=list(COLUMNS))
        return write_reference(measurements, name, None, tmp_path / name)

    return build


@pytest.mark.parametrize(("cpu", "gpu", "holds"), [(2, 2, True), (2, 1, True), (1, 4, False)])
def test_a_prediction_holds_if_the_gpus_are_equally_fast(machine: Any, cpu: float, gpu: float, holds: bool) -> None:
    table = predictions([machine("a"), machine("b", cpu, gpu)])
    assert list(zip(table["gpu_of"], table["cpu_of"], strict=True)) == [("a", "b"), ("b", "a")]
    assert table["measured"].tolist() == pytest.approx([500 * gpu / cpu, 500], rel=0.01)
    assert table["holds"].tolist() == [holds, holds]


@pytest.mark.parametrize(("gpu", "holds"), [(2, True), (8, False)])
def test_a_predicted_speedup_is_compared_with_that_measured_there(machine: Any, gpu: float, holds: bool) -> None:
    table = speedups([machine("a"), machine("b", 2, gpu)])
    assert table.groupby("machine").size().to_dict() == {"a": 4, "b": 4}
    of_a = table[table["machine"] == "a"]  # beside the CPU of `b`
    assert of_a["measured"].tolist() == pytest.approx([size * 4e-6 / 2e-3 * 2 / gpu for size in of_a["size"]])
    assert of_a["holds"].tolist() == [holds] * 4


def test_a_gpu_that_is_faster_at_all_sizes_is_predicted(machine: Any) -> None:
    table = predictions([machine("a", gpu=0.01), machine("b", gpu=0.01)])
    assert table[["measured", "predicted_low", "predicted_high"]].values.tolist() == [[0, 0, 0]] * 2
    assert table["holds"].tolist() == [True, True]


def test_predictions_are_compared_with_the_other_trials_of_the_cpu(machine: Any) -> None:
    """On the second machine, all but the first CPU trial take twice as long: the crossover is at 250, not at 500."""
    here = machine("b")
    is_later = (here.trials["device"] == "cpu") & (here.trials["trial"] > 1)
    slower = here.trials["step_time_s"].where(~is_later, 2 * here.trials["step_time_s"])
    table = predictions([machine("a"), replace(here, trials=here.trials.assign(step_time_s=slower))], cpu_trials=1)
    to_b = table[table["cpu_of"] == "b"]
    assert to_b["measured"].tolist() == pytest.approx([250], rel=0.02)
    assert to_b["predicted"].tolist() == pytest.approx([500], rel=0.02)
    assert to_b["holds"].tolist() == [False]


def test_the_command_counts_predictions(machine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine("a"), machine("b")
    check_references.main([str(tmp_path / "a"), str(tmp_path / "b")])
    counts = "2 of 2 predictions hold, 0 have an open end; no prediction for 0 more series; median of high over low: "
    *_, last, of_speedups = capsys.readouterr().out.splitlines()
    assert last.startswith(counts)
    assert 1 < float(last.removeprefix(counts)) < 2
    assert of_speedups.startswith("8 of 8 predicted speed-ups hold, from all trials; median of high over low: ")
    with pytest.raises(UserError, match="name two or more with the same study"):
        check_references.main([str(tmp_path / "a")])
