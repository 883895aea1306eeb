"""Product of two standard-normal n x n matrices and its error (PyTorch docs, "CUDA semantics", note on TF32).

A large product also gives a device's peak rate in a precision: 2 n^3 operations divided by its time. As in the note,
the reference product is computed in double precision, from matrices drawn in double precision. The error therefore
includes the rounding of the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.errors import UnsupportedError, UserError
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.step.tasks import InferenceTask
from crossover.measurement.workloads._inputs import draw_normal

SIZE_NAME = "rows of a square matrix"
SIZE_RANGE = (16, 32768)
DATASET = None
PROTOCOLS = ("resident",)
BATCH_SIZES = (1,)

CHUNK_ROWS = 1024

HOST_ROWS = 256
"""Number of rows to compare if a CPU computes the exact product, since even these take seconds."""


class Product(nn.Module):
    """(rows, n) -> (rows, n): the product with a matrix."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(n, n))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows @ self.matrix


def parameter_count(size: int) -> int:
    return size**2


def build_model(n: int) -> Product:
    return Product(n)


class Multiplication(InferenceTask):
    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        if cell.batch_size not in BATCH_SIZES:
            raise UserError(f"batch size {cell.batch_size} is not possible in workload 'matmul'; allowed: 1 product")
        model = build_model(cell.size)
        super().__init__(model, arithmetic, (draw_normal(arithmetic, cell.size, cell.size),))
        self.right = model.matrix

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs),)

    @torch.no_grad()
    def own_errors(self) -> dict[str, float]:
        """The largest absolute error of an entry, and its ratio to the mean absolute entry of the exact product.

        The model's matrix is overwritten.
        """
        n = len(self.right)
        doubles = _doubles(self.arithmetic.device)
        left, right = draw_normal(doubles, n, n), draw_normal(doubles, n, n)
        self.right.copy_(right)
        with self.arithmetic.autocast():  # the whole product, since another shape may use another kernel
            (product,) = self.forward(self.model, self.arithmetic.place(left))
        rows = min(n, HOST_ROWS) if doubles.device.type == "cpu" else n
        largest = total = doubles.place(torch.zeros(()))
        for first in range(0, rows, CHUNK_ROWS):
            chunk = slice(first, min(first + CHUNK_ROWS, rows))
            exact = left[chunk] @ right
            errors = (doubles.place(product[chunk]) - exact).abs()
            largest, total = torch.maximum(largest, errors.max()), total + exact.abs().sum()
        mean = float(total) / (rows * n)
        return {"max_abs_error": float(largest), "max_relative_error": float(largest) / mean}


def _doubles(device: torch.device) -> Arithmetic:
    """Double precision, on the device if it supports fp64, otherwise on the CPU."""
    try:
        return arithmetic_of("fp64", device)
    except UnsupportedError:
        return arithmetic_of("fp64", torch.device("cpu"))


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Multiplication:
    return Multiplication(cell, arithmetic)
