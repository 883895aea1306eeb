from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from crossover.machine.nvml import (
    GpuState,
    GpuUse,
    board_of,
    driver_version,
    foreign_gpu_share,
    foreign_processes,
    gpu_between,
    read_gpu,
    read_use,
    silent_driver,
    with_threads,
)
from crossover.tables.columns import COLUMNS
from fake_nvml import FakeGpu, FakeNvml

Fake = Callable[..., Any]

SM, DEFAULT = pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_ID_APP_CLOCK_DEFAULT


def process(pid: int, memory: int | None = 100) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=memory)


def sample(pid: int, percent: int, at_us: int = 1500) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, timeStamp=at_us, smUtil=percent)


def answers(**changes: Any) -> dict[str, Any]:
    """The answers of a GPU that supports all queries, at its power cap."""
    return {
        "nvmlDeviceGetEnforcedPowerLimit": 650_000,
        f"nvmlDeviceGetClockInfo({SM})": 1500,
        f"nvmlDeviceGetClock({SM}, {DEFAULT})": 1800,
        f"nvmlDeviceGetMaxClockInfo({SM})": 1980,
        f"nvmlDeviceGetTemperatureV({pynvml.NVML_TEMPERATURE_GPU})": 61,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x4 | 0x8000,
        f"nvmlDeviceGetViolationStatus({pynvml.NVML_PERF_POLICY_POWER})": SimpleNamespace(violationTime=5),
        f"nvmlDeviceGetViolationStatus({pynvml.NVML_PERF_POLICY_THERMAL})": SimpleNamespace(violationTime=7),
        "fields": {pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN: 11},
        "nvmlDeviceGetComputeRunningProcesses_v3": [process(42, 2**30), process(43, None)],
        "nvmlDeviceGetMigMode": [0, 1],
    } | changes


def test_state_and_counters_of_a_gpu_are_read(fake_nvml: Fake) -> None:
    nvml = fake_nvml({"GPU-1": answers()})
    assert read_gpu("GPU-1", nvml) == GpuState(
        power_limit_w=650.0,
        sm_clock_mhz=1500,
        sm_clock_default_mhz=1800,
        sm_clock_max_mhz=1980,
        temperature_c=61,
        reasons=("sw_power_cap", "0x8000"),
        processes=((42, 2**30), (43, None)),
        mig=False,
    )
    assert read_use("GPU-1", nvml) == GpuUse({"sw_power_cap": 5, "thermal": 7, "hw_thermal_slowdown": 11})
    assert nvml.opened == 0


@pytest.mark.parametrize(
    ("uuid", "installed", "expected"),
    [
        ("GPU-1", True, GpuState()),
        ("GPU-1", False, None),
        (None, True, None),
    ],
)
def test_values_without_an_answer_are_none(
    fake_nvml: Fake, uuid: str | None, installed: bool, expected: GpuState | None
) -> None:
    nvml = fake_nvml({"GPU-1": {}, "GPU-2": {}}, installed=installed)
    assert read_gpu(uuid, nvml) == expected
    assert read_use(uuid, nvml, since_us=0) == GpuUse()
    assert board_of(uuid or "GPU-3", nvml) == (uuid if expected else None)
    assert driver_version(nvml) == ("580.1" if installed else None)
    assert nvml.opened == 0


@pytest.mark.parametrize("uuid", ["MIG-7", "GPU-7"])
def test_a_mig_instance_has_its_own_processes_and_the_clocks_of_its_gpu(fake_nvml: Fake, uuid: str) -> None:
    instance = {
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": "GPU-1",
        "nvmlDeviceGetComputeRunningProcesses_v3": [process(7)],
    }
    nvml = fake_nvml({"GPU-1": answers(nvmlDeviceGetProcessUtilization=[sample(7, 50)]), "MIG-7": instance})
    state = read_gpu(uuid, nvml)
    assert board_of(uuid, nvml) == "GPU-1"
    assert read_use(uuid, nvml, since_us=0).shares is None  # the samples cover all instances
    assert state is not None
    assert (state.sm_clock_mhz, state.processes, state.mig) == (1500, ((7, 100),), True)


def state(*pids: int, **values: Any) -> GpuState:
    return GpuState(processes=tuple((pid, None) for pid in pids), **values)


UNKNOWN = GpuState()
NO_USE = (GpuUse(), GpuUse())
OWN = {10, 11}


@pytest.mark.parametrize(
    ("before", "after", "foreign"),
    [
        # this process is listed by its own id
        (state(), state(10), 0),
        (state(99), state(99, 10), 1),
        (state(0, 0), state(0, 10), 2),
        # a container that lists ids of the host: the new one is this process
        (state(), state(5000), 0),
        (state(99), state(99, 5000, 5001), 2),
        # a container that lists other processes, but not this one
        (state(99), state(99), 1),
        # an empty list, or no list
        (state(), state(), None),
    ],
)
def test_foreign_processes_are_counted(before: GpuState, after: GpuState, foreign: int | None) -> None:
    assert foreign_processes(before, after, OWN) == foreign
    assert gpu_between(before, after, NO_USE, OWN)["foreign_processes"] == foreign


@pytest.mark.parametrize(
    ("samples", "shares"),
    [
        ([sample(10, 80), sample(10, 60, 1800), sample(99, 3)], {10: 0.7, 99: 0.03}),
        ([sample(10, 80), sample(99, 90, 1000)], {10: 0.8}),  # before `since_us`
        ([sample(0, 0, 0), sample(10, 80), sample(99, 7_000_000)], {10: 0.8}),  # entries that the driver did not fill
        ([], None),
        (None, None),  # not supported
    ],
)
def test_use_of_a_gpu_by_process(fake_nvml: Fake, samples: list[Any] | None, shares: dict[int, float] | None) -> None:
    answered = {} if samples is None else {"nvmlDeviceGetProcessUtilization": samples}
    shares_read = read_use("GPU-1", fake_nvml({"GPU-1": answered}), since_us=1000).shares
    assert shares_read == (None if shares is None else pytest.approx(shares))


@pytest.mark.parametrize(
    ("before", "shares", "foreign"),
    [
        (state(), {10: 0.9}, 0),
        (state(99), {10: 0.9}, 0),  # has the GPU open, idle
        (state(99), {10: 0.9, 99: 0.05, 98: 0.02}, 0.07),
        # a container: this process has another id, which was not listed before
        (state(), {5000: 0.9}, 0),
        (state(99), {5000: 0.9, 99: 0.3}, 0.3),
        (state(99), {99: 0.3}, 0.3),  # this process ran too briefly to be sampled
        (UNKNOWN, {5000: 0.9}, 0),
        (state(99), None, None),
    ],
)
def test_share_of_a_gpu_used_by_other_processes(
    before: GpuState, shares: dict[int, float] | None, foreign: float | None
) -> None:
    share = foreign_gpu_share(before, shares, OWN)
    assert share == (None if foreign is None else pytest.approx(foreign))
    used = (GpuUse(), GpuUse(shares=shares))
    assert gpu_between(before, state(10), used, OWN)["foreign_gpu_share"] == share


@pytest.mark.parametrize(
    ("reasons", "rises_ns", "slowdown_s"),
    [
        ((), {"thermal": 1000}, 1e-6),
        ((), {"thermal": 3 * 10**8, "hw_thermal_slowdown": 10**9, "hw_power_brake": 0}, 1.0),
        ((), {"sw_power_cap": 10**9, "reliability": 10**9}, None),
        (("hw_thermal_slowdown",), {"thermal": 0}, 0.0),  # it has just started
        (("hw_power_brake",), {"thermal": 0}, None),  # it has no counter
        (("hw_power_brake",), {"hw_power_brake": 10**8}, 0.1),
    ],
)
def test_time_of_a_slowdown(reasons: tuple[str, ...], rises_ns: dict[str, int], slowdown_s: float | None) -> None:
    used = (GpuUse(dict.fromkeys(rises_ns, 5)), GpuUse({name: 5 + rise for name, rise in rises_ns.items()}))
    columns = gpu_between(state(), state(10, reasons=reasons), used, OWN)
    assert columns["slowdown_s"] == (None if slowdown_s is None else pytest.approx(slowdown_s))


def test_the_ids_of_a_process_include_its_threads(tmp_path: Path) -> None:
    for task in (10, 11, 12):
        (tmp_path / f"proc/10/task/{task}").mkdir(parents=True)
    assert with_threads({10, 20}, tmp_path) == {10, 11, 12, 20}


def test_columns_between_two_states() -> None:
    before = state(
        sm_clock_mhz=345,
        temperature_c=30,
        reasons=("gpu_idle",),
        power_limit_w=700.0,
    )
    start = {"sw_power_cap": 10**9, "thermal": 0, "hw_thermal_slowdown": 5 * 10**8, "reliability": 1}
    end = {"sw_power_cap": 4 * 10**9, "thermal": 10**9, "hw_thermal_slowdown": 2 * 10**9, "reliability": 1}
    after = state(
        10,
        sm_clock_mhz=1200,
        sm_clock_default_mhz=1800,
        sm_clock_max_mhz=1980,
        temperature_c=88,
        reasons=("sw_power_cap", "applications_clocks"),
        power_limit_w=650.0,
        mig=False,
    )
    columns = gpu_between(before, after, (GpuUse(start), GpuUse(end, {10: 0.9, 98: 0.25})), OWN)
    assert columns.keys() <= set(COLUMNS)
    assert columns == {
        "foreign_processes": 0,
        "foreign_gpu_share": 0.25,
        "mig": False,
        "power_limit_w": 650.0,
        "sm_clock_before_mhz": 345,
        "sm_clock_after_mhz": 1200,
        "sm_clock_default_mhz": 1800,
        "sm_clock_max_mhz": 1980,
        "temperature_before_c": 30,
        "temperature_after_c": 88,
        "throttle_reasons": ["applications_clocks", "hw_thermal_slowdown", "sw_power_cap", "thermal"],
        "slowdown_s": 1.5,
        "power_capped_s": 3.0,
    }


ON_THE_BUS = {
    "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
}
NO_GPU = {
    "sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n",
    "sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n",
    "sys/bus/pci/devices/0000:02:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:02:00.0/class": "0x020000\n",  # a network card by NVIDIA
}


@pytest.mark.parametrize(
    ("nvml", "files", "said"),
    [
        (FakeNvml(FakeGpu("GPU-1")), ON_THE_BUS, None),
        (FakeNvml(opens=pynvml.NVML_ERROR_DRIVER_NOT_LOADED), NO_GPU, None),
        (FakeNvml(opens=pynvml.NVML_ERROR_DRIVER_NOT_LOADED), ON_THE_BUS, "Driver Not Loaded"),
        (FakeNvml(opens=pynvml.NVML_ERROR_NO_PERMISSION), {}, "Insufficient Permissions"),
        (FakeNvml(FakeGpu("GPU-1"), FakeGpu("GPU-2", lost=True)), {}, "GPU is lost"),
    ],
)
def test_a_silent_driver_is_distinguished_from_a_machine_without_a_gpu(
    nvml: Any, files: dict[str, str], said: str | None, kernel: Callable[..., Path]
) -> None:
    reason = silent_driver(nvml, kernel(files))
    assert f"GPU, but its driver does not answer ({said}): fix it" in str(reason) if said else reason is None
    assert nvml.opened == 0
