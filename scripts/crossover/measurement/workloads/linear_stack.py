"""Three wide linear layers (PyTorch's recipe "Automatic Mixed Precision", as leolui2004/tensorcore ran it, 2022).

A step is forward, mean squared error against random targets, backward, SGD and `zero_grad`, which frees the gradients
since torch 2.0. The published peaks are from torch 1.11, in which old and new gradients exist at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import TrainingTask

SIZE_NAME = "neurons in each layer"
SIZE_RANGE = (1, 32768)
DATASET = None
PROTOCOLS = ("resident",)

LAYERS = 3
BATCHES = 50
LEARNING_RATE = 1e-3


def parameter_count(size: int) -> int:
    return 3 * (size**2 + size)


def build_model(width: int) -> nn.Sequential:
    """The recipe's model: (batch, width) -> (batch, width)."""
    layers: list[nn.Module] = []
    for _ in range(LAYERS - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, width))


class LinearTraining(TrainingTask):
    """The recipe's training loop over resident random inputs and targets.

    A cycle is a single step, not an epoch of 50: all batches are equivalent, and nothing happens at an epoch's end.
    """

    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        tensors = [arithmetic.randn(cell.batch_size, cell.size) for _ in range(2 * BATCHES)]
        super().__init__(build_model(cell.size), arithmetic, tuple(tensors))
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)
        self.batch = 0

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        """The next (batch, width) inputs and targets; all inputs come before all targets."""
        inputs, targets = self.resident[self.batch], self.resident[BATCHES + self.batch]
        self.batch = (self.batch + 1) % BATCHES
        return inputs, targets

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Loss and output: as in the recipe, the output stays alive through the backward pass and its peak."""
        features, targets = inputs
        output = model(features)
        return self.criterion(output, targets), output


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> LinearTraining:
    return LinearTraining(cell, arithmetic)
