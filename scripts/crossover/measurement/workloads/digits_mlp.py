"""An MLP with two hidden layers of equal width on images of 8 x 8 pixels.

A step is forward, backward and SGD on resident data, in the dataset's (random) order.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import TrainingTask
from crossover.measurement.workloads import whole_batches

SIZE_NAME = "neurons in each hidden layer"
SIZE_RANGE = (1, 65536)
DATASET = "digits"
PROTOCOLS = ("resident",)
CLASSES = 10

PIXELS = 64
LEARNING_RATE = 0.1


def parameter_count(size: int) -> int:
    return size**2 + 76 * size + 10


def build_model(hidden_width: int) -> nn.Sequential:
    """(batch, 64) pixels -> (batch, 10) logits."""
    return nn.Sequential(
        nn.Linear(PIXELS, hidden_width),
        nn.ReLU(),
        nn.Linear(hidden_width, hidden_width),
        nn.ReLU(),
        nn.Linear(hidden_width, CLASSES),
    )


class DigitsTraining(TrainingTask):
    def __init__(self, cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> None:
        super().__init__(build_model(cell.size), arithmetic, (data["features"], data["labels"]))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)
        self.batch_size = cell.batch_size
        self.batches = whole_batches(data, cell.batch_size)
        self.batch = 0

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        inputs = self.nth_batch(self.batch, self.batch_size)
        self.batch = (self.batch + 1) % self.batches
        return inputs

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        features, labels = inputs
        return (functional.cross_entropy(model(features), labels),)


def build(cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> DigitsTraining:
    return DigitsTraining(cell, data, arithmetic)
