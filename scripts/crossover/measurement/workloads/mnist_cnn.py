"""A small convolutional network on images of digits (leolui2004/tensorcore, 2022).

In protocol `as_published`, two worker processes transform shuffled images one by one and collate them. Each step moves
a batch to the device and reads the loss back. Each epoch restarts the workers, whose memory is not measured. In
protocol `resident`, the same arithmetic runs on normalised images that stay on the device, in whole batches and in the
dataset's order. The loss is summed on the device, without loading or synchronisation.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import TrainingTask
from crossover.measurement.workloads import whole_batches

SIZE_NAME = "channels of the first convolution"
SIZE_RANGE = (1, 1024)
DATASET = "mnist"
PROTOCOLS = ("as_published", "resident")
CLASSES = 10

LEARNING_RATE = 1e-3
DECAY = 0.8
"""Factor on the learning rate after each epoch."""

MEAN, DEVIATION = (0.1307,), (0.3081,)
"""Mean and standard deviation of MNIST's pixels, scaled to values from 0 to 1."""

PR_SET_PDEATHSIG = 1

WORKERS = 2
START_METHOD = "fork" if sys.platform == "linux" else None
"""The default on Linux in the source's Python. Python 3.14's default would import torch in each worker."""


class Network(nn.Module):
    """(batch, 1, 28, 28) images -> (batch, 10) log-probabilities."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, 1)
        self.conv2 = nn.Conv2d(channels, 2 * channels, 3, 1)
        self.dropout1 = nn.Dropout(0.4)
        self.dropout2 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(2 * channels * 12 * 12, 4 * channels)
        self.fc2 = nn.Linear(4 * channels, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.conv1(x))
        x = functional.relu(self.conv2(x))
        x = functional.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = functional.relu(self.fc1(x))
        x = self.dropout2(x)
        x = self.fc2(x)
        return functional.log_softmax(x, dim=1)


def build_model(channels: int) -> Network:
    return Network(channels)


class Images(Dataset[tuple[torch.Tensor, int]]):
    """(28, 28) uint8 images, each transformed by the operations of the source's ToTensor and Normalize."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.images = images
        self.labels = labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        label = int(self.labels[index])
        pixels = self.images[index].clone().view(28, 28, 1)
        return normalised(pixels.permute(2, 0, 1).contiguous().to(torch.float32).div(255)), label


def normalised(images: torch.Tensor) -> torch.Tensor:
    """Normalise (..., 1, 28, 28) images with values from 0 to 1 by MNIST's mean and deviation."""
    images = images.clone()
    mean = torch.as_tensor(MEAN, dtype=images.dtype)
    deviation = torch.as_tensor(DEVIATION, dtype=images.dtype)
    if (deviation == 0).any():  # the source's transform checks this for each image
        raise ValueError("a deviation of 0")
    return images.sub_(mean.view(-1, 1, 1)).div_(deviation.view(-1, 1, 1))


class _MnistTraining(TrainingTask):
    def __init__(
        self, cell: Cell, epoch_steps: int, arithmetic: Arithmetic, resident: tuple[torch.Tensor, ...] = ()
    ) -> None:
        super().__init__(build_model(cell.size), arithmetic, resident)
        self.epoch_steps = epoch_steps
        self.epoch_step = 0
        self.optimizer = torch.optim.Adadelta(self.model.parameters(), lr=LEARNING_RATE)
        self.scheduler = StepLR(self.optimizer, step_size=1, gamma=DECAY)

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Cross entropy of a batch, which is moved to the device here, as in the source.

        Under autocast, the float32 images are then freed before the backward pass and do not raise peak memory.
        """
        images, labels = inputs
        weight = next(model.parameters())
        outputs = model(images.to(weight.device, weight.dtype))
        return (functional.cross_entropy(outputs, labels.to(weight.device)),)

    def end_step(self) -> None:
        self.epoch_step += 1
        if self.epoch_step == self.epoch_steps:
            self.end_epoch()
            self.epoch_step = 0

    def end_epoch(self) -> None:
        self.scheduler.step()


def _end_with(parent: int, _worker: int) -> None:
    """Let the kernel end this worker with its parent.

    Torch's watchdog in the worker does not notice a parent that died before the watchdog started.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class AsPublished(_MnistTraining):
    """Training in protocol `as_published`.

    A cycle is an epoch, which includes the start and the end of its workers and a partial last batch.
    """

    reads_back = True
    samples_taken = 0

    def __init__(self, cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> None:
        self.loader = DataLoader(
            Images(data["features"], data["labels"]),
            batch_size=cell.batch_size,
            shuffle=True,
            num_workers=WORKERS,
            multiprocessing_context=START_METHOD,
            worker_init_fn=partial(_end_with, os.getpid()),
        )
        self.cycle_steps = len(self.loader)
        super().__init__(cell, self.cycle_steps, arithmetic)
        self.batches: Iterator[list[torch.Tensor]] | None = None
        self.loss = torch.zeros(())
        self.running_loss = 0.0

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        """The workers' next (batch, 1, 28, 28) images and (batch,) labels, in host memory."""
        batch = None if self.batches is None else next(self.batches, None)
        if batch is None:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        images, labels = batch
        self.samples_taken += len(labels)
        return images, labels

    def observe(self, *results: torch.Tensor) -> None:
        self.loss = results[0].detach()

    def end_step(self) -> None:
        self.running_loss += self.loss.item()
        super().end_step()

    def end_epoch(self) -> None:
        """Request another batch, so that the workers end within this epoch."""
        if self.batches is not None:
            next(self.batches, None)
        self.batches = None
        self.running_loss = 0.0
        super().end_epoch()


class Resident(_MnistTraining):
    def __init__(self, cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> None:
        images = normalised(data["features"].unsqueeze(1).to(torch.float32).div_(255))
        super().__init__(cell, whole_batches(data, cell.batch_size), arithmetic, (images, data["labels"]))
        self.batch_size = cell.batch_size
        self.loss_sum = torch.zeros((), device=arithmetic.device)

    def next_inputs(self) -> tuple[torch.Tensor, ...]:
        return self.nth_batch(self.epoch_step, self.batch_size)

    def observe(self, *results: torch.Tensor) -> None:
        self.loss_sum += results[0].detach()


def build(cell: Cell, data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> TrainingTask:
    whole_batches(data, cell.batch_size)
    protocol = AsPublished if cell.protocol == "as_published" else Resident
    return protocol(cell, data, arithmetic)
