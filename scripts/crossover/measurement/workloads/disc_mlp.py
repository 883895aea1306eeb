"""A classifier of points whose layers double in width (Penny Xu, "When to use GPU for training?", 2019).

With L linear layers the widths are 2, 4, ..., 2^L, then 2. One step: forward, error count kept as a tensor, loss
accumulated as a tensor, backward, SGD. At the end of each epoch the source prints both sums, which waits for the
device; the text is formatted here too, but not printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import nn

from crossover.measurement.workloads import Task, whole_batches
from crossover.studies import Cell

SIZE_NAME = "linear layers"
SIZE_RANGE = (2, 16)
DATASET = "disc"
PROTOCOLS = ("resident",)

LEARNING_RATE = 0.1


def build_model(linear_layers: int) -> nn.Sequential:
    """The source's model: (batch, 2) -> (batch, 2) logits."""
    widths = [2**level for level in range(1, linear_layers + 1)]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 2))


class _Training:
    """The source's training loop, one step at a time."""

    def __init__(self, model: nn.Module, features: torch.Tensor, labels: torch.Tensor, batch_size: int, batches: int):
        self.model = model
        self.features = features
        self.labels = labels
        self.batch_size = batch_size
        self.batches = batches
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
        self.start_epoch()

    def start_epoch(self) -> None:
        self.batch = 0
        self.accumulated_loss: torch.Tensor | int = 0
        self.errors: torch.Tensor | int = 0

    def step(self) -> None:
        first = self.batch * self.batch_size
        output = self.model(self.features.narrow(0, first, self.batch_size))
        labels = self.labels.narrow(0, first, self.batch_size)
        self.errors = self.errors + torch.sum(torch.argmax(output, dim=1) != labels)
        loss = self.criterion(output, labels)
        self.accumulated_loss = self.accumulated_loss + loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.batch += 1
        if self.batch == self.batches:
            self.progress = (
                f"Train Loss {self.accumulated_loss:6.2f}, Train Error {self.errors / len(self.labels):5.2%}"
            )
            self.start_epoch()


def build(cell: Cell, data: Mapping[str, torch.Tensor], device: torch.device) -> Task:
    """The training of a model of `cell.size` linear layers on resident data."""
    batches = whole_batches(data, cell.batch_size)
    model = build_model(cell.size).to(device)
    features, labels = data["features"].to(device), data["labels"].to(device)
    training = _Training(model, features, labels, cell.batch_size, batches)
    return Task(model, training.step, cycle_steps=batches)
