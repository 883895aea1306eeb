"""The fixed words of measuring: devices, precisions, executions, protocols and the axes of a cell.

Trials import this module. Words for readers, such as those of statuses and flags, are in other modules.
"""

from __future__ import annotations

DEVICES = ("cpu", "cuda", "mps", "xpu")
PRECISIONS = ("fp32", "tf32", "amp-bf16", "amp-fp16", "bf16", "fp16", "fp64")
AS_WRITTEN = "as_written"
"""The precision of a plain function, which chooses its own; torch's settings are those for fp32."""
COMPUTES_IN = {"amp-bf16": "bf16", "amp-fp16": "fp16"}
"""The precision of the matrix products in each mixed precision."""
EXECUTIONS = ("eager", "compile", "cuda-graph")
CUDA_GRAPH = EXECUTIONS[2]
PROTOCOLS = ("resident", "as_published", "loaded", "from_host", "from_pageable", "each", "cold")
FROM_HOST = PROTOCOLS[1:5]
"""Protocols in which a step may take its data from the host."""
LOADING = PROTOCOLS[1:3]
"""Protocols in which a step may wait for a data loader."""
COPYING = PINNED, _ = PROTOCOLS[3:5]
"""Protocols in which a step copies a batch from pinned or pageable memory to the accelerator, and the results back."""
EACH = PROTOCOLS[5]
"""The protocol in which each of several GPUs takes a batch of its own (weak scaling), resident on it. In `resident`,
they share a batch (strong scaling)."""
COLD = PROTOCOLS[6]
"""The protocol of single calls on resident data, before each of which the caches are evicted and the device idles."""
PLAIN = "plain"

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


GPUS = "gpus"
"""The kind of pair of several GPUs with fewer of the same host."""

BASELINE_SETTINGS = {"precision": PRECISIONS[0], "execution": EXECUTIONS[0]}
"""The baseline precision and execution, with which the others on a device are compared; without these in a study, the
first that it lists."""


SEVERAL = r"cuda-([2-9]|[1-9][0-9])|cpu-([2-9]|[1-9][0-9])x[1-9][0-9]{0,2}"
"""Pattern of the sides on which several processes, the ranks, train one model."""


def ranks_of_side(device: str) -> int:
    """Number of processes of a side: 2 for `cuda-2`, and for `cpu-2x1`, which has 1 core for each. 1 for others."""
    kind, _, count = device.partition("-")
    ranks, times, _ = count.partition("x")
    return int(ranks) if times or (ranks and kind != BASELINE) else 1


def runs_on_ranks(protocol: str, execution: str) -> bool:
    """Whether several GPUs run a step in this way: eagerly, on resident batches."""
    return execution == EXECUTIONS[0] and protocol in (PROTOCOLS[0], EACH)


def unit_of_side(device: str) -> str:
    """The side that is one of a side's processes: `cuda` for `cuda-2`, `cpu-1` for `cpu-2x1`."""
    kind, _, count = device.partition("-")
    if ranks_of_side(device) == 1:
        return device
    return f"{kind}-{count.partition('x')[2]}" if kind == BASELINE else kind


def threads_of_side(device: str) -> int | str | None:
    """Threads of each process of the CPU on fewer cores: 1 for `cpu-1`, HALF for `cpu-half`. None for other sides."""
    threads = unit_of_side(device).partition("-")[2]
    return int(threads) if threads.isdigit() else threads or None


ENERGY_WINDOW_MIN_S = 10.0
"""Minimum time over which energy is measured. NVML updates its counter at least every 0.1 s, so over 10 s the two
readings add an error of at most 2 %."""
