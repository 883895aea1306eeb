from __future__ import annotations

import pytest

from crossover.config.studies import CELL_PATH, Cell
from crossover.errors import UserError
from crossover.plan.hardware import (
    check_classes,
    check_sent,
    cores_of,
    devices_of,
    on_classes,
    placed,
    resource_of,
    resources_asked,
)

CLASSES = {
    "a100": {"slurm_partition": "gpu-a", "gpu_model": "a100", "cores": 64},
    "h200": {"slurm_partition": "gpu-h", "devices": ["cuda"]},
}
CELLS = [Cell("s", "disc_mlp", "resident", 1, "fp32", "eager", 2, device) for device in ("cpu", "cpu-half", "cuda")]


def test_every_cell_is_on_each_class_that_has_its_device() -> None:
    found = [(cell.machine, cell.device) for cell in on_classes(CELLS, CLASSES, ("cpu", "cuda"))]
    assert found == [("a100", "cpu"), ("a100", "cpu-half"), ("a100", "cuda"), ("h200", "cuda")]
    assert on_classes(CELLS, None, ("cpu",)) == CELLS


def test_the_devices_of_a_run_are_those_of_its_classes() -> None:
    assert devices_of(CLASSES, ("cpu",)) == ("cpu", "cuda")
    assert devices_of({"h200": {"devices": ["cuda"]}}, ("cpu",)) == ("cuda",)
    assert devices_of(None, ("cpu", "mps")) == ("cpu", "mps")


def test_a_path_has_a_level_for_its_class_only_where_classes_are_named() -> None:
    assert placed(CELL_PATH, None) == CELL_PATH
    (cell, *_) = on_classes(CELLS, CLASSES, ("cpu",))
    assert placed(CELL_PATH, CLASSES).format(**vars(cell)) == cell.path
    assert cell.path.endswith("/size-2/a100/cpu")


def test_a_class_sets_the_resources_of_its_jobs() -> None:
    assert resources_asked(CLASSES) == ["gpu_model", "slurm_partition"]
    assert resource_of(CLASSES, "slurm_partition", "h200", "cpu") == "gpu-h"
    assert resource_of(CLASSES, "gpu_model", "a100", "cuda") == "a100"
    assert resource_of(CLASSES, "gpu_model", "h200", "cuda") is None
    assert resource_of(CLASSES, "gpu_model", "a100", "cpu-half") is None
    assert (cores_of(CLASSES, "a100"), cores_of(CLASSES, "h200"), cores_of(None, "here")) == (64, None, None)


def test_a_class_that_cannot_be_measured_stops_the_run() -> None:
    with pytest.raises(UserError, match=r"^hardware\.a100\.devices: missing, and devices is auto"):
        check_classes(CLASSES, None)
    with pytest.raises(UserError, match=r"^hardware\.b\.slurm_partition: missing, but another class has it"):
        check_classes({**CLASSES, "b": {}}, ("cpu",))
    with pytest.raises(UserError, match=r"^hardware\.here: the name stands for a run without classes"):
        check_classes({"here": {}}, ("cpu",))
    check_classes(CLASSES, ("cpu",))
    check_classes(None, None)


def test_classes_need_an_executor_that_sends_jobs_to_them() -> None:
    with pytest.raises(
        UserError, match=r"^hardware: a100, h200 are classes of a cluster's nodes, but the jobs would run"
    ):
        check_sent(CLASSES, local=True)
    check_sent(CLASSES, local=False)
    check_sent(None, local=True)
