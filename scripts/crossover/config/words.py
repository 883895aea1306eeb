"""The words of a benchmark: devices, precisions, executions, statuses, flags, and the axes that name a cell."""

from __future__ import annotations

DEVICES = ("cpu", "cuda", "mps", "xpu")
PRECISIONS = ("fp32", "tf32", "amp-bf16", "amp-fp16", "bf16", "fp16", "fp64")
EXECUTIONS = ("eager", "compile", "cuda-graph")
PROTOCOLS = ("resident", "as_published")
PLAIN = "plain"
"""The variant of a workload with nothing switched on."""

STATUSES = ("ok", "oom", "unsupported", "timeout", "invalid")

WORKFLOW = "CROSSOVER_WORKFLOW"
"""The environment variable that names the process of the workflow, with which the trial server ends."""

BASELINE = "cpu"
"""The device that every accelerator is compared with."""
HALF = "half"

FLAGS = {
    "drift": "the last third of the samples is over 25 % off the first: let the machine cool down, measure again",
    "unchecked": "the step's answer could not be checked: see the reason column, or raise time_limit_s",
    "incomplete": "a pass after the timing did not end, its columns are empty: raise time_limit_s, or see the reason",
    "diverged": "a weight was no number when timing ended: the times are of such arithmetic; take another precision",
    "trials_differ": "the slowest trial took over 1.25 times as long as the fastest: stop other work, add trials",
    "warmup_capped": "the warm-up reached its cap before it was long and steady enough: raise effort.warmup_max_s",
    "throttled": "the GPU's clock ended below 75 % of its default: see to its cooling and its power limit",
    "busy_host": "other processes kept busy the cores that the trial needs: stop them, or reserve the whole machine",
    "side_by_side": "trials on other GPUs shared the host that most of the step waits for: set side_by_side to false",
    "quota": "a CPU quota held the process back for over 1 % of the time: raise the quota, or lower cpu_threads",
}
"""Why an `ok` result deserves less trust, and what to do about it."""

AXES = ("study", "workload", "variant", "protocol", "batch_size", "precision", "execution", "size", "machine", "device")
"""The columns that name a cell, in the order of its path under results/cells/."""
HERE = "here"  # the machine of a run that names none; its paths have no level for it


def is_cpu(device: str) -> bool:
    """Whether a device is the CPU: on all of its cores or, as sides `cpu-1` and `cpu-half`, on fewer."""
    return device.partition("-")[0] == BASELINE


PLAIN_SIDES = {"precision": PRECISIONS[0], "execution": EXECUTIONS[0]}
"""The precision and the execution that a device's others are compared with."""


def threads_of_side(device: str) -> int | str | None:
    """Threads of a CPU side: 1 for `cpu-1`, HALF (of the cores) for `cpu-half`; None for every other device."""
    name = device.partition("-")[2]
    return int(name) if name.isdigit() else name or None


ENERGY_WINDOW_MIN_S = 10.0
"""NVML renews its counter every 0.1 s or sooner, so that the two edges of a window blur 10 s by at most 2 %."""
