"""Inference with EfficientNet-b0, for which several sources publish latency and throughput.

Deci's post on measuring inference time uses this model as its example: resident images, evaluation mode, no gradients.
The model comes from transformers (5,288,548 parameters, as in torchvision and timm), with random weights. In variant
`channels_last`, channels are the innermost dimension of weights and images.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import InferenceTask
from crossover.measurement.workloads._inputs import IMAGENET_CLASSES, draw_normal
from crossover.measurement.workloads._transformers import EfficientNetConfig, EfficientNetForImageClassification

SIZE_NAME = "pixels on each side of an image"
SIZE_RANGE = (32, 1024)
DATASET = None
PROTOCOLS = ("resident",)
VARIANTS = ("plain", "channels_last")

SETTLING_SIDE = 256
"""The batch norms are calibrated on as many random images as fit into a square of this side in pixels, at least two."""


def build_model(side: int) -> nn.Module:
    """EfficientNet-b0: (batch, 3, side, side) -> (batch, 1000) logits.

    It pools as in torchvision and timm. The AvgPool2d of transformers, with a window of 1280, computes the same mean,
    but torch's compiler loops over all 1280 x 1280 positions (2.8 s for 4 images on a CPU).
    """
    config = EfficientNetConfig(
        image_size=side,
        width_coefficient=1.0,
        depth_coefficient=1.0,
        hidden_dim=1280,
        dropout_rate=0.2,
        num_labels=IMAGENET_CLASSES,
    )
    network = EfficientNetForImageClassification(config)
    network.efficientnet.pooler = nn.AdaptiveAvgPool2d(1)
    model: nn.Module = network
    _draw_weights(model, side)
    return model


def _draw_weights(model: nn.Module, side: int) -> None:
    """Draw convolutions as torchvision does, and set the batch norms to normalise random images to a mean square of 1.

    transformers draws the batch norms' weights around 0, so that the eleventh block outputs only zeros. With the
    initial statistics, which match no input, fp16 would compute zeros too. With zeros, a GPU draws less power and
    errors stay hidden. The images have the model's input size: with smaller images, some channels grew from block to
    block.
    """
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
    for norm in norms:
        nn.init.ones_(norm.weight)
    if norms[0].weight.is_meta:
        return
    hooks = [norm.register_forward_pre_hook(_settle) for norm in norms]
    with torch.no_grad():
        model.eval()(torch.randn(max(2, (SETTLING_SIDE // side) ** 2), 3, side, side))
    for hook in hooks:
        hook.remove()


def _settle(norm: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    """Set a batch norm's variances to the mean squares of its input's channels."""
    assert isinstance(norm.running_var, torch.Tensor)
    norm.running_var.copy_(inputs[0].square().mean(dim=(0, 2, 3)))


class Classification(InferenceTask):
    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        layout = torch.channels_last if cell.variant == "channels_last" else torch.contiguous_format
        images = draw_normal(arithmetic, cell.batch_size, 3, cell.size, cell.size).contiguous(memory_format=layout)
        super().__init__(build_model(cell.size), arithmetic, (images,))
        model: nn.Module = self.model
        model.to(memory_format=layout)  # type: ignore[call-overload]  # torch annotates it for 4 dimensions only

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs).logits,)

    def next_host_inputs(self) -> tuple[torch.Tensor, ...]:
        return (self._host_images,)

    @cached_property
    def _host_images(self) -> torch.Tensor:
        return self.resident[0].to("cpu", copy=True)


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Classification:
    return Classification(cell, arithmetic)
