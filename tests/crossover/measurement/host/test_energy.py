from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crossover.measurement.host.energy import (
    RaplCounter,
    cpu_energy_between,
    energy_between,
    read_gpu_energy_mj,
    read_rapl,
)
from crossover.tables.columns import COLUMNS

NOTHING = {"energy_j": None, "energy_per_step_j": None, "energy_source": None}


def test_energy_is_the_difference_of_the_counter() -> None:
    columns = energy_between(1_000_000, 4_000_000, window_s=10.0, steps=600, foreign=0)
    assert columns == {"energy_j": 3000.0, "energy_per_step_j": 5.0, "energy_source": "NVML"}
    assert columns.keys() <= set(COLUMNS)


@pytest.mark.parametrize(
    "changes",
    [
        {"window_s": 9.99},
        {"foreign": 1},
        {"before_mj": None},
        {"after_mj": None},
        {"after_mj": 999_999},  # the driver was loaded anew
        {"steps": 0},
    ],
)
def test_what_cannot_be_known_is_not_guessed(changes: dict[str, Any]) -> None:
    known = {"before_mj": 1_000_000, "after_mj": 4_000_000, "window_s": 10.0, "steps": 600, "foreign": 0}
    assert energy_between(**{**known, **changes}) == NOTHING


def test_unknown_company_does_not_hide_what_the_device_used() -> None:
    assert energy_between(0, 2000, window_s=20.0, steps=4, foreign=None)["energy_per_step_j"] == 0.5


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


def test_a_package_that_cannot_be_read_leaves_no_energy(machine: Path) -> None:
    (machine / "sys/class/powercap/intel-rapl:1/energy_uj").unlink()
    assert read_rapl(machine) is None


def test_a_machine_without_rapl_has_no_counters(tmp_path: Path) -> None:
    assert read_rapl(tmp_path) is None


RANGE_UJ = 30_000 * 10**6 - 1


def packages(*energies_j: float) -> dict[str, RaplCounter]:
    return {f"package-{n}": RaplCounter(int(energy * 10**6), RANGE_UJ) for n, energy in enumerate(energies_j)}


def test_packages_are_added_and_a_counter_that_started_again_is_carried_on() -> None:
    # 100 J of the first; the second ran from 29 000 J over 30 000 J to 500 J: 1500 J.
    columns = cpu_energy_between(packages(50, 29_000), packages(150, 500), window_s=20.0, steps=100, foreign=0)
    assert columns["energy_j"] == pytest.approx(1600)
    assert columns["energy_per_step_j"] == pytest.approx(16)
    assert columns["energy_source"] == "RAPL"


@pytest.mark.parametrize(
    ("before", "after", "window_s", "foreign"),
    [
        (None, packages(1), 20.0, 0),
        (packages(1), None, 20.0, 0),
        (packages(1), packages(2, 3), 20.0, 0),
        (packages(1), packages(2), 9.0, 0),
        (packages(1), packages(2), 31.0, 0),  # at 1000 W, 30 000 J pass in 30 s
        (packages(1), packages(2), 20.0, True),
    ],
)
def test_cpu_energy_is_not_guessed_either(
    before: dict[str, RaplCounter] | None, after: dict[str, RaplCounter] | None, window_s: float, foreign: int
) -> None:
    assert cpu_energy_between(before, after, window_s, 10, foreign) == NOTHING


def test_cpu_energy_is_known_just_inside_these_limits() -> None:
    assert cpu_energy_between(packages(1), packages(2), 29.0, 10, 0)["energy_j"] == pytest.approx(1)
