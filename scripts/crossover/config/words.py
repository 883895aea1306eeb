"""The vocabulary: devices, precisions, executions, statuses, flags and the axes of a cell."""

from __future__ import annotations

from dataclasses import dataclass

DEVICES = ("cpu", "cuda", "mps", "xpu")
PRECISIONS = ("fp32", "tf32", "amp-bf16", "amp-fp16", "bf16", "fp16", "fp64")
AS_WRITTEN = "as_written"
"""The precision of a plain function, which chooses its own; torch's switches are those of fp32."""
COMPUTES_IN = {"amp-bf16": "bf16", "amp-fp16": "fp16"}
"""The precision of the matrix products in a mixed one."""
EXECUTIONS = ("eager", "compile", "cuda-graph")
CUDA_GRAPH = EXECUTIONS[2]
PROTOCOLS = ("resident", "as_published", "loaded", "from_host", "from_pageable")
FROM_HOST = PROTOCOLS[1:]
"""Protocols whose data come from the host in each step."""
PINNED, PAGEABLE = COPYING = PROTOCOLS[3:]
"""Protocols whose steps copy a batch from pinned or pageable host memory to the device, and the results back."""
PLAIN = "plain"
"""The variant of a workload with nothing switched on."""


@dataclass(frozen=True)
class Word:
    """A status or a flag, in words."""

    meaning: str
    remedy: str
    count: str
    """Words after a number of cells or trials: "3 cells with times that drift"."""

    def __str__(self) -> str:
        """Meaning and remedy in one line."""
        return f"{self.meaning}: {self.remedy}"


STATUSES = {
    "ok": Word("measured", "nothing", "measured"),
    "oom": Word(
        "the memory ran out",
        "a result; for a time, take a smaller size or batch size, or a device with more memory",
        "out of memory",
    ),
    "unsupported": Word(
        "the device, the precision or the execution refuses what runs on the CPU in fp32",
        "a result; for a time, take a device that offers it, or leave it out",
        "not offered by the device",
    ),
    "timeout": Word(
        "the time limit was reached, or the first steps showed that it would be",
        "a result; for a time, raise time_limit_s, or leave the size out",
        "over the time limit",
    ),
    "invalid": Word(
        "the result must not count, as the reason column says",
        "fix the cause given in the reason column, delete the row in the results folder, run again",
        "discarded as faulty",
    ),
}
"""Statuses of trials, trainings and searches."""

FLAGS = {
    "drift": Word(
        "the last third of the samples is over 25 % off the first",
        "let the machine cool down, measure again",
        "with times that drift",
    ),
    "not_checked": Word(
        "the step's answer could not be checked",
        "see the reason column, or raise time_limit_s",
        "whose answer was not checked",
    ),
    "incomplete": Word(
        "a pass after the timing did not finish, so its columns are empty",
        "raise time_limit_s, or see the reason column",
        "with a later pass cut short",
    ),
    "diverged": Word(
        "a weight was not a number when timing ended, and such arithmetic takes other times",
        "take another precision",
        "with numbers that overflowed",
    ),
    "trials_differ": Word(
        "the slowest trial took over 1.25 times as long as the fastest",
        "stop other work, add trials",
        "whose times differ much from trial to trial",
    ),
    "above_roof": Word(
        "the step is faster than the roofs measured of its device allow",
        "delete the folder roofs of the results and run again: the probe was disturbed",
        "faster than the roofs of their device",
    ),
    "cast": Word(
        "the model was built in another precision than it was measured in",
        "add its own to `precisions`, as the reason column says",
        "of a model built in another precision",
    ),
    "warmup_capped": Word(
        "the warm-up reached its cap before it was long and steady enough",
        "raise effort.warmup_max_s",
        "with a warm-up that was cut short",
    ),
    "throttled": Word(
        "the GPU's clock ended below 75 % of its default",
        "see to its cooling and its power limit",
        "on a GPU that clocked down",
    ),
    "busy_host": Word(
        "other processes kept the cores busy that the trial needs",
        "stop them, or reserve the whole machine",
        "with other programs on their cores",
    ),
    "steal": Word(
        "the hypervisor gave over 10 % of the CPU time that the host needed to others",
        "take a machine with dedicated CPUs, or measure again at a quieter time",
        "on a host whose CPU time others took",
    ),
    "shared_gpu": Word(
        "another process had the GPU open, and the driver does not tell whether it used it",
        "stop it, or take another GPU",
        "on a GPU that others had open",
    ),
    "side_by_side": Word(
        "trials on other GPUs shared the host that most of the step waits for",
        "set cluster.side_by_side to false",
        "beside trials on other GPUs of the host",
    ),
    "quota": Word(
        "a CPU quota held the process back for over 1 % of the time",
        "raise the quota, or lower cpu_threads",
        "held back by a CPU quota",
    ),
}
"""Why an `ok` result deserves less trust."""

DISTURBED = ("throttled", "busy_host", "steal", "shared_gpu", "side_by_side", "quota")
"""Flags of disturbances from outside that may be gone later; such trials are measured again at the end of a run."""

HOST_BOUND_SHARE = 0.5
"""Share of a step above which the GPU mostly waits for the host, so that whatever slows the host down shows."""

BASELINE = "cpu"
"""The device that every accelerator is compared with."""
HALF = "half"
"""Half of the CPU's cores, as in the side `cpu-half`."""

LARGER_BATCH = 4
"""Factor on the batch size, as a remedy for the overhead of calling operators."""

AXES = ("study", "workload", "variant", "protocol", "batch_size", "precision", "execution", "size", "machine", "device")
"""The columns that name a cell, in the order of its path under results/cells/."""
CPU_THREADS = "cpu_threads"
X_AXES = {"size": "size", "parameters": "size", "batch_size": "batch_size", CPU_THREADS: "device"}
"""X axes of crossovers, each with the axis of a cell that varies along it."""


def series_axes(x_axis: str) -> list[str]:
    """The axes that name a series over an x axis: all of a cell's, but its device and what varies along the x axis."""
    return [axis for axis in AXES if axis not in (X_AXES[x_axis], "device")]


REFERENCE_FILES = ("reference.json", "trials.parquet")
"""The files of a machine that was measured elsewhere: its facts, and its trials."""
DIRTY = "-dirty"
"""Suffix of the commit of code with uncommitted changes."""
HERE = "here"
"""The machine of a run that names none; its paths have no level for it."""


def is_cpu(device: str) -> bool:
    """Whether a device is the CPU: on all of its cores or, as sides `cpu-1` and `cpu-half`, on fewer."""
    return device.partition("-")[0] == BASELINE


PLAIN_SIDES = {"precision": PRECISIONS[0], "execution": EXECUTIONS[0]}
"""The precision and the execution that a device's others are compared with."""


def threads_of_side(device: str) -> int | str | None:
    """Threads of a CPU side: 1 for `cpu-1`, HALF for `cpu-half`; None for any other device."""
    name = device.partition("-")[2]
    return int(name) if name.isdigit() else name or None


ENERGY_WINDOW_MIN_S = 10.0
"""NVML updates its counter at least every 0.1 s, so the two edges of a window blur 10 s by at most 2 %."""

FIGURE_KINDS = (
    *("comparison", "energy", "host_share", "latency", "machines", "map", "memory", "precisions", "roofline"),
    *("speedups", "throughput", "time_split", "times", "trade_off", "utilisation"),
)
"""The kinds of figures, as studies name them; `figures.registry` draws them."""
