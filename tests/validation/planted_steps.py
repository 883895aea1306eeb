"""The workload of check_bottlenecks.py: steps with known bottlenecks, in which each part takes about `size` ms.

A variant names its parts. `sleep` and `decode` prepare a batch on the host, `pageable` and `pinned` copy it to the
device, `host` sorts numbers in NumPy, `act` makes host and device wait for each other repeatedly, `launch` runs tiny
operations, `memory` adds vectors, and `compute` multiplies matrices.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import InferenceTask

SIZE_NAME = "milliseconds of each part"
SIZE_RANGE = (1, 1000)
DATASET = None
PROTOCOLS = ("as_published",)
VARIANTS = (
    "sleep",
    "decode",
    "pageable",
    "pinned",
    "host",
    "act",
    "launch",
    "memory",
    "compute",
    "sleep_launch",
    "decode_launch",
    "sleep_pageable",
    "pageable_compute",
    "pinned_memory",
    "memory_compute",
    "sleep_compute",
    "decode_memory",
    "launch_compute",
    "sleep_host",
    "host_launch",
    "host_memory",
    "host_compute",
    "act_memory",
    "act_compute",
)

WIDTH = {"cpu": 512}
"""Rows and columns of the matrix; 4096 on an accelerator."""
CALIBRATION_RUNS = 5
NUMBERS = np.random.default_rng(1).normal(size=4096)


class Parts(nn.Module):
    """(batch, columns) -> (batch, 1): the parts of a step after the preparation of its batch, each repeated."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(width, width) / width)
        self.repeats: dict[str, int] = {}

    def host(self, batch: torch.Tensor) -> torch.Tensor:
        np.sort(NUMBERS)
        return batch

    def act(self, batch: torch.Tensor) -> torch.Tensor:
        seen = batch[:1, :8].cpu().numpy()
        return torch.from_numpy(np.tanh(seen)).to(batch.device)

    def launch(self, batch: torch.Tensor) -> torch.Tensor:
        return batch[:1, :8] * 1.5

    def memory(self, batch: torch.Tensor) -> torch.Tensor:
        return batch.mul_(1.0)

    def compute(self, batch: torch.Tensor) -> torch.Tensor:
        columns = min(batch.shape[1], len(self.matrix))
        return batch[:, :columns] @ self.matrix[:columns]

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        for name, count in self.repeats.items():
            for _ in range(count):
                getattr(self, name)(batch)
        return batch[:, :1] * 2.0


def build_model(_size: int) -> Parts:
    return Parts(8)


class Planted(InferenceTask):
    not_comparable = "its results are discarded"

    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        device, self.part_s = arithmetic.device, cell.size / 1000
        width = WIDTH.get(device.type, 4096)
        model = Parts(width)
        super().__init__(model, arithmetic)
        self.parts = cell.variant.split("_")
        self.copied = next((part for part in self.parts if part in ("pageable", "pinned")), None)
        columns = 2 * width if self.copied or device.type != "cpu" else 16 * width
        self.batch = torch.randn(cell.batch_size, columns)
        if self.copied:
            self._size_the_copy()
        else:
            self.batch = arithmetic.place(self.batch)
        self.image = zlib.compress(torch.randint(0, 64, (2**17,), dtype=torch.uint8).numpy().tobytes(), 1)
        self.decodes = self._repeats(self._decode) if "decode" in self.parts else 0
        on_device = arithmetic.place(self.batch)
        for name in ("host", "act", "launch", "memory", "compute"):
            if name in self.parts:
                part: Callable[[torch.Tensor], torch.Tensor] = getattr(model, name)
                with torch.no_grad():
                    model.repeats[name] = self._repeats(lambda: part(on_device))  # noqa: B023 - run at once

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        """The batch, prepared and copied as the variant requires."""
        if "sleep" in self.parts:
            time.sleep(self.part_s)
        for _ in range(self.decodes):
            self._decode()
        if self.copied:
            return (self.batch.to(self.arithmetic.device, non_blocking=self.copied == "pinned"),)
        return (self.batch,)

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs),)

    def _decode(self) -> torch.Tensor:
        return torch.frombuffer(bytearray(zlib.decompress(self.image)), dtype=torch.uint8).to(torch.float32) / 255

    def _size_the_copy(self) -> None:
        """Choose the width of the batch so that its copy takes `part_s`."""
        pinned = self.copied == "pinned"
        trial = self.batch.pin_memory() if pinned else self.batch
        copy_s = self._seconds(lambda: trial.to(self.arithmetic.device, non_blocking=pinned))
        columns = max(8, round(self.batch.shape[1] * self.part_s / copy_s))
        self.batch = torch.randn(len(self.batch), columns)
        if pinned:
            self.batch = self.batch.pin_memory()

    def _repeats(self, part: Callable[[], object]) -> int:
        return max(1, round(self.part_s / self._seconds(part)))

    def _seconds(self, part: Callable[[], object]) -> float:
        """Mean time in s of a part over many runs, after a warm-up of the same length."""
        seconds = 0.0
        for _ in range(2):
            runs, start_s = 0, time.perf_counter()
            while runs < CALIBRATION_RUNS or time.perf_counter() - start_s < self.part_s:
                part()
                runs += 1
            if self.arithmetic.device.type == "cuda":
                torch.cuda.synchronize()
            seconds = (time.perf_counter() - start_s) / runs
        return seconds


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Planted:
    return Planted(cell, arithmetic)
