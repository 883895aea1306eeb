from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crossover.measurement.host.energy import (
    RaplCounter,
    energy_columns,
    package_joules,
    read_gpu_energy_mj,
    read_rapl,
)
from crossover.tables.columns import COLUMNS


def test_energy_of_a_step() -> None:
    columns = energy_columns(3000.0, "NVML", 10.0, 600, shared=False)
    assert columns == {"energy_j": 3000.0, "energy_per_step_j": 5.0, "energy_source": "NVML"}
    assert columns.keys() <= set(COLUMNS)


@pytest.mark.parametrize(
    ("used_j", "window_s", "steps", "shared"),
    [
        (3000.0, 9.99, 600, False),
        (3000.0, 10.0, 600, True),
        (None, 10.0, 600, False),
        (-1.0, 10.0, 600, False),  # the driver was loaded anew
        (3000.0, 10.0, 0, False),
    ],
)
def test_what_cannot_be_known_is_not_guessed(used_j: float | None, window_s: float, steps: int, shared: bool) -> None:
    assert set(energy_columns(used_j, "NVML", window_s, steps, shared).values()) == {None}


def test_the_counter_of_a_whole_gpu_is_read(fake_nvml: Callable[..., Any]) -> None:
    instance = {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle": "GPU-1", "nvmlDeviceGetTotalEnergyConsumption": 9}
    nvml = fake_nvml({"GPU-1": {"nvmlDeviceGetTotalEnergyConsumption": 77}, "GPU-2": {}, "MIG-3": instance})
    found = [read_gpu_energy_mj(uuid, nvml) for uuid in ("GPU-1", "GPU-2", "MIG-3", "GPU-4", None)]
    assert found == [77, None, None, None, None]
    assert nvml.opened == 0


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two packages, one with a domain inside, the platform, and the second interface to the first package."""
    domains = {
        "intel-rapl:0": "package-0",
        "intel-rapl:0:0": "core",
        "intel-rapl:1": "package-1",
        "intel-rapl:2": "psys",
        "intel-rapl-mmio:0": "package-0",
    }
    for number, (folder, name) in enumerate(domains.items()):
        path = tmp_path / "sys/class/powercap" / folder
        path.mkdir(parents=True)
        (path / "name").write_text(f"{name}\n")
        (path / "energy_uj").write_text(f"{number + 1}000\n")
        (path / "max_energy_range_uj").write_text("262143328850\n")
    return tmp_path


def test_each_package_counts_once(machine: Path) -> None:
    assert read_rapl(machine) == {
        "package-0": RaplCounter(1000, 262143328850),
        "package-1": RaplCounter(3000, 262143328850),
    }


def test_without_every_package_there_are_no_counters(machine: Path) -> None:
    assert read_rapl(machine / "elsewhere") is None
    (machine / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert read_rapl(machine) is None


RANGE_UJ = 30_000 * 10**6 - 1


def packages(*energies_j: float) -> dict[str, RaplCounter]:
    return {f"package-{n}": RaplCounter(int(energy * 10**6), RANGE_UJ) for n, energy in enumerate(energies_j)}


def test_packages_are_added_and_a_counter_that_started_again_is_carried_on() -> None:
    """100 J of the first; the second ran from 29 000 J over 30 000 J to 500 J: 1500 J."""
    assert package_joules(packages(50, 29_000), packages(150, 500), 20.0) == pytest.approx(1600)


@pytest.mark.parametrize(
    ("before", "after", "window_s", "joules"),
    [
        (None, packages(1), 20.0, None),
        (packages(1), None, 20.0, None),
        (packages(1), packages(2, 3), 20.0, None),
        (packages(1), packages(2), 31.0, None),  # at 1000 W, 30 000 J pass in 30 s
        (packages(1), packages(2), 29.0, pytest.approx(1)),
    ],
)
def test_energy_of_packages_is_not_guessed_either(
    before: dict[str, RaplCounter] | None, after: dict[str, RaplCounter] | None, window_s: float, joules: float | None
) -> None:
    assert package_joules(before, after, window_s) == joules
