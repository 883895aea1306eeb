from __future__ import annotations

from dataclasses import replace
from typing import Any

import psutil
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from crossover.config.studies import Cell
from crossover.errors import UserError
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.precision import Arithmetic, arithmetic_of
from crossover.measurement.workloads import build_model, build_task, count_parameters
from crossover.measurement.workloads.mnist_cnn import Images, normalised

CPU = torch.device("cpu")
CELL = Cell("mnist_cnn", "mnist_cnn", "resident", 16, "fp32", "eager", 2, "cpu")
PUBLISHED = replace(CELL, protocol="as_published")

# Worker processes are forked as everywhere, though this one has threads by now.
forks = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

Data = dict[str, torch.Tensor]


def task(data: Data, cell: Cell = CELL, arithmetic: Arithmetic | None = None) -> Any:
    torch.manual_seed(3)
    return build_task(cell, data, arithmetic or Arithmetic(CPU))


@pytest.fixture
def data() -> Data:
    random = torch.Generator().manual_seed(1)
    return {
        "features": torch.randint(0, 256, (40, 28, 28), generator=random, dtype=torch.uint8),  # 16 + 16 + 8
        "labels": torch.randint(0, 10, (40,), generator=random),
    }


@pytest.mark.parametrize("channels", [32, 2, 5])
def test_parameters_by_arithmetic(channels: int) -> None:
    convolutions = channels * (9 + 1) + 2 * channels * (9 * channels + 1)
    dense = 4 * channels * (2 * channels * 144 + 1) + 10 * (4 * channels + 1)
    assert count_parameters(replace(CELL, size=channels)) == convolutions + dense
    if channels == 32:
        assert convolutions + dense == 1_199_882


def test_layers_and_shapes_are_the_sources() -> None:
    model: Any = build_model(replace(CELL, size=32))
    assert (model.dropout1.p, model.dropout2.p) == (0.4, 0.25)
    assert (model.fc1.in_features, model.fc1.out_features, model.fc2.out_features) == (9216, 128, 10)
    output = model(torch.randn(3, 1, 28, 28))
    assert output.shape == (3, 10)
    assert torch.allclose(output.exp().sum(dim=1), torch.ones(3))


class PlainNet(nn.Module):
    """The source's model at two channels, restated."""

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
    """Images as the source's dataset gives them."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data["labels"])

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self.data["features"][index].unsqueeze(0).float() / 255
        return (image - 0.1307) / 0.3081, int(self.data["labels"][index])


def same_weights(model: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(mine, theirs) for mine, theirs in zip(model.parameters(), other.parameters(), strict=True))


@forks
def test_as_published_trains_as_the_source_does(data: Data) -> None:
    """The source's loop over two epochs with two workers, restated, ends with the same weights and the same loss."""
    ours = task(data, PUBLISHED)
    torch.manual_seed(7)
    for _ in range(5):
        ours.step()
    loss_before_the_last = ours.running_loss
    ours.step()

    torch.manual_seed(3)
    net = PlainNet()
    optimizer = torch.optim.Adadelta(net.parameters(), lr=0.001)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.8)
    torch.manual_seed(7)
    loader = DataLoader(PlainRows(data), batch_size=16, shuffle=True, num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        losses = []
        for images, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    assert same_weights(ours.model, net)
    assert loss_before_the_last == sum(losses[:2])
    assert ours.optimizer.param_groups[0]["lr"] == pytest.approx(0.001 * 0.8**2)
    assert ours.reads_back


def test_resident_trains_on_whole_batches_in_order(data: Data) -> None:
    ours = task(data)
    torch.manual_seed(7)
    for _ in range(3):
        ours.step()

    torch.manual_seed(3)
    net = PlainNet()
    optimizer = torch.optim.Adadelta(net.parameters(), lr=0.001)
    images = ((data["features"].float() / 255 - 0.1307) / 0.3081).unsqueeze(1)
    torch.manual_seed(7)
    losses = torch.zeros(())
    for first, rate in ((0, 0.001), (16, 0.001), (0, 0.0008)):  # the epoch ends after two whole batches
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(images[first : first + 16]), data["labels"][first : first + 16])
        loss.backward()
        optimizer.step()
        losses += loss.detach()
    assert same_weights(ours.model, net)
    assert torch.equal(ours.loss_sum, losses)
    assert ours.cycle_steps == 1
    assert not ours.reads_back


def children() -> set[int]:
    """Child processes of this one."""
    return {child.pid for child in psutil.Process().children()}


@forks
def test_a_cycle_is_an_epoch_with_its_own_workers(data: Data) -> None:
    """Two workers start with its first step and have ended after its last, of a partial batch."""
    ours = task(data, PUBLISHED)
    assert ours.cycle_steps == 3
    before = children()
    epochs = []
    for _ in range(2):
        workers, sizes = [], []
        for _ in range(3):
            images, labels = ours.next_inputs()
            assert (images.dtype, images.shape[1:]) == (torch.float32, (1, 28, 28))
            sizes.append(len(labels))
            workers.append(children() - before)
            ours.run(images, labels)
            ours.end_step()
        assert sizes == [16, 16, 8]
        assert len(workers[0]) == 2
        assert children() == before
        epochs.append(workers[0])
    assert not epochs[0] & epochs[1]


@forks
def test_batches_that_no_step_follows_do_not_end_the_training(data: Data) -> None:
    """The numerical check takes a batch out of turn, so that an epoch of the loader ends before ours does."""
    ours = task(data, PUBLISHED)
    ours.next_inputs()
    for _ in range(7):
        ours.step()


def test_an_image_is_transformed_as_the_batch_is(data: Data) -> None:
    rows = Images(data["features"], data["labels"])
    image, label = rows[5]
    assert (image.shape, image.dtype, label) == ((1, 28, 28), torch.float32, int(data["labels"][5]))
    assert torch.equal(image, task(data).resident[0][5])
    assert image[0, 3, 4] == pytest.approx((int(data["features"][5, 3, 4]) / 255 - 0.1307) / 0.3081)


def test_what_is_normalised_is_left_as_it_was() -> None:
    images = torch.full((2, 1, 28, 28), 0.1307 + 0.3081)
    assert torch.allclose(normalised(images), torch.ones(2, 1, 28, 28))
    assert torch.allclose(images, torch.tensor(0.4388))


@forks
@pytest.mark.parametrize(
    ("cell", "precision"), [(CELL, "fp32"), (CELL, "amp-bf16"), (CELL, "amp-fp16"), (PUBLISHED, "amp-bf16")]
)
def test_the_answer_is_right_in_every_precision(data: Data, cell: Cell, precision: str) -> None:
    cell = replace(cell, precision=precision, size=4)
    ours = task(data, cell, arithmetic_of(precision, CPU))
    ours.step()
    answer = compare_with_reference(ours, lambda: build_model(cell), precision)
    assert set(answer.errors) == {"result", "gradient"}
    assert answer.wrong is answer.unchecked is None


@forks
def test_a_pure_precision_trains_as_well(data: Data) -> None:
    ours = task(data, PUBLISHED, arithmetic_of("bf16", CPU))
    before = [parameter.clone() for parameter in ours.model.parameters()]
    ours.step()
    after = list(ours.model.parameters())
    assert all(parameter.dtype == torch.bfloat16 and torch.isfinite(parameter).all() for parameter in after)
    assert any(not torch.equal(new, old) for new, old in zip(after, before, strict=True))


@pytest.mark.parametrize("cell", [CELL, PUBLISHED], ids=["resident", "as_published"])
def test_a_batch_larger_than_the_dataset_is_refused(data: Data, cell: Cell) -> None:
    with pytest.raises(UserError, match="batch size 41 is larger than the dataset; allowed: at most its 40 rows"):
        task(data, replace(cell, batch_size=41))
