from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.measurement.workloads import build_model, resnet
from tiny_tasks import answer_of, cell_of, same_weights, task_of


@pytest.mark.parametrize("layers", resnet.SIZES)
def test_layers_and_strides_are_those_of_the_paper(layers: int) -> None:
    """He et al. count the last layer and the convolutions, without projections of shortcuts; strides are in 3x3
    convolutions."""
    with torch.device("meta"):
        model = build_model(cell_of("resnet", layers))
    counted = [
        m for name, m in model.named_modules() if "shortcut" not in name and isinstance(m, nn.Conv2d | nn.Linear)
    ]
    assert len(counted) == layers
    convolutions = [m for m in counted if isinstance(m, nn.Conv2d)]
    assert {c.kernel_size for c in convolutions[1:] if c.stride == (2, 2)} == {(3, 3)}


def test_a_step_is_both_passes_and_discards_the_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resnet, "SIDE", 32)
    cell = cell_of("resnet", 18, 4)
    task: Any = task_of(cell)
    images, labels = task.next_inputs()
    assert (images.shape, labels.shape) == ((4, 3, 32, 32), (4,))
    gradients: dict[str, torch.Tensor] = {}
    for name, weights in task.model.named_parameters():
        weights.register_post_accumulate_grad_hook(lambda p, name=name: gradients.__setitem__(name, p.grad.clone()))
    task.step()

    torch.manual_seed(0)
    torch.randn(4, 3, 32, 32), torch.randint(1000, (4,))  # the inputs come first
    model = resnet.build_model(18)
    functional.cross_entropy(model(images).logits, labels).backward()
    for name, weights in model.named_parameters():
        assert torch.equal(gradients.pop(name), weights.grad)
    assert not gradients
    assert same_weights(task.model, model)
    assert all(weights.grad is None for weights in task.model.parameters())
    assert all(module.training for module in task.model.modules())
    answer = answer_of(cell, task)
    assert answer.wrong is answer.unchecked is None
    assert answer.errors["gradient"] > 0
