"""The fixed words of configs and tables: devices, precisions, executions, statuses, flags and the axes of a cell."""

from __future__ import annotations

from dataclasses import dataclass

DEVICES = ("cpu", "cuda", "mps", "xpu")
PRECISIONS = ("fp32", "tf32", "amp-bf16", "amp-fp16", "bf16", "fp16", "fp64")
AS_WRITTEN = "as_written"
"""The precision of a plain function, which chooses its own; torch's settings are those for fp32."""
COMPUTES_IN = {"amp-bf16": "bf16", "amp-fp16": "fp16"}
"""The precision of the matrix products in each mixed precision."""
EXECUTIONS = ("eager", "compile", "cuda-graph")
CUDA_GRAPH = EXECUTIONS[2]
PROTOCOLS = ("resident", "as_published", "loaded", "from_host", "from_pageable")
FROM_HOST = PROTOCOLS[1:]
"""Protocols in which a step may take its data from the host."""
COPYING = PINNED, _ = PROTOCOLS[3:]
"""Protocols in which a step copies a batch from pinned or pageable memory to the accelerator, and the results back."""
PLAIN = "plain"


@dataclass(frozen=True)
class Word:
    """The description of a status or a flag, and a remedy."""

    meaning: str
    remedy: str
    count: str
    """The end of a sentence such as "3 cells with times that drift"."""

    def __str__(self) -> str:
        return f"{self.meaning}: {self.remedy}"


STATUSES = {
    "ok": Word("measured", "nothing", "measured"),
    "oom": Word(
        "out of memory",
        "this is a result; to get a time, use a smaller size or batch size, or a device with more memory",
        "out of memory",
    ),
    "unsupported": Word(
        "the device, precision or execution does not support a step that runs on the CPU in fp32",
        "this is a result; to get a time, use a device that supports it, or leave it out",
        "not supported by the device",
    ),
    "timeout": Word(
        "the time limit was reached, or the first steps showed that it would be",
        "this is a result; to get a time, raise time_limit_s, or leave the size out",
        "over the time limit",
    ),
    "invalid": Word(
        "the result cannot be used; see the reason column",
        "fix the cause given in the reason column, delete the trial's file in cells/ of the results folder, run again",
        "discarded as faulty",
    ),
}

FLAGS = {
    "drift": Word(
        "the last third of a trial's samples differs from the first by over 25 %; of a cell: in over a third of its "
        "trials, or by significantly more than 5 % on average",
        "let the machine cool down, measure again",
        "with times that drift",
    ),
    "not_checked": Word(
        "the step's result could not be checked",
        "see the reason column, or raise time_limit_s",
        "whose result was not checked",
    ),
    "incomplete": Word(
        "a pass after the timing did not finish, so its columns are empty",
        "raise time_limit_s, or see the reason column",
        "with a later pass cut short",
    ),
    "diverged": Word(
        "a weight was NaN or infinite when timing ended, which can change the speed of arithmetic",
        "take another precision",
        "with numbers that overflowed",
    ),
    "trials_differ": Word(
        "the standard deviation between trials is significantly above 15 %, or the trials are of two groups that are "
        "over 1.3 times apart",
        "stop other work, add trials",
        "whose times differ much from trial to trial",
    ),
    "above_roof": Word(
        "the step is faster than the measured roofs of its device allow",
        "delete the folder roofs in the results and run again: the probe was disturbed",
        "faster than the roofs of their device",
    ),
    "cast": Word(
        "the model was built in a precision other than the measured one",
        "add its precision to `precisions`; see the reason column",
        "of a model built in another precision",
    ),
    "warmup_capped": Word(
        "the warm-up reached its cap before it was long and steady enough",
        "raise effort.warmup_max_s",
        "with a warm-up that was cut short",
    ),
    "throttled": Word(
        "the GPU's clock was below 75 % of its default",
        "check its cooling and power limit",
        "on a GPU that clocked down",
    ),
    "busy_host": Word(
        "other processes used the cores that the trial needs",
        "stop them, or reserve the whole machine",
        "with other programs on their cores",
    ),
    "steal": Word(
        "the hypervisor gave others over 10 % of the CPU time that the host needed",
        "use a machine with dedicated CPUs, or measure again at a quieter time",
        "on a host whose CPU time others took",
    ),
    "shared_gpu": Word(
        "another process had the GPU open, and the driver does not report how much it used",
        "stop it, or use another GPU",
        "on a GPU that others had open",
    ),
    "side_by_side": Word(
        "most of the step waits for the host, which also ran trials on other GPUs",
        "set cluster.side_by_side to false",
        "beside trials on other GPUs of the host",
    ),
    "quota": Word(
        "a CPU quota held the process back for over 1 % of the time",
        "raise the quota, or lower cpu_threads",
        "held back by a CPU quota",
    ),
}
"""Flags of results with status `ok` that deserve less trust."""

DISTURBED = ("throttled", "busy_host", "steal", "shared_gpu", "side_by_side", "quota")
"""Flags of temporary disturbances, for which `repeat_disturbed` measures a trial again."""

HOST_BOUND_SHARE = 0.5
"""A step that waits for the host for more than this share of its time is slowed down by a busy host."""

BASELINE = "cpu"
"""The device that every accelerator is compared with."""
HALF = "half"
"""Half of the CPU's cores, as in `cpu-half`."""

LARGER_BATCH = 4
"""Factor by which a remedy for overhead enlarges the batch."""

AXES = ("study", "workload", "variant", "protocol", "batch_size", "precision", "execution", "size", "machine", "device")
"""The columns that identify a cell, in the order of its path under results/cells/."""
CPU_THREADS = "cpu_threads"
X_AXES = {"size": "size", "parameters": "size", "batch_size": "batch_size", CPU_THREADS: "device"}
"""X axes of crossovers, and for each the axis of cells that varies along it."""


def series_axes(x_axis: str) -> list[str]:
    """The axes that identify a series over an x axis: those of a cell except the device and the one that varies."""
    return [axis for axis in AXES if axis not in (X_AXES[x_axis], "device")]


REFERENCE_FILES = ("reference.json", "trials.parquet")
DIRTY = "-dirty"
"""Suffix of the commit if the code has uncommitted changes."""
HERE = "here"
"""The machine's name in a run without classes of nodes; paths leave this name out."""


def is_cpu(device: str) -> bool:
    """Whether a side is the CPU, on all of its cores or on fewer (`cpu-1`, `cpu-half`)."""
    return device.partition("-")[0] == BASELINE


BASELINE_SETTINGS = {"precision": PRECISIONS[0], "execution": EXECUTIONS[0]}
"""The baseline precision and execution, with which the others on a device are compared."""


def threads_of_side(device: str) -> int | str | None:
    """Threads of the CPU on fewer cores, such as 1 for `cpu-1` and HALF for `cpu-half`. None for any other side."""
    threads = device.partition("-")[2]
    return int(threads) if threads.isdigit() else threads or None


ENERGY_WINDOW_MIN_S = 10.0
"""Minimum time over which energy is measured. NVML updates its counter at least every 0.1 s, so over 10 s the two
readings add an error of at most 2 %."""

FIGURE_KINDS = (
    *("comparison", "energy", "host_share", "latency", "machines", "map", "memory", "precisions", "roofline"),
    *("speedups", "throughput", "time_split", "times", "trade_off", "utilisation"),
)
"""Kinds of figures that a study may name; `crossover.figures.registry` draws them."""
