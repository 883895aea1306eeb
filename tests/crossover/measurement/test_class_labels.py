"""Class labels beside a model's outputs."""

from __future__ import annotations

import pytest
import torch

from crossover.errors import UserError
from crossover.measurement.class_labels import ClassLabels
from crossover.measurement.own_model import default_loss


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
