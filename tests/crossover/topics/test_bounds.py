"""Roofs of cells, with simple numbers."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from crossover.measurement.framework import _training_step
from crossover.measurement.step.devices import open_device
from crossover.measurement.step.operators import OperatorWork
from crossover.tables.registry import CELL_AXES
from crossover.tables.roof_files import Roofs
from crossover.tables.run_tables import table_of
from crossover.topics.bottlenecks.bounds import FRAMEWORK_OPERATORS, compute_roof_s, memory_roof_s, with_roofs

ROOFS = Roofs({"fp32": 1e12, "bf16": 8e12}, [2.0**20, 2.0**30], [4e12, 1e12], 1e-6, 2e-7)


def test_bytes_move_at_the_bandwidth_of_their_working_set() -> None:
    """Halfway between two working sets on the log scale, the bandwidth is the geometric mean of theirs."""
    small, large = [0.0] * 40, [0.0] * 40
    small[3], large[35] = 4e6, 1e9
    assert memory_roof_s(small, ROOFS) == pytest.approx(4e6 / 4e12)
    assert memory_roof_s(large, ROOFS) == pytest.approx(1e9 / 1e12)
    between = [0.0] * 40
    between[24], between[25] = 1e6, 1e6  # around 2^25
    assert memory_roof_s(between, ROOFS) == pytest.approx(1e6 / 2e12 * (4**0.05 + 4**-0.05), rel=1e-6)
    assert math.isnan(memory_roof_s(None, ROOFS))


@pytest.mark.parametrize(
    ("precision", "seconds"), [("fp32", 8.0), ("bf16", 1.0), ("amp-bf16", 1.0), ("fp64", math.nan)]
)
def test_operations_run_at_the_peak_of_their_precision(precision: str, seconds: float) -> None:
    assert compute_roof_s(8e12, precision, ROOFS) == pytest.approx(seconds, nan_ok=True)


def row(**more: Any) -> dict[str, Any]:
    texts = dict.fromkeys(CELL_AXES, "a")
    return texts | {"size": 1, "batch_size": 1, "device": "cuda", "precision": "fp32", "execution": "eager"} | more


def test_a_cell_has_the_share_of_its_highest_roof() -> None:
    roofs = table_of(
        "roofs",
        [
            {"machine": "a", "device": "cuda", "roof": "matmul", "precision": "fp32", "value": 1e12},
            {"machine": "a", "device": "cuda", "roof": "memory", "working_set_bytes": 2**20, "value": 1e12},
            {"machine": "a", "device": "cuda", "roof": "graph_launch", "value": 1e-6},
        ],
    )
    moved = [0.0, 2e9, *[0.0] * 8]
    cells = [row(execution=execution, device=device) for execution, device in KINDS]
    work = {"products_bytes_by_working_set": [0.0] * 10, "others_bytes_by_working_set": moved, "kernels_per_step": 10.0}
    measurements = pd.DataFrame([cell | work | {"status": "ok"} for cell in cells])
    times = {
        "flag_names": [],
        "step_time_s": 0.004,
        "step_time_low_s": 0.002,
        "step_time_high_s": 0.008,
        "flops_per_step": 1e9,
    }
    cells_with_roofs = with_roofs(table_of("cells", [cell | times for cell in cells]), measurements, roofs)
    assert cells_with_roofs["memory_roof_s"].tolist() == [pytest.approx(0.002), pd.NA, pd.NA]
    assert cells_with_roofs["compute_roof_s"].tolist() == [*[pytest.approx(0.001)] * 2, pd.NA]
    assert cells_with_roofs["launch_roof_s"].tolist() == [*[pytest.approx(1e-5)] * 2, pd.NA]
    assert cells_with_roofs["roof_share"].tolist() == [pytest.approx(0.5), pytest.approx(0.25), pd.NA]
    assert cells_with_roofs.loc[0, ["roof_share_low", "roof_share_high"]].tolist() == pytest.approx([0.25, 1.0])
    assert cells_with_roofs["flag_names"].tolist() == [[], [], []]
    assert with_roofs(cells_with_roofs, measurements, table_of("roofs")).equals(cells_with_roofs)


@pytest.mark.parametrize(("step_s", "flags"), [(0.004, []), (0.001, ["above_roof"])])
def test_a_cell_whose_operations_are_not_counted_has_no_share_of_its_roof(step_s: float, flags: list[str]) -> None:
    """Its bytes alone take 2 ms: how far the step is from its highest roof is not known, only that it is not above."""
    roofs = table_of(
        "roofs", [{"machine": "a", "device": "cuda", "roof": "memory", "working_set_bytes": 2**20, "value": 1e12}]
    )
    moved = {"products_bytes_by_working_set": [0.0, 0.0], "others_bytes_by_working_set": [0.0, 2e9]}
    cell = row() | {"flops_per_step": None, "step_time_s": step_s, "flag_names": []}
    trial = row() | moved | {"kernels_per_step": 10.0, "status": "ok"}
    cells = with_roofs(table_of("cells", [cell]), pd.DataFrame([trial]), roofs)
    assert cells["memory_roof_s"].tolist() == [pytest.approx(0.002)]
    assert cells["roof_share"].isna().all()
    assert cells["flag_names"].tolist() == [flags]


def test_calling_the_operators_of_a_cpu_step_takes_a_time_in_proportion_to_the_roof_of_the_framework() -> None:
    """14 operators on 1 KiB and 20 on 64 B are as many as the framework's step has."""
    sizes = {"products": [0.0] * 11, "others": [0.0] * 11}
    sizes["products"][10], sizes["others"][6] = 14 * 2**10, 20 * 2**6
    cell = row(device="cpu")
    work = {f"{group}_bytes_by_working_set": moved for group, moved in sizes.items()} | {"kernels_per_step": None}
    roofs = table_of("roofs", [{"machine": "a", "device": "cpu", "roof": "framework", "value": 1e-4, "unit": "s"}])
    cells = table_of("cells", [cell | {"flag_names": []}])
    cells = with_roofs(cells, pd.DataFrame([cell | work | {"status": "ok"}]), roofs)
    assert cells["launch_roof_s"].tolist() == [pytest.approx(2e-4)]


def test_the_step_of_the_framework_probe_has_its_number_of_operators() -> None:
    with OperatorWork((), open_device("cpu")) as work:
        _training_step()()
    assert sum(map(len, work.marks.values())) == FRAMEWORK_OPERATORS


@pytest.mark.parametrize(
    ("times_s", "wrong"),
    [((1e-3, 0.5e-3, 0.9e-3), True), ((1e-3, 0.5e-3, 2.5e-3), False), ((1e-3,), True), ((1.9e-3,), False)],
)
def test_a_cell_above_its_roof_is_flagged(times_s: tuple[float, ...], wrong: bool) -> None:
    """The operations take at least 2 ms by the roof; the step takes less, significantly or not."""
    roofs = table_of(
        "roofs", [{"machine": "a", "device": "cuda", "roof": "matmul", "precision": "fp32", "value": 1e12}]
    )
    names = ("step_time_s", "step_time_low_s", "step_time_high_s")
    cell = row() | dict(zip(names, times_s, strict=False)) | {"flops_per_step": 2e9, "flag_names": ["drift"]}
    work = dict.fromkeys(("products_bytes_by_working_set", "others_bytes_by_working_set", "kernels_per_step"))
    cells_with_roofs = with_roofs(table_of("cells", [cell]), pd.DataFrame([row() | work | {"status": "ok"}]), roofs)
    assert cells_with_roofs["flag_names"].tolist() == [["drift", "above_roof"] if wrong else ["drift"]]


KINDS = (("eager", "cuda"), ("compile", "cuda"), ("eager", "cpu-1"))
"""A compiled step has no memory roof, and a CPU on fewer cores has no roofs."""
