"""The columns of a trial's and of a training's row, with their units, and writing a row to its file.

Measuring code imports this module, which therefore imports neither torch nor pandas, and pyarrow only where needed.
"""

from __future__ import annotations

import dataclasses
import io
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from crossover.config.words import EXECUTIONS, HERE

if TYPE_CHECKING:
    import pyarrow

SCHEMA_VERSION = 10
TRAINING_VERSION = 4


def column(doc: str, unit: str = "") -> Any:
    """A field for a column, with its description and unit."""
    return field(default=None, metadata={"doc": doc, "unit": unit})


@dataclass(frozen=True, kw_only=True)
class Row:
    """The common columns of trials and trainings; null if not measured, or not known on the machine."""

    number: ClassVar[str]
    """The column that numbers the rows of a cell."""

    schema_version: int = field(default=SCHEMA_VERSION, metadata={"doc": "version of these columns", "unit": ""})
    study: str | None = column("name of the study")
    workload: str | None = column("name of the workload's module; `model` for the user's own model")
    model: str | None = column("the user's model: file or module, and function")
    variant: str | None = column("option of the workload, such as channels_last; `plain` without an option")
    protocol: str | None = column(
        "where a step's data come from: `resident` (already on the device), `loaded` (batch by batch), `from_host` or "
        "`from_pageable` (copied from pinned or pageable memory, and the results copied back), `each` (on several "
        "GPUs, of which each takes a batch, and to which times per batch belong), `cold` (resident, single calls with "
        "evicted caches), or `as_published` (as in the workload's source)"
    )
    batch_size: int | None = column("batch size", "samples")
    precision: str | None = column("arithmetic of the step")
    execution: str | None = column("how the step runs: " + ", ".join(EXECUTIONS))
    size: int | None = column("position on the workload's size axis")
    machine: str = field(
        default=HERE, metadata={"doc": f"name of the machine or class of nodes; `{HERE}` without a name", "unit": ""}
    )
    device: str | None = column("kind of device; `cpu-1` and `cpu-half` are the CPU on fewer cores")
    size_name: str | None = column("what the size axis counts")
    size_label: str | None = column("name shown for the size, such as resnet18")
    batch_name: str | None = column("what the batch size counts if it is a second size of a function; null for samples")
    parameters: int | None = column("parameters of the model; in training only those that are trained")
    seed: int | None = column("seed of weights and data order, to which a trial adds its number")
    status: str | None = column("status of the trial or training: ok, oom, unsupported, timeout, invalid")
    reason: str | None = column(
        "reason for a status other than ok; if ok, notes on the step and errors of passes after the timing"
    )

    device_name: str | None = column("name of the device")
    device_uuid: str | None = column("UUID of the GPU")
    driver_version: str | None = column("version of the NVIDIA driver")
    cuda_version: str | None = column("CUDA (or HIP) version that torch was built for")
    cudnn_version: str | None = column("cuDNN version that torch uses")
    hostname: str | None = column("name of the host")
    operating_system: str | None = column("operating system and kernel")
    cpu_model: str | None = column("CPU of the host")
    cpu_capability: str | None = column("CPU instruction set that torch uses")
    physical_cores: int | None = column("physical cores that affinity, CPU quota and Slurm allow the process to use")
    threads: int | None = column("number of torch's threads within an operation")
    backend_settings: str | None = column("torch's settings and numbers of threads, as last read, JSON")
    environment_variables: str | None = column("environment variables that may change a time, JSON")
    isolation: str | None = column("`server` for a process forked by the trial server, `process` for a new process")
    torch_version: str | None = column("version of torch")
    python_version: str | None = column("version of Python")
    crossover_version: str | None = column("version of this workflow")
    code_version: str | None = column("git commit of the measuring code, `-dirty` if changed; null without git")
    code_key: str | None = column(
        "hash of the files that the trial or training uses, of `packages`, and of all else that the user's model uses"
    )
    model_key: str | None = column("hash of the files that only the workload uses; for the user's model, of its files")
    measurement_key: str | None = column(
        "hash of the files that the trial or training uses, other than those of `model_key`"
    )
    packages: str | None = column("versions of Python, torch and the packages that the workload imports, JSON")
    plan_key: str | None = column(
        "hash of all that the plan of the run knew to change a time: settings, code, dataset, versions, environment "
        "variables and hardware; null for a command run by hand"
    )
    command: str | None = column("command that repeats the measurement")


@dataclass(frozen=True, kw_only=True)
class Measurement(Row):
    """One trial's result."""

    number = "trial"

    trial: int | None = column("number of the trial, from 1")
    started_at: str | None = column("start of the trial, UTC, ISO 8601")
    flag_names: list[str] | None = column("reasons to doubt an ok result")

    step_time_s: float | None = column("median of samples_s, or their mean if steps differ", "s")
    step_time_mean_s: float | None = column("mean of samples_s", "s")
    step_time_iqr_s: float | None = column("interquartile range of samples_s", "s")
    samples_s: list[float] | None = column("time of each timed block divided by its number of steps", "s")
    rank_times_s: list[float] | None = column("median time of a step on each of several GPUs or processes", "s")
    unsynced_s: float | None = column(
        "median time of a step on several GPUs or processes without the all-reduce of gradients, beside split_step_s",
        "s",
    )
    averaged_bytes: int | None = column("gradients that several GPUs or processes average in a step", "B")
    averaged_error: float | None = column(
        "relative difference of gradients averaged over several GPUs from those of one on the whole batch"
    )
    severe_outliers: int | None = column("number of samples_s above the third quartile + 3 interquartile ranges")
    block_steps: int | None = column("steps in a timed block, between two synchronisations")
    timed_s: float | None = column("sum of all timed blocks", "s")
    timed_steps: int | None = column("steps in all timed blocks")
    timed_cpu_s: float | None = column(
        "CPU time of the process during the timing; divided by timed_s, the mean number of busy cores", "s"
    )
    samples_per_step: float | None = column("samples per step, mean over timed steps", "samples")
    sample_name: str | None = column("name of the samples, such as tokens; `calls` for a function that counts none")
    first_step_s: float | None = column("time of the process's first step, synchronised", "s")
    compile_s: float | None = column("time of compilation (part of the first step), or of capturing a CUDA graph", "s")
    dynamic_shapes: bool | None = column(
        "whether the step was compiled for batches of changing shapes; null if it was not compiled"
    )
    warmup_s: float | None = column("time of the warm-up after the first step", "s")
    warmup_steps: int | None = column("steps of the warm-up, including the first step")
    spent_s: str | None = column("time of each phase of the process since it was started or forked, JSON", "s")

    device_time_s: float | None = column("median of device_samples_s", "s")
    device_samples_s: list[float] | None = column(
        "time between the device events around each timed block, divided by its number of steps", "s"
    )
    device_busy_s: float | None = column("time per step in which the device ran a kernel or copy, by the profiler", "s")
    device_work_s: float | None = column(
        "device_busy_s without copies from host memory and, if the protocol includes them, copies to host memory",
        "s",
    )
    host_bound_share: float | None = column(
        "share of a step in which only the host works: 1 - device_busy_s / step_time_s, at least 0"
    )
    kernels_per_step: float | None = column("kernels and copies that a step launches on the device, by the profiler")
    split_step_s: float | None = column("time of the step, measured again, interleaved with the remedies", "s")
    loading_s: float | None = column("time to get the next batch, including its copy to the device if any", "s")
    transfer_s: float | None = column(
        "time to copy a prepared batch to the device, from the same kind of memory as in the step", "s"
    )
    pinned_transfer_s: float | None = column("time to copy a prepared batch to the device from pinned memory", "s")
    prepared_s: float | None = column("remedy: step time on a batch prepared in host memory", "s")
    pinned_s: float | None = column("remedy: step time on a batch prepared in pinned memory", "s")
    held_s: float | None = column("remedy: step time on a batch that stays on the device", "s")
    replayed_s: float | None = column(
        "remedy: step time of one CUDA graph on a resident batch, without reading results back", "s"
    )
    fits_graph: bool | None = column("whether a CUDA graph can capture the step; empty if not tried")
    host_work_s: float | None = column(
        "time between the operators of a step on a resident batch, without the first 0.1 ms of each gap",
        "s",
    )
    one_thread_s: float | None = column("remedy: step time on a resident batch with one CPU thread", "s")
    half_threads_s: float | None = column("remedy: step time on a resident batch with half of the threads", "s")
    larger_s: float | None = column("remedy: step time on a resident batch with four times the rows", "s")
    latencies_s: list[float] | None = column("times of individually synchronised steps", "s")
    latencies_device_s: list[float] | None = column("times of steps, between device events around each step", "s")
    latencies_cold_s: list[float] | None = column("mistake: times of the process's first steps, synchronised", "s")
    latencies_unsynchronised_s: list[float] | None = column(
        "mistake: times of steps by the host's clock, without waiting for the device", "s"
    )
    latencies_transfer_s: list[float] | None = column(
        "mistake: times of steps that include transfers of input and result", "s"
    )
    latency_p50_s: float | None = column("median of latencies_s; empty for fewer than 6", "s")
    latency_p50_low_s: float | None = column("lower end of the median's 95 % interval, from order statistics", "s")
    latency_p50_high_s: float | None = column("upper end of the median's 95 % interval, from order statistics", "s")
    latency_p95_s: float | None = column("95th percentile of latencies_s; empty for fewer than 72", "s")
    latency_p95_low_s: float | None = column(
        "lower end of the 95 % interval of latency_p95_s, from order statistics", "s"
    )
    latency_p95_high_s: float | None = column(
        "upper end of the 95 % interval of latency_p95_s, from order statistics", "s"
    )
    latency_p99_s: float | None = column("99th percentile of latencies_s; empty for fewer than 368", "s")
    latency_p99_low_s: float | None = column(
        "lower end of the 95 % interval of latency_p99_s, from order statistics", "s"
    )
    latency_p99_high_s: float | None = column(
        "upper end of the 95 % interval of latency_p99_s, from order statistics", "s"
    )
    flops_per_step: int | None = column(
        "operations of matmuls, convolutions and attention in an eager step; empty if one of its operators has "
        "products that cannot be counted, such as a recurrent layer, a Fourier transform or a product of integers",
        "FLOP",
    )
    products_bytes_by_working_set: list[float] | None = column(
        "bytes moved by matmuls, convolutions and attention in an eager step; element k is for operators that move "
        "2^k to 2^(k+1) B each",
        "B",
    )
    others_bytes_by_working_set: list[float] | None = column(
        "bytes moved by all other operators in an eager step, as in products_bytes_by_working_set", "B"
    )
    products_s: float | None = column(
        "time of matmuls, convolutions and attention in an eager step, timed one by one, each minus the time of a "
        "tiny product",
        "s",
    )
    others_s: float | None = column(
        "time of all other operators in an eager step, timed one by one, each minus the time of a tiny sum", "s"
    )
    working_s: float | None = column("median time of a synchronised step, from when its batch is available", "s")
    check: str | None = column(
        "result of the numerical check in a cell's first trial: passed, failed, not_checked, waived (by the study)"
    )
    relative_error: float | None = column("relative error of the step's result, in the Euclidean norm")
    gradient_error: float | None = column("relative error of the step's gradient, in the Euclidean norm")
    checked_rows: int | None = column("rows of the batch that the check compares", "samples")
    max_abs_error: float | None = column("largest absolute error, as defined by the workload's source")
    max_relative_error: float | None = column("largest relative error, as defined by the workload's source")

    base_bytes: int | None = column("memory of tensors before the step", "B")
    peak_allocated_bytes: int | None = column("peak memory of tensors", "B")
    peak_reserved_bytes: int | None = column("peak memory reserved by the allocator", "B")
    device_used_bytes: int | None = column("memory in use on the whole device after the step", "B")
    process_device_bytes: int | None = column("device memory of the process, by the driver (NVML)", "B")
    rss_growth_bytes: int | None = column("memory that a step adds to the process: its peak minus that before it", "B")
    base_rss_bytes: int | None = column(
        "resident memory of the process before the step: mostly torch, and less in a fork", "B"
    )
    peak_rss_bytes: int | None = column("peak resident memory of the process, with `base_rss_bytes`", "B")
    memory_source: str | None = column("source of the peak: an allocator, VmHWM or sampled RSS")
    parameter_bytes: int | None = column("parameters at the step's peak", "B")
    gradient_bytes: int | None = column("gradients at the step's peak", "B")
    optimizer_bytes: int | None = column("optimizer state at the step's peak", "B")
    activation_bytes: int | None = column("activations kept for the backward pass at the step's peak", "B")
    resident_bytes: int | None = column("resident data and the model's buffers at the step's peak", "B")
    other_bytes: int | None = column("the rest of the peak (on the CPU, of its growth): workspace and temporaries", "B")
    energy_j: float | None = column("energy of the device during the timing, if this took at least 10 s", "J")
    energy_source: str | None = column("source of the energy: NVML (whole board) or RAPL (all CPU packages)")
    energy_per_step_j: float | None = column("energy of a step", "J")

    affinity: list[int] | None = column("logical CPUs that the process may run on")
    cgroup_cpus: float | None = column("CPU quota of the control group, in CPUs; null without one")
    numa_nodes: int | None = column("number of NUMA nodes of the CPUs in `affinity`")
    turbo: bool | None = column("whether the CPU may raise its clock (turbo)")
    steal_share: float | None = column(
        "share of the CPU time needed on the cores in `affinity` that the hypervisor took away during the timing"
    )
    cpu_pressure_share: float | None = column(
        "share of the timing in which at least one task of the host waited for a CPU (PSI)"
    )
    others_cpus: float | None = column(
        "CPUs that other programs kept busy during the timing, among the cores in `affinity`"
    )
    host_others_cpus: float | None = column(
        "CPUs that other programs kept busy during the timing, among all CPUs of the host"
    )
    children_cpus: float | None = column(
        "CPUs that the trial's child processes, such as data loaders, kept busy during the timing"
    )
    cgroup_throttled_s: float | None = column(
        "time for which the CPU quota throttled the control group during the timing, summed over CPUs", "s"
    )
    involuntary_switches: int | None = column("involuntary context switches during the timing")
    foreign_processes: int | None = column("number of other compute processes that had the device open, busy or idle")
    foreign_gpu_share: float | None = column(
        "share of the GPU that other processes used during the timing, by the driver's samples"
    )
    leased_beside: int | None = column(
        "number of other leased GPUs of the host, the larger of the numbers at the start and the end of the timing"
    )
    allocator_retries: int | None = column("allocator retries during the timing")
    recompiles: int | None = column("recompilations during the timing")
    mig: bool | None = column("whether the GPU is partitioned (MIG)")
    power_limit_w: float | None = column("power limit of the GPU", "W")
    sm_clock_default_mhz: float | None = column("default SM clock for applications; null if the GPU has none", "MHz")
    sm_clock_max_mhz: float | None = column("highest SM clock", "MHz")
    sm_clock_before_mhz: float | None = column("SM clock when the trial started", "MHz")
    sm_clock_after_mhz: float | None = column("SM clock under load, right after the timing", "MHz")
    temperature_before_c: float | None = column("temperature of the GPU when the trial started", "°C")
    temperature_after_c: float | None = column("temperature of the GPU under load, right after the timing", "°C")
    throttle_reasons: list[str] | None = column("reasons why the GPU lowered its clocks during the timing")
    slowdown_s: float | None = column(
        "time for which heat or hardware protection slowed the GPU down during the timing", "s"
    )
    power_capped_s: float | None = column("time for which the power limit lowered the clocks during the timing", "s")

    device_memory_bytes: int | None = column("memory of the GPU", "B")
    amx: bool | None = column("whether the CPU has AMX, which speeds up bf16 and int8")
    avx512_bf16: bool | None = column("whether the CPU has AVX512-BF16")
    affinity_cores: int | None = column("physical cores in `affinity`, regardless of quota and Slurm")
    logical_cpus: int | None = column("number of logical CPUs that the process may use")
    memory_bytes: int | None = column("memory of the host", "B")
    governor: str | None = column("frequency governor of the first CPU")
    load_before: float | None = column("load average over one minute when the trial started")
    load_after: float | None = column("load average over one minute right after the timing")
    interop_threads: int | None = column("number of torch's threads across operations")
    effort: str | None = column("measuring effort, JSON")
    repeat: int | None = column("number of earlier measurements of the trial, all of them disturbed")
    attempts: int | None = column("number of attempts: 2 if the first was invalid for a temporary reason")
    turn_missed: str | None = column("process of another user that kept its turn so long that the trial ran beside it")
    lease_wait_s: float | None = column("time that the trial waited for its turn on the host and for a free GPU", "s")


@dataclass(frozen=True, kw_only=True)
class Training(Row):
    """One training of a model, always `resident` and `eager`, with its predictions."""

    number = "seed"

    schema_version: int = field(default=TRAINING_VERSION, metadata={"doc": "version of these columns", "unit": ""})
    epochs: int | None = column("passes over the training set")
    test_share: float | None = column("share of the dataset's rows held out")
    generated_data: bool | None = column("whether the dataset's rows are generated; empty unless the status is ok")
    labels: list[int] | None = column("classes of the held-out rows")
    predictions: list[int] | None = column("classes that the trained model predicts for the held-out rows")
    loss: float | None = column("mean cross entropy of the held-out rows", "nat")
    steps: int | None = column("training steps")
    train_s: float | None = column("wall time of all epochs, shuffling included", "s")


COLUMNS = tuple(column.name for column in dataclasses.fields(Measurement))


def value_types(record: Any) -> dict[str, str]:
    """The type of each column's values as text, by name: str, int, float, bool, or a list such as list[float]."""
    return {column.name: str(column.type).removesuffix(" | None") for column in dataclasses.fields(record)}


def arrow_schema(record: Any = Measurement) -> pyarrow.Schema:
    """The Arrow schema of a record, with doc and unit in each column's metadata."""
    return _arrow_schema(record)


@cache
def _arrow_schema(record: Any) -> pyarrow.Schema:
    import pyarrow as pa

    arrow_types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    arrow_types |= {f"list[{name}]": pa.list_(arrow_type) for name, arrow_type in arrow_types.items()}
    type_of = value_types(record)
    return pa.schema(
        [
            pa.field(column.name, arrow_types[type_of[column.name]], metadata=column.metadata)
            for column in dataclasses.fields(record)
        ]
    )


def write_record(record: Row, path: Path) -> None:
    """Write a record as the only row of a Parquet file, not atomically.

    Arrow's JSON reader makes the row, because Arrow's conversions of Python values import pandas.
    """
    import pyarrow.json
    import pyarrow.parquet

    schema = arrow_schema(type(record))
    text = json.dumps(vars(record), allow_nan=False).encode()
    table = pyarrow.json.read_json(
        io.BytesIO(text),
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    # The metadata is never compressed, so that a plan finds the key and the reason without Arrow.
    table = table.cast(schema).replace_schema_metadata(
        {"plan_key": record.plan_key or "", "reason": record.reason or ""}
    )
    # For a single row, dictionary encoding and statistics only slow reading down.
    pyarrow.parquet.write_table(table, path, use_dictionary=False, write_statistics=False)
