"""Which storages exist on a device while a step runs, and what each of them is for.

Memory belongs to storages, which several tensors may share; so every figure here sums storages, each once. What a
storage is for often shows only after the moment of the peak (a gradient is computed before it becomes a parameter's
`.grad`), so lives are recorded first, and read once the step is over.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ROLES = ("parameter", "resident", "optimizer", "gradient", "outside", "activation", "temporary")
"""What a storage can be for; where several hold, the first counts. `outside`: was there before the step."""


@dataclass
class _Life:
    """One storage: its size, and its life on the ledger's clock."""

    nbytes: int
    born: int
    role: str
    died: float = math.inf


class Ledger:
    """The lives of a device's storages, on a clock that ticks once an operation.

    `level` reads the device's high-water mark, which places the peak within the operation that raised it; without one
    the peak is where the sum of the storages is largest.
    """

    def __init__(self, device_type: str, level: Callable[[], int] | None = None) -> None:
        self.device_type = device_type
        self.level = level or self._living_bytes
        self.clock = 0
        self.peak_moment = 0
        self._highest = -1
        self._sum = 0
        self._lives: list[_Life] = []
        self._living: dict[int, tuple[_Life, weakref.ref[torch.UntypedStorage]]] = {}

    def see(self, tensors: Iterable[Any], role: str = "temporary") -> None:
        """Record the storages that are new, as being for `role`; what is no tensor of this device is passed over."""
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor):
                self._life_of(tensor, role)

    def claim(self, tensors: Iterable[Any], role: str) -> None:
        """Say what storages are for, new or not, unless what they are known to be for goes first."""
        for tensor in tensors:
            life = self._life_of(tensor, role) if isinstance(tensor, torch.Tensor) else None
            if life is not None:
                life.role = min(life.role, role, key=ROLES.index)

    def tick(self) -> None:
        """End an operation: note whether this was the peak."""
        level = self.level()
        if level > self._highest:
            self._highest, self.peak_moment = level, self.clock
        self.clock += 1

    def bytes_at(self, moment: int) -> dict[str, int]:
        """Bytes of the storages that existed at a tick, by what they are for."""
        found = dict.fromkeys(ROLES, 0)
        for life in self._lives:
            if life.born <= moment < life.died:
                found[life.role] += life.nbytes
        return found

    def _living_bytes(self) -> int:
        return self._sum

    def _life_of(self, tensor: torch.Tensor, role: str) -> _Life | None:
        if tensor.device.type != self.device_type or tensor.layout is not torch.strided:
            return None  # a sparse tensor has no storage of its own
        storage = tensor.untyped_storage()
        key, nbytes = storage._cdata, storage.nbytes()
        if key in self._living:
            life, _ = self._living[key]
            if life.nbytes == nbytes:
                return life
            role = life.role
            self._end(key)  # resized
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
    """Shows every operation's tensors to a ledger, those of the backward pass and of the optimizer included."""

    def __init__(self, ledger: Ledger) -> None:
        TorchDispatchMode.__init__(self)
        self.ledger = ledger

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.ledger.see(tree_leaves((args, kwargs)), "outside")
        result = func(*args, **(kwargs or {}))
        self.ledger.see(tree_leaves(result))
        self.ledger.tick()
        return result
