"""The memory pass: a step's peak memory, split into parameters, gradients, activations and other parts.

Activations are freed while gradients are allocated, so the parts' own peaks could sum to more than the peak. One eager
step is therefore observed, and the parts are those at the operation that sets the peak.

Several tensors may share a storage, so memory is counted by storage. A storage's role may become known only after the
peak: a gradient is computed before it becomes a parameter's `.grad`. Lifetimes are therefore recorded during the step
and evaluated after it.
"""

from __future__ import annotations

import gc
import math
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pynvml
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from crossover.machine.nvml import ask, open_gpu
from crossover.measurement.modules import buffers_of, parameters_of
from crossover.measurement.resident_memory import measure_host

STEPS = 2
"""Number of steps. The second runs with the gradients and the optimizer state that the first leaves."""

PARTS = ("parameter", "gradient", "optimizer", "activation", "resident")

ROLES = ("parameter", "resident", "optimizer", "gradient", "outside", "activation", "temporary")
"""Roles of a storage, highest priority first; `outside` is for other storages that existed before the step."""


@dataclass(frozen=True)
class Subject:
    """An eager step to observe, and tensors whose role is known."""

    step: Callable[[], None]
    model: nn.Module
    optimizer: torch.optim.Optimizer | None = None
    resident: tuple[torch.Tensor, ...] = ()


def measure_memory(step: Callable[[], None], device: torch.device, uuid: str | None = None) -> dict[str, Any]:
    """Measure a step's peak memory; returns the memory columns of `Measurement` except the parts of the peak.

    On CUDA and XPU, the caching allocator records the peaks. Its cache is emptied first, so that the reserved peak does
    not include memory cached by earlier steps. MPS records no peak.
    """

    def steps() -> None:
        for _ in range(STEPS):
            step()

    if device.type == "cpu":
        return measure_host(steps)
    if device.type == "mps":
        return {}
    accelerator = torch.get_device_module(device)
    gc.collect()
    accelerator.synchronize(device)
    accelerator.empty_cache()
    base_bytes = accelerator.memory_allocated(device)
    accelerator.reset_peak_memory_stats(device)
    steps()
    accelerator.synchronize(device)
    columns = {
        "base_bytes": base_bytes,
        "peak_allocated_bytes": accelerator.max_memory_allocated(device),
        "peak_reserved_bytes": accelerator.max_memory_reserved(device),
        "memory_source": f"{device.type.upper()} allocator",
    }
    if device.type == "cuda":
        free_bytes, total_bytes = accelerator.mem_get_info(device)
        columns |= {"device_used_bytes": total_bytes - free_bytes, "process_device_bytes": process_bytes(uuid)}
    return columns


def split_memory(subject: Subject, device: torch.device, peak: Mapping[str, Any]) -> dict[str, int]:
    """Split the peak that `measure_memory` returned into parts, by observing one eager step.

    `other_bytes` is the rest of the peak, at least 0. On an accelerator it is the allocated peak minus the parts:
    temporaries, workspaces, rounding to blocks of 512 bytes. On the CPU it is the process's growth from base to peak
    minus the parts' growth: temporaries, workspaces, gaps in the heap. Raises the errors of the observed step. Some
    steps that compute derivatives in their forward pass fail when observed.
    """
    if device.type == "cpu":
        split = split_step(subject, device)
        rest = peak["rss_growth_bytes"] - split.added_bytes
        return {**split.columns, "other_bytes": max(0, rest)}
    if device.type == "mps":
        return split_step(subject, device).columns
    accelerator = torch.get_device_module(device)
    gc.collect()
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats(device)
    columns = split_step(subject, device, lambda: int(accelerator.max_memory_allocated(device))).columns
    return {**columns, "other_bytes": max(0, peak["peak_allocated_bytes"] - sum(columns.values()))}


def process_bytes(uuid: str | None) -> int | None:
    """Memory of this process on an NVIDIA GPU: context, libraries and allocator together.

    None if NVML reports no memory for this process, as in a container with its own PID namespace.
    """
    with open_gpu(uuid, pynvml) as gpu:
        running = None if gpu is None else ask(pynvml, lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(gpu.device))
    used_bytes = [process.usedGpuMemory for process in running or () if process.pid == os.getpid()]
    return None if not used_bytes or None in used_bytes else int(sum(used_bytes))


@dataclass(frozen=True)
class Split:
    columns: dict[str, int]
    """Bytes by column, such as `parameter_bytes`. Activations are the tensors that the step saves for the backward
    pass: intermediate results, autocast's copies of weights, and the batch, if it is not a view of resident data.
    `resident_bytes` are the resident data and the model's buffers."""
    added_bytes: int
    """Growth of the parts from the start of the step to its peak; negative if the step first frees memory."""


def split_step(subject: Subject, device: torch.device, level: Callable[[], int] | None = None) -> Split:
    """Observe one step, and split its memory on `device` at the step's peak.

    `level` reads the device's high-water mark. Without it, the peak is where the tensors' total size is largest, which
    misses memory allocated by kernels.
    """
    ledger = Ledger(device.type, level)
    groups = getattr(subject.optimizer, "param_groups", ())
    trained: list[torch.Tensor] = [parameter for group in groups for parameter in group["params"]]
    parameters = list(dict.fromkeys([*parameters_of(subject.model), *trained]))

    def claim_roles() -> None:
        ledger.claim(parameters, "parameter")
        ledger.claim((*subject.resident, *buffers_of(subject.model)), "resident")
        state = getattr(subject.optimizer, "state", {})  # a wrapper may hide the state
        ledger.claim(tree_leaves(list(state.values())), "optimizer")
        ledger.claim([parameter.grad for parameter in parameters], "gradient")

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        ledger.claim([tensor], "activation")
        return tensor.detach()  # otherwise an output and the autograd node that saves it would keep each other alive

    claim_roles()
    start = ledger.clock
    ledger.tick()
    with ExitStack() as stack:
        for parameter in parameters:
            if parameter.requires_grad:  # the step may drop its gradients before it ends
                hook = parameter.register_post_accumulate_grad_hook(lambda p: ledger.claim([p.grad], "gradient"))
                stack.enter_context(hook)
        stack.enter_context(saved_tensors_hooks(keep, lambda tensor: tensor))
        stack.enter_context(Observer(ledger))
        subject.step()
    claim_roles()
    before, at_peak = ledger.bytes_at(start), ledger.bytes_at(ledger.peak_moment)
    columns = {f"{part}_bytes": at_peak[part] for part in PARTS}
    return Split(columns, sum(at_peak[part] - before[part] for part in PARTS))


@dataclass
class _Life:
    nbytes: int
    born: int
    role: str
    died: float = math.inf


def _parts_of(value: Any) -> tuple[torch.Tensor, ...]:
    if not isinstance(value, torch.Tensor):
        return ()
    if value.layout is torch.sparse_coo:
        return value._indices(), value._values()
    return (value,) if value.layout is torch.strided else ()


class Ledger:
    """The lifetimes of a device's storages, on a clock that ticks once per operation.

    The peak is the last operation that raised `level` to a new maximum. By default, `level` is the sum of the live
    storages.
    """

    def __init__(self, device_type: str, level: Callable[[], int] | None = None) -> None:
        self.device_type = device_type
        self.clock = 0
        self.peak_moment = 0
        self._highest = -1
        self._sum = 0
        self._level = level or (lambda: self._sum)
        self._lives: list[_Life] = []
        self._living: dict[int, tuple[_Life, weakref.ref[torch.UntypedStorage]]] = {}

    def see(self, tensors: Iterable[Any], role: str = "temporary") -> None:
        """Record new storages with a role; values that are not tensors on this device are ignored."""
        for tensor in tensors:
            for part in _parts_of(tensor):
                self._life_of(part, role)

    def claim(self, tensors: Iterable[Any], role: str) -> None:
        """Give storages a role, unless their role has a higher priority."""
        for tensor in tensors:
            for part in _parts_of(tensor):
                life = self._life_of(part, role)
                if life is not None:
                    life.role = min(life.role, role, key=ROLES.index)

    def tick(self) -> None:
        level = self._level()
        if level > self._highest:
            self._highest, self.peak_moment = level, self.clock
        self.clock += 1

    def bytes_at(self, moment: int) -> dict[str, int]:
        role_bytes = dict.fromkeys(ROLES, 0)
        for life in self._lives:
            if life.born <= moment < life.died:
                role_bytes[life.role] += life.nbytes
        return role_bytes

    def _life_of(self, tensor: torch.Tensor, role: str) -> _Life | None:
        if tensor.device.type != self.device_type:
            return None
        storage = tensor.untyped_storage()
        key, nbytes = storage._cdata, storage.nbytes()
        if key in self._living:
            life, _ = self._living[key]
            if life.nbytes == nbytes:
                return life
            role = life.role
            self._end(key)  # the storage was resized
        life = _Life(nbytes, self.clock, role)
        self._lives.append(life)
        self._living[key] = life, weakref.ref(storage, lambda _: self._end(key))
        self._sum += nbytes
        return life

    def _end(self, key: int) -> None:
        life, _ = self._living.pop(key)
        life.died = self.clock
        self._sum -= life.nbytes


class Observer(TorchDispatchMode):
    """Records in a ledger the tensors of all operations, including the backward pass and the optimizer."""

    def __init__(self, ledger: Ledger) -> None:
        TorchDispatchMode.__init__(self)
        self.ledger = ledger

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ledger.see(tree_leaves((args, kwargs)), "outside")
        result = func(*args, **(kwargs or {}))
        self.ledger.see(tree_leaves(result))
        self.ledger.tick()
        return result
