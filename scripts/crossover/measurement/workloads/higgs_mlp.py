"""An MLP with two hidden layers of equal width (HSF Training, "Machine Learning on GPU", "Run time comparisons").

In protocol `as_published`, each step takes a batch from a shuffled DataLoader, moves it to the device, and reads
accuracy and loss back with `.item()`. In protocol `resident`, the same arithmetic runs on data that stay on the device,
in whole batches and in the dataset's (random) order. Accuracy and loss are summed on the device.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import TrainingTask
from crossover.measurement.workloads import whole_batches

SIZE_NAME = "neurons in each hidden layer"
SIZE_RANGE = (1, 65536)
DATASET = "higgs"
PROTOCOLS = ("as_published", "resident")
CLASSES = 2

LEARNING_RATE = 1e-3


class Classifier(nn.Module):
    """(batch, 2) features -> (batch, 2) logits and (batch, 2) probabilities."""

    def __init__(self, hidden_width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(2, hidden_width)
        self.fc2 = nn.Linear(hidden_width, hidden_width)
        self.fc3 = nn.Linear(hidden_width, 2)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = functional.relu(self.fc1(features))
        hidden = functional.relu(self.fc2(hidden))
        logits = self.fc3(hidden)
        return logits, functional.softmax(logits, dim=1)


def parameter_count(size: int) -> int:
    return size**2 + 6 * size + 2


def build_model(hidden_width: int) -> Classifier:
    return Classifier(hidden_width)


class _HiggsTraining(TrainingTask):
    def __init__(self, cell: Cell, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()) -> None:
        super().__init__(build_model(cell.size), arithmetic, resident)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        features, labels = inputs
        logits, probabilities = model(features)
        accuracy = (probabilities.argmax(dim=-1) == labels).to(torch.float32).mean()
        return functional.cross_entropy(logits, labels), accuracy


class AsPublished(_HiggsTraining):
    reads_back = True

    def __init__(self, cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> None:
        super().__init__(cell, arithmetic)
        rows = TensorDataset(data["features"], data["labels"])
        self.loader = DataLoader(rows, batch_size=cell.batch_size, shuffle=True)
        self.batches = iter(self.loader)
        self.accuracies: list[float] = []
        self.history: list[float] = []

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return tuple(map(self.arithmetic.place, batch))

    def observe(self, *results: torch.Tensor) -> None:
        loss, accuracy = results
        self.accuracies.append(accuracy.item())
        self.history.append(loss.item())


class Resident(_HiggsTraining):
    def __init__(self, cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> None:
        super().__init__(cell, arithmetic, (data["features"], data["labels"]))
        self.batch_size = cell.batch_size
        self.batches = whole_batches(data, cell.batch_size)
        self.batch = 0
        self.accuracy_sum = torch.zeros((), device=arithmetic.device)
        self.loss_sum = torch.zeros((), device=arithmetic.device)

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        inputs = self.nth_batch(self.batch, self.batch_size)
        self.batch = (self.batch + 1) % self.batches
        return inputs

    def observe(self, *results: torch.Tensor) -> None:
        loss, accuracy = results
        self.accuracy_sum += accuracy
        self.loss_sum += loss.detach()


def build(cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> TrainingTask:
    whole_batches(data, cell.batch_size)
    protocol = AsPublished if cell.protocol == "as_published" else Resident
    return protocol(cell, data, arithmetic)
