"""A network of two equal hidden layers (HSF Training, "Machine Learning on GPU", episode "Run time comparisons").

Protocol `as_published`: each step takes a batch from a shuffled DataLoader, moves it to the device, and reads accuracy
and loss back with `.item()`. Protocol `resident`: the same arithmetic on data that lies on the device, in the dataset's
(random) order, with accuracy and loss summed there; so the difference between the two is loading and waiting.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from crossover.measurement.workloads import Task, whole_batches
from crossover.studies import Cell

SIZE_NAME = "neurons in each hidden layer"
SIZE_RANGE = (1, 65536)
DATASET = "higgs"
PROTOCOLS = ("as_published", "resident")

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


def build_model(hidden_width: int) -> Classifier:
    """The lesson's model."""
    return Classifier(hidden_width)


class _Training:
    """What both protocols share: model and optimizer."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)

    def accuracy_and_loss(self, features: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Accuracy and cross entropy of a batch."""
        self.model.zero_grad()
        logits, probabilities = self.model(features)
        accuracy = (probabilities.argmax(dim=-1) == labels).to(torch.float32).mean()
        return accuracy, functional.cross_entropy(logits, labels)


class _AsPublished(_Training):
    def __init__(self, model: nn.Module, data: Mapping[str, torch.Tensor], batch_size: int, device: torch.device):
        super().__init__(model)
        self.device = device
        self.loader = DataLoader(TensorDataset(data["features"], data["labels"]), batch_size=batch_size, shuffle=True)
        self.batches = iter(self.loader)
        self.accuracies: list[float] = []
        self.history: list[float] = []

    def next_batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        try:
            features, labels = next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            features, labels = next(self.batches)
        return features, labels

    def step(self) -> None:
        features, labels = self.next_batch()
        features, labels = features.to(self.device), labels.to(self.device)
        accuracy, loss = self.accuracy_and_loss(features, labels)
        self.accuracies.append(accuracy.item())
        self.history.append(loss.item())
        loss.backward()
        self.optimizer.step()


class _Resident(_Training):
    def __init__(self, model: nn.Module, data: Mapping[str, torch.Tensor], batch_size: int, device: torch.device):
        super().__init__(model)
        self.features, self.labels = data["features"].to(device), data["labels"].to(device)
        self.batch_size = batch_size
        self.batches = whole_batches(data, batch_size)
        self.batch = 0
        self.accuracy_sum = torch.zeros((), device=device)
        self.loss_sum = torch.zeros((), device=device)

    def step(self) -> None:
        first = self.batch * self.batch_size
        features = self.features.narrow(0, first, self.batch_size)
        labels = self.labels.narrow(0, first, self.batch_size)
        accuracy, loss = self.accuracy_and_loss(features, labels)
        self.accuracy_sum += accuracy
        self.loss_sum += loss.detach()
        loss.backward()
        self.optimizer.step()
        self.batch = (self.batch + 1) % self.batches


def build(cell: Cell, data: Mapping[str, torch.Tensor], device: torch.device) -> Task:
    """The training of a model of hidden width `cell.size` under the cell's protocol."""
    whole_batches(data, cell.batch_size)
    model = build_model(cell.size).to(device)
    protocol = _AsPublished if cell.protocol == "as_published" else _Resident
    return Task(model, protocol(model, data, cell.batch_size, device).step)
