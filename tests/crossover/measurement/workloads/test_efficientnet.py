from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from crossover.measurement.workloads import build_model
from crossover.measurement.workloads._transformers import EfficientNetForImageClassification
from tiny_tasks import cell_of, task_of

SIDE = 32


@pytest.fixture(scope="module")
def plain() -> Any:
    return task_of(cell_of("efficientnet", SIDE))


@pytest.mark.parametrize("side", [SIDE, 224])
def test_the_replaced_pooling_computes_the_same_logits(side: int) -> None:
    """The network is compared with the original at the same weights; its last map has 1 or 7 x 7 positions."""
    torch.manual_seed(0)
    model: Any = build_model(cell_of("efficientnet", side)).eval()
    # torch.compile unrolls the whole pooling window, even beyond the map, so no such pooling module may remain.
    assert not [module for module in model.modules() if isinstance(module, (nn.AvgPool2d, nn.MaxPool2d))]
    original = EfficientNetForImageClassification(model.config).eval()
    assert isinstance(original.efficientnet.pooler, nn.AvgPool2d)
    original.load_state_dict(model.state_dict())  # strict: the same names and shapes
    images = torch.randn(2, 3, side, side)
    with torch.no_grad():
        logits, expected = model(images).logits, original(images).logits
    assert float(expected.std()) > 0.01
    assert torch.allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_channels_last_changes_the_layout_and_not_the_result(plain: Any) -> None:
    last = task_of(cell_of("efficientnet", SIDE, variant="channels_last"))
    (images,) = last.next_inputs()
    assert images.stride() == (3 * SIDE * SIDE, 1, 3 * SIDE, 3)  # by hand: a pixel's channels are neighbours
    convolutions = [module for module in last.model.modules() if isinstance(module, nn.Conv2d)]
    assert all(c.weight.is_contiguous(memory_format=torch.channels_last) for c in convolutions)
    outputs: list[torch.Tensor] = []
    hook = convolutions[-1].register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
    (logits,) = last.forward(last.model, images)
    hook.remove()
    assert outputs[0].is_contiguous(memory_format=torch.channels_last)  # to the last layer
    (expected,) = plain.forward(plain.model, *plain.next_inputs())
    assert expected.shape == (2, 1000)
    assert plain.next_inputs()[0].is_contiguous()
    assert torch.allclose(logits, expected, rtol=1e-3, atol=1e-3)
