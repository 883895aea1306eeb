from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from crossover.machine import doctor
from crossover.machine.doctor import Facts, examine, look_around
from crossover.machine.nvml import GpuState

GPU = GpuState(
    "GPU-1",
    power_limit_w=699.9,
    power_limit_default_w=700.0,
    reasons=("gpu_idle", "sw_power_cap"),
    processes=(),
)
FINE = Facts(
    cpus=16,
    usable_cpus=16,
    usable_cores=8,
    quota_cpus=16.0,
    slurm_cpus=16,
    governor="performance",
    turbo=False,
    others_cpus=0.2,
    gpus=(GPU,),
)
UNKNOWN = Facts(cpus=1, usable_cpus=1, usable_cores=1, gpus=(GpuState("GPU-1"),))


@pytest.mark.parametrize("facts", [FINE, UNKNOWN], ids=["fine", "unknown"])
def test_a_machine_that_is_fine_has_no_findings(facts: Facts) -> None:
    assert examine(facts) == []


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"usable_cpus": 4, "quota_cpus": None, "slurm_cpus": None}, "CPU affinity: 4 of 16 logical CPUs; "),
        ({"quota_cpus": 2.5}, "CPU quota: 2.5 of 16 logical CPUs; "),
        ({"slurm_cpus": 8}, "Slurm allocation: 8 of 16 logical CPUs; "),
        ({"thread_settings": {"OMP_THREAD_LIMIT": "1"}}, "OMP_THREAD_LIMIT: 1; "),
        ({"others_cpus": 1.23}, "load by others: 1.2 CPUs busy; "),
        ({"governor": "powersave"}, "CPU governor: powersave; "),
        ({"turbo": True}, "CPU turbo: on; "),
    ],
)
def test_each_fault_of_the_host_is_one_line_with_its_remedy(changes: dict[str, Any], start: str) -> None:
    (line,) = examine(dataclasses.replace(FINE, **changes))
    assert line.startswith(start)
    assert len(line) > len(start)


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"processes": ((42, 100), (43, None))}, "compute processes 42, 43; "),
        ({"power_limit_w": 500.0}, "power limit 500 W, by default 700 W; "),
        ({"reasons": ("hw_thermal_slowdown",)}, "clock held down now by hw_thermal_slowdown; "),
    ],
)
def test_each_fault_of_a_gpu_names_the_gpu(changes: dict[str, Any], start: str) -> None:
    faulty = dataclasses.replace(GPU, uuid="GPU-2", **changes)
    (line,) = examine(dataclasses.replace(FINE, gpus=(GPU, faulty)))
    assert line.startswith(f"GPU-2: {start}")


def test_the_machine_is_looked_at(
    kernel: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, fake_nvml: Callable[..., Any]
) -> None:
    root = kernel(
        {
            "proc/stat": "cpu0 100 0 0 0 0 0 0 50 0 0\n",
            "proc/self/stat": "1 (python) S 1 1 1 0 -1 0 0 0 0 0 5 0 0 0 20",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "150000 100000\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/cpufreq/boost": "1\n",
        }
    )

    def a_second_passes(seconds: float) -> None:
        assert seconds == 1.0
        kernel({"proc/stat": "cpu0 150 0 0 50 0 0 0 50 0 0\n"})  # 50 of 100 ticks busy, none of them ours

    monkeypatch.setattr(doctor, "usable_cpus", lambda: {0})
    monkeypatch.setattr(doctor.os, "cpu_count", lambda: 2)
    environment = {"SLURM_CPUS_PER_TASK": "1", "OMP_NUM_THREADS": "1", "KMP_AFFINITY": "compact"}
    nvml = fake_nvml({"GPU-1": {f"nvmlDeviceGetTemperature({pynvml.NVML_TEMPERATURE_GPU})": 61}})
    assert look_around(nvml, root, environment, a_second_passes) == Facts(
        cpus=2,
        usable_cpus=1,
        usable_cores=1,
        quota_cpus=1.5,
        slurm_cpus=1,
        thread_settings={"KMP_AFFINITY": "compact"},
        governor="powersave",
        turbo=True,
        others_cpus=0.5,
        gpus=(GpuState("GPU-1", temperature_c=61),),
    )


def test_it_needs_no_torch(root: Path) -> None:
    look = "import sys; sys.modules['torch'] = None; import doctor; doctor.main([])"
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=root / "scripts", capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["nothing found"] or all(": " in line and "; " in line for line in lines)
    assert lines
