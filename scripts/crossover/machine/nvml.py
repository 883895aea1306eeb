"""NVIDIA GPUs through NVML: their state before and after a trial, and other processes on them.

A query that the GPU, driver or container does not support returns None instead of raising an error.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from crossover.machine.kernel import read_kernel

Answer = TypeVar("Answer")

MILLI, NANO, PERCENT = 1e-3, 1e-9, 1e-2

EVENT_REASONS = {
    "GpuIdle": "gpu_idle",
    "ApplicationsClocksSetting": "applications_clocks",
    "SwPowerCap": "sw_power_cap",
    "HwSlowdown": "hw_slowdown",
    "SyncBoost": "sync_boost",
    "SwThermalSlowdown": "sw_thermal_slowdown",
    "HwThermalSlowdown": "hw_thermal_slowdown",
    "HwPowerBrakeSlowdown": "hw_power_brake",
    "DisplayClockSetting": "display_clocks",
}
"""Reasons why a clock is below its maximum, by the suffix of NVML's name."""

SLOWDOWN = ("thermal", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake")
"""Counters of slowdowns by heat or hardware protection. `board_limit` and `reliability` are left out, since they often
lower the clock of healthy GPUs."""

POWER_CAP = "sw_power_cap"

COUNTED_BY = {"sw_thermal_slowdown": "thermal", "hw_thermal_slowdown": "thermal"}
"""The counter that includes the time of a reason, for GPUs without a counter for that reason alone."""


@dataclass(frozen=True)
class OpenGpu:
    """NVML handles of a GPU, or of a MIG instance and its GPU."""

    device: Any
    board: Any
    """The GPU that reports clocks, power and temperature; without MIG the same as `device`."""
    is_instance: bool


NVIDIA, DISPLAY = "0x10de", "0x03"
"""PCI vendor of NVIDIA's GPUs, and the prefix of their PCI class."""


def silent_driver(nvml: types.ModuleType, root: Path = Path("/")) -> str | None:
    """Reason why this machine's GPU driver does not answer, with advice; None if it answers.

    Also None if NVIDIA's library is missing, or if the PCI bus has no NVIDIA GPU and the driver is not loaded or finds
    none. GPUs that this process may not open, such as those of other cluster jobs, are skipped.
    """
    absent = [nvml.NVML_ERROR_LIBRARY_NOT_FOUND]
    if not _has_gpu(root):
        absent += [nvml.NVML_ERROR_DRIVER_NOT_LOADED, nvml.NVML_ERROR_GPU_NOT_FOUND]
    try:
        nvml.nvmlInit()
        try:
            for index in range(nvml.nvmlDeviceGetCount()):
                with suppress(nvml.NVMLError_NoPermission):
                    nvml.nvmlDeviceGetHandleByIndex(index)
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        if error.value in absent:
            return None
        return (
            f"this machine has a GPU, but its driver does not answer ({error}): fix it until `nvidia-smi -L` lists the "
            "GPU, usually by restarting the machine"
        )
    return None


def _has_gpu(root: Path) -> bool:
    devices = (root / "sys/bus/pci/devices").glob("*")
    return any(
        read_kernel(device / "vendor") == NVIDIA and (read_kernel(device / "class") or "").startswith(DISPLAY)
        for device in devices
    )


@contextmanager
def session(nvml: types.ModuleType) -> Iterator[bool]:
    """Keep NVML open while the block runs; yields False if it is not available. Sessions may be nested."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        nvml.nvmlShutdown()


@contextmanager
def open_gpu(uuid: str | None, nvml: types.ModuleType) -> Iterator[OpenGpu | None]:
    """Open a GPU or a MIG instance by its UUID; yields None without NVML or without such a device."""
    if uuid is None:
        yield None
        return
    with session(nvml) as is_open:
        yield _find(uuid, nvml) if is_open else None


def ask(nvml: types.ModuleType, *queries: Callable[[], Answer]) -> Answer | None:
    """The answer to the first query that succeeds; None if all fail."""
    for query in queries:
        try:
            return query()
        except nvml.NVMLError:
            continue
    return None


def board_of(uuid: str | None, nvml: types.ModuleType) -> str | None:
    """UUID of a MIG instance's GPU, or of the GPU itself; None without NVML or without such a device."""
    with open_gpu(uuid, nvml) as gpu:
        return None if gpu is None else ask(nvml, lambda: str(nvml.nvmlDeviceGetUUID(gpu.board)))


def driver_version(nvml: types.ModuleType) -> str | None:
    """Version of the NVIDIA driver; None without NVML."""
    with session(nvml) as is_open:
        return ask(nvml, lambda: str(nvml.nvmlSystemGetDriverVersion())) if is_open else None


def _find(uuid: str, nvml: types.ModuleType) -> OpenGpu | None:
    # torch reports UUIDs without prefix, so the caller may have put GPU- before the UUID of a MIG instance.
    names = dict.fromkeys([uuid, f"MIG-{uuid.removeprefix('GPU-')}"])
    device = ask(nvml, *(partial(nvml.nvmlDeviceGetHandleByUUID, name) for name in names))
    if device is None:
        return None
    board = ask(nvml, lambda: nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device))
    return OpenGpu(device, device if board is None else board, is_instance=board is not None)


@dataclass(frozen=True)
class GpuState:
    """The state of a GPU at one moment; a field is None if NVML does not report it."""

    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_default_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    temperature_c: float | None = None
    reasons: tuple[str, ...] | None = None
    processes: tuple[tuple[int, int | None], ...] | None = None
    """Process id and memory in bytes (None if unknown) of each compute process. Ids may repeat: hidden processes have
    id 0."""
    mig: bool | None = None


def read_gpu(uuid: str | None, nvml: types.ModuleType) -> GpuState | None:
    """The state of a GPU, or of a MIG instance and its GPU; None without NVML or without such a device.

    Call this while steps are queued: clock and event reasons are meaningful only under load.
    """
    with open_gpu(uuid, nvml) as gpu:
        return None if gpu is None else _read(gpu, nvml)


@dataclass(frozen=True)
class GpuUse:
    """A GPU's cumulative counters, and its use by each process."""

    violations_ns: Mapping[str, int] = field(default_factory=dict)
    """Time lost to each limit so far, by counter."""
    shares: Mapping[int, float] | None = None
    """Share of the time in which a process's kernels ran, by process id; None without samples."""


def read_use(uuid: str | None, nvml: types.ModuleType, since_us: int | None = None) -> GpuUse:
    """The counters of a GPU, and its use by each process since `since_us` (system clock in microseconds)."""
    with open_gpu(uuid, nvml) as gpu:
        if gpu is None:
            return GpuUse()
        shares = None if since_us is None else _shares(gpu, nvml, since_us)
        return GpuUse(_violations_ns(gpu.board, nvml), shares)


def _shares(gpu: OpenGpu, nvml: types.ModuleType, since_us: int) -> dict[int, float] | None:
    """Mean SM utilisation of each process over the driver's samples; None without samples, as for MIG instances.

    The driver does not clear unused entries of its answer, so samples before `since_us` or above 100 % are ignored.
    Source: nvmlDeviceGetProcessUtilization.
    """
    if gpu.is_instance:
        return None
    percents_of: dict[int, list[int]] = {}
    for sample in ask(nvml, lambda: nvml.nvmlDeviceGetProcessUtilization(gpu.board, since_us)) or ():
        if sample.pid and sample.timeStamp > since_us and sample.smUtil <= 100:
            percents_of.setdefault(sample.pid, []).append(sample.smUtil)
    return {pid: PERCENT * sum(percents) / len(percents) for pid, percents in percents_of.items()} or None


def gpu_between(
    before: GpuState | None, after: GpuState | None, used: tuple[GpuUse, GpuUse], own_ids: set[int]
) -> dict[str, Any]:
    """Columns of `Measurement` about the GPU's state; None if the GPU could not be read.

    `before` must be read before the trial opens the device, `after` while the device is still open (see
    `foreign_processes`), and `used` right before and right after the timed blocks.
    """
    first, last = before or GpuState(), after or GpuState()
    start_ns, end_ns = (use.violations_ns for use in used)
    rises_ns = {name: end_ns[name] - start_ns[name] for name in start_ns.keys() & end_ns.keys()}
    reasons = {*(last.reasons or ()), *(name for name, rise in rises_ns.items() if rise > 0)}
    return {
        "foreign_processes": foreign_processes(first, last, own_ids),
        "foreign_gpu_share": foreign_gpu_share(first, used[1].shares, own_ids),
        "mig": last.mig,
        "power_limit_w": last.power_limit_w,
        "sm_clock_before_mhz": first.sm_clock_mhz,
        "sm_clock_after_mhz": last.sm_clock_mhz,
        "sm_clock_default_mhz": last.sm_clock_default_mhz,
        "sm_clock_max_mhz": last.sm_clock_max_mhz,
        "temperature_before_c": first.temperature_c,
        "temperature_after_c": last.temperature_c,
        "throttle_reasons": None if last.reasons is None and not rises_ns else sorted(reasons),
        "slowdown_s": _slowdown_s(last.reasons or (), rises_ns),
        "power_capped_s": rises_ns[POWER_CAP] * NANO if POWER_CAP in rises_ns else None,
    }


def _slowdown_s(reasons: Collection[str], rises_ns: Mapping[str, int]) -> float | None:
    counted_ns = [rises_ns[name] for name in SLOWDOWN if name in rises_ns]
    uncounted = [name for name in SLOWDOWN if name in reasons and not {name, COUNTED_BY.get(name)} & rises_ns.keys()]
    # Several counters may include the same slowdown, so their sum would be too large.
    return max(counted_ns) * NANO if counted_ns and not uncounted else None


def foreign_gpu_share(before: GpuState, shares: Mapping[int, float] | None, own_ids: set[int]) -> float | None:
    """Share of the GPU's time that other processes used, from the `shares` by process; None without samples.

    In a container, the driver may list this process under another id. If none of `own_ids` is listed, the busiest new
    process is therefore taken for this one.
    """
    if shares is None:
        return None
    others = {pid: share for pid, share in shares.items() if pid not in own_ids}
    earlier = {pid for pid, _ in before.processes or ()}
    new = [pid for pid in others if pid not in earlier]
    if len(others) == len(shares) and new:
        del others[max(new, key=others.__getitem__)]
    return sum(others.values())


def foreign_processes(before: GpuState, after: GpuState, own_ids: set[int]) -> int | None:
    """Number of other compute processes on the device before or after a trial; None if that cannot be known.

    The driver may list a process under the id of a thread, so `own_ids` should include thread ids (`with_threads`). In
    a container, the driver may list the host's ids, ids of 0, or nothing. If none of `own_ids` is listed, one new
    process is taken for this one. If nothing is listed, the number is unknown.

    Limitations: if the driver shows a container only its own processes, those outside are not counted. If this process
    is hidden, a foreign process that starts during the trial is taken for this one.
    """
    if before.processes is None or after.processes is None:
        return None
    earlier, current = (Counter(pid for pid, _ in processes) for processes in (before.processes, after.processes))
    listed = earlier | current
    if not listed:
        return None
    if own_ids & current.keys():
        return sum(count for pid, count in listed.items() if pid not in own_ids)
    is_own_listed = bool(current - earlier)
    return sum(listed.values()) - is_own_listed


def with_threads(pids: set[int], root: Path = Path("/")) -> set[int]:
    tasks = (path.name for pid in pids for path in (root / f"proc/{pid}/task").glob("[0-9]*"))
    return pids | {int(task) for task in tasks}


def _read(gpu: OpenGpu, nvml: types.ModuleType) -> GpuState:
    board, device = gpu.board, gpu.device

    def query(name: str, *arguments: Any) -> Callable[[], Any]:
        return lambda: getattr(nvml, name)(board, *arguments)

    def clock(name: str, *more: int) -> float | None:
        # Application clocks are documented for the graphics domain, which has the clock of the SMs.
        return ask(nvml, query(name, nvml.NVML_CLOCK_SM, *more), query(name, nvml.NVML_CLOCK_GRAPHICS, *more))

    # With an older driver, the function without a version in its name raises another kind of error.
    processes = ask(
        nvml,
        lambda: nvml.nvmlDeviceGetComputeRunningProcesses_v3(device),
        lambda: nvml.nvmlDeviceGetComputeRunningProcesses_v2(device),
    )
    mig_mode = ask(nvml, query("nvmlDeviceGetMigMode"))
    power_limit_mw = ask(nvml, query("nvmlDeviceGetEnforcedPowerLimit"))
    return GpuState(
        power_limit_w=None if power_limit_mw is None else power_limit_mw * MILLI,
        sm_clock_mhz=clock("nvmlDeviceGetClockInfo"),
        sm_clock_default_mhz=clock("nvmlDeviceGetClock", nvml.NVML_CLOCK_ID_APP_CLOCK_DEFAULT),
        sm_clock_max_mhz=clock("nvmlDeviceGetMaxClockInfo"),
        temperature_c=ask(
            nvml,
            query("nvmlDeviceGetTemperatureV", nvml.NVML_TEMPERATURE_GPU),
            query("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),  # older drivers
        ),
        reasons=_event_reasons(board, nvml),
        processes=None if processes is None else tuple((process.pid, process.usedGpuMemory) for process in processes),
        mig=True if gpu.is_instance else None if mig_mode is None else bool(mig_mode[0]),
    )


def _event_reasons(board: Any, nvml: types.ModuleType) -> tuple[str, ...] | None:
    bits = ask(
        nvml,
        lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(board),
        lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(board),  # older drivers
    )
    if bits is None:
        return None
    names = {getattr(nvml, f"nvmlClocksEventReason{end}"): name for end, name in EVENT_REASONS.items()}
    single = [1 << position for position in range(int(bits).bit_length()) if bits >> position & 1]
    return tuple(names.get(bit, f"{bit:#x}") for bit in single)


def _violations_ns(board: Any, nvml: types.ModuleType) -> dict[str, int]:
    """The counters of time lost to limits, in ns: four older policies and three newer event reasons.

    Some drivers number the newer fields differently and return a setting. This does no harm, since a setting does not
    rise.
    """
    counters = {
        POWER_CAP: (nvml.NVML_FI_DEV_PERF_POLICY_POWER, nvml.NVML_PERF_POLICY_POWER),
        "thermal": (nvml.NVML_FI_DEV_PERF_POLICY_THERMAL, nvml.NVML_PERF_POLICY_THERMAL),
        "board_limit": (nvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, nvml.NVML_PERF_POLICY_BOARD_LIMIT),
        "reliability": (nvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY, nvml.NVML_PERF_POLICY_RELIABILITY),
        "sw_thermal_slowdown": (nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, None),
        "hw_thermal_slowdown": (nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, None),
        "hw_power_brake": (nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, None),
    }
    counts_ns = {name: _counter_ns(board, nvml, *ids) for name, ids in counters.items()}
    return {name: count for name, count in counts_ns.items() if count is not None}


def _counter_ns(board: Any, nvml: types.ModuleType, field_id: int, policy: int | None) -> int | None:
    if policy is not None:
        status = ask(nvml, lambda: nvml.nvmlDeviceGetViolationStatus(board, policy))
        if status is not None:
            return int(status.violationTime)
    values = ask(nvml, lambda: nvml.nvmlDeviceGetFieldValues(board, [field_id]))
    if values is None or values[0].nvmlReturn != nvml.NVML_SUCCESS:
        return None
    return int(values[0].value.ullVal)
