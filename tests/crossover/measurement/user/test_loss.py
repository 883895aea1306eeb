"""The default loss for each kind of output and targets, and class labels without an output."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from crossover.errors import UserError
from crossover.measurement.user.loss import ClassLabels, default_loss


@pytest.mark.parametrize(
    ("labels", "outputs", "message"),
    [
        ([1, 7], 7, "from 1 to 7, but the model has 7 outputs, for labels 0 to 6; number them from 0"),
        ([0, 5], 1, "from 0 to 5, but the model has 1 output, for label 0; give it 6 outputs, or number them without"),
    ],
)
def test_labels_without_an_output_are_one_line(labels: list[int], outputs: int, message: str) -> None:
    targets = torch.tensor(labels)
    with pytest.raises(UserError, match=f"^its targets are class labels {message}"):
        default_loss(torch.zeros(2, outputs), targets, ClassLabels.of_targets(targets))


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 2), (4, 2, 6)])
def test_labels_that_have_an_output_are_accepted(shape: tuple[int, ...]) -> None:
    """Some labels are ignored, as in language models. Six equal scores give ln 6."""
    targets = torch.tensor([0, 5, -100, 3])
    targets = targets if len(shape) == 2 else targets[:, None].expand(4, 2)
    loss = default_loss(torch.zeros(shape), targets, ClassLabels.of_targets(targets))
    assert loss.item() == pytest.approx(1.791759)


@pytest.mark.parametrize("scores", [torch.zeros(3, 1), torch.zeros(3)])
def test_whole_numbers_for_a_regression_are_one_line(scores: torch.Tensor) -> None:
    labels = ClassLabels.of_table("homes.csv: column 'price'", classes=900, numeric=True)
    with pytest.raises(UserError) as raised:
        default_loss(scores, torch.tensor([0, 1, 2]), labels)
    assert str(raised.value) == (
        "homes.csv: column 'price' has 900 different whole numbers, which are treated as classes, but the model has "
        "1 output, for label 0; for a regression write them as 1.0; for classes give it 900 outputs"
    )


@pytest.mark.parametrize("targets", [None, "text", torch.tensor([0.5]), torch.tensor([-100]), torch.tensor([1j])])
def test_targets_that_are_not_whole_numbers_have_no_label_range(targets: object) -> None:
    assert ClassLabels.of_targets(targets) is None


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.int32])
def test_labels_of_any_integer_dtype_are_classes(dtype: torch.dtype) -> None:
    """In eight bits, 156 equals -100, the ignored index."""
    labels = ClassLabels.of_targets(torch.tensor([156, 3]).to(dtype))
    assert labels is not None
    assert (labels.least, labels.most) == (3, 156)
    loss = default_loss(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]).to(dtype))
    assert float(loss) == pytest.approx((math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-1))) / 2)


ONE, TWO = (torch.tensor(value, requires_grad=True) for value in (1.0, 2.0))


@pytest.mark.parametrize(
    ("output", "targets", "loss"),
    [
        (torch.ones(4, 1), torch.zeros(4), 1.0),
        (torch.zeros(2, 3, 4), torch.ones(2, 3).long(), math.log(4)),
        (torch.zeros(2, 4, 3), torch.ones(2, 3).long(), math.log(4)),
        (torch.full((2, 2), 3.0), None, 9.0),
        (torch.tensor(3.0), None, 3.0),
        (torch.tensor([3 + 4j, 0]), None, 12.5),
        ({"loss": torch.tensor(5.0), "logits": torch.ones(2)}, None, 5.0),
        ({"loss": TWO, "boxes": ONE}, None, 2.0),
        ({"boxes": ONE, "classes": TWO, "accuracy": torch.tensor(9.0)}, None, 3.0),
    ],
)
def test_the_default_loss_follows_outputs_and_targets(output: Any, targets: torch.Tensor | None, loss: float) -> None:
    assert default_loss(output, targets).item() == pytest.approx(loss)


@pytest.mark.parametrize(
    ("output", "targets", "message"),
    [
        (torch.ones(4, 8), torch.ones(4, 7), r"returns \[4, 8\] for targets of \[4, 7\] in float32"),
        ({"boxes": ONE, "scores": torch.ones(4)}, torch.ones(4), "returns losses and other tensors in one dict"),
    ],
)
def test_outputs_without_a_default_loss_are_an_error(output: Any, targets: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        default_loss(output, targets)


def test_a_loss_that_is_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="returns its loss as a number, which has no gradient; return the tensor"):
        default_loss({"loss": 0.5, "scores": torch.zeros(2)}, torch.zeros(2))
