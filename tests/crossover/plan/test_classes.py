from __future__ import annotations

import pytest

from crossover.config.studies import Cell
from crossover.plan.classes import (
    cpu_partition,
    devices_of,
    on_classes,
)

CLASSES = {
    "a100": {"slurm_partition": "gpu-a", "gpu_model": "a100", "cores": 64},
    "h200": {"slurm_partition": "gpu-h", "devices": ["cuda"]},
}
CELLS = [Cell("s", "disc_mlp", "resident", 1, "fp32", "eager", 2, device) for device in ("cpu", "cpu-half", "cuda")]


def test_every_cell_is_on_each_class_that_has_its_device() -> None:
    found = [(cell.machine, cell.device) for cell in on_classes(iter(CELLS), CLASSES, ("cpu", "cuda"))]
    assert found == [("a100", "cpu"), ("a100", "cpu-half"), ("a100", "cuda"), ("h200", "cuda")]
    assert on_classes(CELLS, None, ("cpu",)) == CELLS


def test_the_devices_of_a_run_are_those_of_its_classes() -> None:
    assert devices_of(CLASSES, ("cpu",)) == ("cpu", "cuda")
    assert devices_of({"h200": {"devices": ["cuda"]}}, ("cpu",)) == ("cuda",)
    assert devices_of(None, ("cpu", "mps")) == ("cpu", "mps")


@pytest.mark.parametrize(
    ("text", "partition"),
    [
        (None, None),
        ("cpu", "cpu"),
        ("'small' if wildcards.get('device', 'cpu').startswith('cpu') else 'gpu'", "small"),
        ("'small' if wildcards.device == 'cpu' else 'gpu'", "small"),
        ("wildcards.size", "wildcards.size"),
    ],
)
def test_the_partition_of_cpu_cells_is_read_from_a_name_or_an_expression(text: str | None, partition: str) -> None:
    assert cpu_partition(text) == partition
