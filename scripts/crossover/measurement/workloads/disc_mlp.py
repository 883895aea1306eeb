"""An MLP on points, with hidden layers that double in width (Penny Xu, "When to use GPU for training?", 2019).

With L linear layers the widths are 2, 4, ..., 2^L, then 2. A step is forward, backward and SGD. The loss and the number
of errors are summed on the device. At the end of each epoch, the source waits for the device and prints both. Here the
text is formatted, with the same wait, but not printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import TrainingTask
from crossover.measurement.workloads import whole_batches

SIZE_NAME = "linear layers"
SIZE_RANGE = (2, 16)
DATASET = "disc"
PROTOCOLS = ("resident",)
CLASSES = 2

LEARNING_RATE = 0.1


def parameter_count(size: int) -> int:
    """Number of trainable parameters for widths 2, 4, ..., 2^size, and 2."""
    return ((2 << 2 * size) - 8) // 3 + (4 << size) - 2


def build_model(linear_layers: int) -> nn.Sequential:
    """The source's model: (batch, 2) -> (batch, 2) logits."""
    widths = [2**level for level in range(1, linear_layers + 1)]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 2))


class DiscTraining(TrainingTask):
    def __init__(self, cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> None:
        self.batch_size = cell.batch_size
        self.cycle_steps = whole_batches(data, cell.batch_size)
        super().__init__(build_model(cell.size), arithmetic, (data["features"], data["labels"]))
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)
        self.batch = 0
        self.accumulated_loss = torch.zeros((), device=arithmetic.device)
        self.errors = torch.zeros((), dtype=torch.int64, device=arithmetic.device)

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        return self.nth_batch(self.batch, self.batch_size)

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        features, labels = inputs
        output = model(features)
        errors = torch.sum(torch.argmax(output, dim=1) != labels)
        return self.criterion(output, labels), errors

    def observe(self, *results: torch.Tensor) -> None:
        loss, errors = results
        self.accumulated_loss += loss
        self.errors += errors

    def end_step(self) -> None:
        self.batch += 1
        if self.batch == self.cycle_steps:
            rows = len(self.resident[1])
            self.progress = f"Train Loss {self.accumulated_loss:6.2f}, Train Error {self.errors / rows:5.2%}"
            self.accumulated_loss.detach_().zero_()
            self.errors.zero_()
            self.batch = 0


def build(cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> DiscTraining:
    return DiscTraining(cell, data, arithmetic)
