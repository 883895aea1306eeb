from __future__ import annotations

import psutil
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from tiny_tasks import cell_of, same_weights, task_of

RESIDENT = cell_of("mnist_cnn", 2, 16)
PUBLISHED = cell_of("mnist_cnn", 2, 16, protocol="as_published")

RANDOM = torch.Generator().manual_seed(1)
DATA = {
    "features": torch.randint(0, 256, (40, 28, 28), generator=RANDOM, dtype=torch.uint8),  # 16 + 16 + 8
    "labels": torch.randint(0, 10, (40,), generator=RANDOM),
}

# Worker processes are forked as in a trial, although this process has threads.
forks = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


class PlainNet(nn.Module):
    """The source's model with two channels, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 2, 3, 1), nn.Conv2d(2, 4, 3, 1)
        self.fc1, self.fc2 = nn.Linear(576, 8), nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(functional.relu(self.conv2(functional.relu(self.conv1(x)))), 2)
        x = torch.flatten(functional.dropout(x, 0.4), 1)
        x = functional.dropout(functional.relu(self.fc1(x)), 0.25)
        return functional.log_softmax(self.fc2(x), dim=1)


class PlainRows(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return len(DATA["labels"])

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = DATA["features"][index].unsqueeze(0).float() / 255
        return (image - 0.1307) / 0.3081, int(DATA["labels"][index])


def train(net: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss = functional.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


@forks
def test_as_published_trains_as_the_source_does() -> None:
    """The source's loop over two epochs with two workers gives the same weights and loss."""
    task = task_of(PUBLISHED, DATA)
    torch.manual_seed(7)
    for _ in range(5):
        task.step()
    loss_before_the_last = task.running_loss
    task.step()

    torch.manual_seed(0)
    net = PlainNet()
    optimizer = torch.optim.Adadelta(net.parameters(), lr=0.001)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.8)
    torch.manual_seed(7)
    loader = DataLoader(PlainRows(), batch_size=16, shuffle=True, num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        losses = [train(net, optimizer, images, labels).item() for images, labels in loader]
        scheduler.step()
    assert same_weights(task.model, net)
    assert loss_before_the_last == sum(losses[:2])
    assert task.optimizer.param_groups[0]["lr"] == pytest.approx(0.001 * 0.8**2)
    assert task.reads_back


def test_resident_trains_on_whole_batches_in_order() -> None:
    task = task_of(RESIDENT, DATA)
    torch.manual_seed(7)
    for _ in range(3):
        task.step()

    torch.manual_seed(0)
    net = PlainNet()
    optimizer = torch.optim.Adadelta(net.parameters(), lr=0.001)
    images = ((DATA["features"].float() / 255 - 0.1307) / 0.3081).unsqueeze(1)
    torch.manual_seed(7)
    losses = torch.zeros(())
    for first, rate in ((0, 0.001), (16, 0.001), (0, 0.0008)):  # the epoch ends after two whole batches
        optimizer.param_groups[0]["lr"] = rate
        losses += train(net, optimizer, images[first : first + 16], DATA["labels"][first : first + 16])
    assert same_weights(task.model, net)
    assert torch.equal(task.loss_sum, losses)
    assert not task.loss_sum.requires_grad  # otherwise the graphs of all steps would stay in memory
    assert task.cycle_steps == 1
    assert not task.reads_back


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


@forks
def test_a_cycle_is_an_epoch_with_its_own_workers() -> None:
    """Two workers start with the first step of a cycle and have ended after its last step, whose batch is partial."""
    task = task_of(PUBLISHED, DATA)
    assert task.cycle_steps == 3
    before = children()
    epochs = []
    for _ in range(2):
        workers, sizes = [], []
        for _ in range(3):
            images, labels = task.next_inputs()
            assert (images.dtype, images.shape[1:]) == (torch.float32, (1, 28, 28))
            sizes.append(len(labels))
            workers.append(children() - before)
            task.run(images, labels)
            task.end_step()
        assert sizes == [16, 16, 8]
        assert len(workers[0]) == 2
        assert children() == before
        epochs.append(workers[0])
    assert not epochs[0] & epochs[1]
