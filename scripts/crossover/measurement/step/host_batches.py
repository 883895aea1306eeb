"""Batches in host memory: each step copies its batch to the device and its results back, as a server does.

From pinned memory, the host does not wait for a batch to be copied. It waits for the copies of results, which go to
pageable memory.
"""

from __future__ import annotations

import torch

from crossover.errors import UnsupportedError
from crossover.measurement.step.tasks import Task, step_results
from crossover.measurement.step.trees import map_plain, tensors_of


def copy_each_step(task: Task, pinned: bool) -> None:
    """Move a task's batches to host memory, in the task's arithmetic, so that each step copies its batch.

    Raises UnsupportedError for tensors that cannot be pinned, and for a workload that makes its batches on the device.
    """

    def move(tensor: torch.Tensor) -> torch.Tensor:
        if not pinned:
            return tensor.cpu()
        if tensor.layout != torch.strided:
            raise UnsupportedError("from_host pins dense tensors only; use from_pageable")
        return tensor.cpu().pin_memory()

    task.move_batches(move)
    if any(tensor.device.type != "cpu" for tensor in tensors_of(task.next_inputs())):
        raise UnsupportedError("the workload makes its batches on the device; use protocol resident")
    task.copies, task.pinned = True, pinned
    device, host_ids = task.arithmetic.device, task.host_ids
    next_batch, observe = task.next_inputs, task.observe

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        return tensor if id(tensor) in host_ids else tensor.to(device, non_blocking=pinned)

    def note(*results: torch.Tensor) -> None:
        task.results = step_results(task, results)
        observe(*results)

    vars(task).update(next_batch=next_batch, next_inputs=lambda: map_plain(copied, next_batch()), observe=note)
