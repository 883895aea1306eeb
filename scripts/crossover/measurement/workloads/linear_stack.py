"""Three wide linear layers (PyTorch's recipe "Automatic Mixed Precision", as leolui2004/tensorcore ran it, 2022).

A step is forward, mean squared error against random targets, backward, SGD and `zero_grad`. Since torch 2.0
`zero_grad` frees the gradients; the published peaks are from torch 1.11, where old and new gradients coexist.
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
    """Training on BATCHES batches in turn.

    A cycle is one step, since all batches are equivalent and nothing else happens at the end of an epoch.
    """

    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        tensors = [arithmetic.randn(cell.batch_size, cell.size) for _ in range(2 * BATCHES)]
        super().__init__(build_model(cell.size), arithmetic, tuple(tensors))
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)
        self.batch = 0

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        """The next (batch, width) inputs and targets; `resident` has the inputs of all batches, then the targets."""
        inputs, targets = self.resident[self.batch], self.resident[BATCHES + self.batch]
        self.batch = (self.batch + 1) % BATCHES
        return inputs, targets

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Loss and output; as in the recipe, the output stays in memory during the backward pass."""
        features, targets = inputs
        output = model(features)
        return self.criterion(output, targets), output


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> LinearTraining:
    return LinearTraining(cell, arithmetic)
