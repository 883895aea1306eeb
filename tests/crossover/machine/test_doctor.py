from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from crossover.machine import doctor
from crossover.machine.doctor import examine
from fake_nvml import FakeNvml

CPU = "sys/devices/system/cpu"
FINE = {
    "proc/stat": "cpu0 100 0 0 0 0 0 0 50 0 0\n",
    "proc/self/stat": "1 (python) S 1 1 1 0 -1 0 0 0 0 0 5 0 0 0 20",
    "proc/self/cgroup": "0::/\n",
    "sys/fs/cgroup/cpu.max": "100000 100000\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpufreq/boost": "0\n",
}
"""The kernel of a machine with one CPU."""
SET_UP = {"OMP_NUM_THREADS": "1", "SLURM_CPUS_PER_TASK": "1"}
GPU = {
    "nvmlDeviceGetEnforcedPowerLimit": 699_900,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x1 | 0x4,  # idle, and at its power cap
    "nvmlDeviceGetComputeRunningProcesses_v3": [],
}


@pytest.fixture
def look(
    kernel: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any]
) -> Callable[..., list[str]]:
    """Examines a made-up machine: its CPUs, one of which may be used, and of which others use 40 % meanwhile."""

    def examined(
        files: dict[str, str], environment: dict[str, str], gpus: dict[str, Any], cpus: int = 1, busy: int = 10
    ) -> list[str]:
        root = kernel(files)

        def a_second_passes(seconds: float) -> None:
            assert seconds == 1.0
            if files:
                kernel({"proc/stat": f"cpu0 {100 + busy} 0 0 {100 - busy} 0 0 0 50 0 0\n"})

        monkeypatch.setattr(doctor, "usable_cpus", lambda: {0})
        monkeypatch.setattr(doctor.os, "cpu_count", lambda: cpus)
        monkeypatch.setattr(doctor.time, "sleep", a_second_passes)
        return examine(fake_nvml(gpus), root, environment)

    return examined


def test_a_machine_that_is_fine_or_says_nothing_has_no_findings(look: Callable[..., list[str]]) -> None:
    assert look({}, {}, {"GPU-1": {}}) == []
    assert look(FINE, SET_UP, {"GPU-1": GPU}) == []


def test_each_fault_is_one_line_with_its_remedy(look: Callable[..., list[str]]) -> None:
    faults = {
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
        f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n",
        f"{CPU}/cpufreq/boost": "1\n",
    }
    environment = {"SLURM_CPUS_PER_TASK": "0", "OMP_NUM_THREADS": "1", "KMP_AFFINITY": "compact"}
    faulty = GPU | {
        "nvmlDeviceGetEnforcedPowerLimit": 500_000,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x40,
        "nvmlDeviceGetComputeRunningProcesses_v3": [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in (42, 43)],
    }
    lines = look(FINE | faults, environment, {"GPU-1": GPU, "GPU-2": faulty}, cpus=2, busy=40)
    assert [line.partition("; ")[0] for line in lines] == [
        "CPU affinity: 1 of 2 logical CPUs",
        "CPU quota: 0.5 of 2 logical CPUs",
        "Slurm allocation: 0 of 2 logical CPUs",
        "KMP_AFFINITY: compact",
        "load by others: 0.4 CPUs busy",
        "CPU governor: powersave",
        "CPU turbo: on",
        "GPU-2: compute processes 42, 43",
        "GPU-2: power limit 500 W, by default 700 W",
        "GPU-2: clock held down now by hw_thermal_slowdown",
    ]
    assert all(line.partition("; ")[2] for line in lines)


def test_a_driver_that_does_not_answer_is_a_finding(kernel: Callable[..., Path]) -> None:
    silent = FakeNvml(opens=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    (line,) = [line for line in examine(silent, kernel(FINE), SET_UP) if line.startswith("GPU: ")]
    assert line.startswith("GPU: a GPU is there, but its driver does not answer (")
    assert line.endswith("): restart the machine")


def test_it_needs_no_torch(root: Path) -> None:
    look = "import sys; sys.modules['torch'] = None; import doctor; doctor.main([])"
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=root / "scripts", capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["nothing found"] or all(": " in line and "; " in line for line in lines)
    assert lines
