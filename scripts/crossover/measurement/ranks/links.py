"""Measured rates of the links between several GPUs, or of other roofs on one device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import distributed

from crossover.measurement import Tell, ignore
from crossover.measurement.clock.timing import Stopwatch
from crossover.measurement.process.jobs import ProbeJob
from crossover.measurement.ranks.group import Group, fork_ranks
from crossover.measurement.roofs import row_of, run_probe, timed
from crossover.measurement.step.devices import OpenDevice, open_device

SIZES = tuple(2**power for power in range(12, 29, 4))
"""Bytes of the tensors that are reduced."""


def run(job: ProbeJob, tell: Tell = ignore) -> tuple[str, None, dict[str, Any]]:
    """Probe one device, as `run_probe`, or the links between several by all-reduces of several sizes."""
    group, own_job = fork_ranks(job, work, tell)
    if group is None:
        return run_probe(job, tell)
    result = None
    try:
        result = run_probe(own_job, tell, partial(_all_reduces, group, job))
    finally:
        group.end(gracefully=result is not None)
    return result


def work(group: Group, job: ProbeJob) -> None:
    target = open_device(job.cell.device)
    _prepare(group, job, target)
    group.obey(Stopwatch(synchronise=target.synchronise))


def _prepare(group: Group, job: ProbeJob, target: OpenDevice) -> None:
    torch.set_num_threads(job.threads)
    group.connect(target.device, job.time_limit_s)
    tensors = [torch.zeros(size // 4, device=target.device) for size in SIZES]
    group.steps = [partial(distributed.all_reduce, tensor) for tensor in tensors]


def _all_reduces(
    group: Group, job: ProbeJob, target: OpenDevice, _threads: int, watch: Stopwatch, _precisions: object
) -> Iterator[dict[str, Any]]:
    """Rows with the bytes of a tensor over the seconds that its all-reduce takes."""
    if not group.steps:
        _prepare(group, job, target)
    for step, size in zip(group.steps, SIZES, strict=True):
        times_s = timed(step, group.watch(watch), size).times_s(group.watch(watch))
        yield row_of("all_reduce", times_s, size, "B/s", working_set_bytes=size)
