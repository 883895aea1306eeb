"""The default loss of each kind of output and targets, and class labels without an output."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from crossover.errors import UserError
from crossover.measurement.own_loss import ClassLabels, default_loss


@pytest.mark.parametrize(
    ("labels", "outputs", "message"),
    [
        ([1, 7], 7, "its targets are class labels from 1 to 7, but the model has 7 outputs, for labels 0 to 6; number"),
        (
            [-1, 1],
            2,
            "its targets are class labels from -1 to 1, but the model has 2 outputs, for labels 0 to 1; number",
        ),
        (
            [0, 5],
            1,
            "its targets are class labels from 0 to 5, but the model has 1 output, for label 0; give it 6 outp",
        ),
    ],
)
def test_labels_without_an_output_are_one_line(labels: list[int], outputs: int, message: str) -> None:
    targets = torch.tensor(labels)
    with pytest.raises(UserError) as found:
        default_loss(torch.zeros(2, outputs), targets, ClassLabels.of_targets(targets))
    assert str(found.value).startswith(message)


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 2), (4, 2, 6)])
def test_labels_with_outputs_pass(shape: tuple[int, ...]) -> None:
    """Also where some are left out, as in language models; six equal scores give the logarithm of 6."""
    targets = torch.tensor([0, 5, -100, 3])
    targets = targets if len(shape) == 2 else targets[:, None].expand(4, 2)
    loss = default_loss(torch.zeros(shape), targets, ClassLabels.of_targets(targets))
    assert loss.item() == pytest.approx(1.791759)


@pytest.mark.parametrize("scores", [torch.zeros(3, 1), torch.zeros(3)])
def test_whole_numbers_for_a_regression_are_one_line(scores: torch.Tensor) -> None:
    labels = ClassLabels.of_table("homes.csv: column 'price'", classes=900, numeric=True)
    with pytest.raises(UserError) as found:
        default_loss(scores, torch.tensor([0, 1, 2]), labels)
    assert str(found.value) == (
        "homes.csv: column 'price' has 900 different whole numbers, which are taken as classes, but the model has "
        "1 output, for label 0; for a regression write them as 1.0; for classes give it 900 outputs"
    )


@pytest.mark.parametrize("targets", [None, "text", torch.tensor([0.5]), torch.tensor([-100]), torch.tensor([1j])])
def test_other_targets_have_no_labels(targets: object) -> None:
    assert ClassLabels.of_targets(targets) is None


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.int32])
def test_labels_of_any_whole_type_have_a_range(dtype: torch.dtype) -> None:
    """Also 156, which is -100 in eight bits."""
    labels = ClassLabels.of_targets(torch.tensor([156, 3]).to(dtype))
    assert labels is not None
    assert (labels.least, labels.most) == (3, 156)


@pytest.mark.parametrize(
    ("scores", "targets", "loss"),
    [
        (torch.ones(4, 1), torch.zeros(4), 1.0),
        (torch.zeros(2, 3, 4), torch.ones(2, 3).long(), torch.tensor(4.0).log()),
        (torch.zeros(2, 4, 3), torch.ones(2, 3).long(), torch.tensor(4.0).log()),
        (torch.full((2, 2), 3.0), None, 9.0),
    ],
)
def test_the_default_loss_follows_the_targets(scores: torch.Tensor, targets: torch.Tensor | None, loss: Any) -> None:
    assert default_loss(scores, targets).item() == pytest.approx(float(loss))


def test_a_loss_of_the_models_own_counts() -> None:
    assert default_loss({"loss": torch.tensor(5.0), "logits": torch.ones(2)}, None).item() == 5


def test_shapes_that_no_default_compares_are_named() -> None:
    with pytest.raises(ValueError, match=r"returns \[4, 8\] for targets of \[4, 7\] in float32"):
        default_loss(torch.ones(4, 8), torch.ones(4, 7))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_labels_of_any_whole_type_are_classes(dtype: torch.dtype) -> None:
    loss = default_loss(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1], dtype=dtype))
    assert float(loss) == pytest.approx((math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-1))) / 2)


def test_a_dict_of_losses_is_summed() -> None:
    one, two = (torch.tensor(value, requires_grad=True) for value in (1.0, 2.0))
    assert default_loss({"boxes": one, "classes": two, "accuracy": torch.tensor(9.0)}, None).item() == 3
    assert default_loss({"loss": two, "boxes": one}, None).item() == 2
    with pytest.raises(ValueError, match="returns losses and other tensors in one dict"):
        default_loss({"boxes": one, "scores": torch.ones(4)}, torch.ones(4))


def test_a_scalar_is_the_loss_and_complex_outputs_have_one() -> None:
    assert default_loss(torch.tensor(3.0), None).item() == 3
    assert default_loss(torch.tensor([3 + 4j, 0]), None).item() == 12.5
    assert default_loss(torch.tensor([3 + 4j]), torch.tensor([3j])).item() == 10
