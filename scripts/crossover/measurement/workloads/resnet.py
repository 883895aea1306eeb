"""Forward and backward pass of a ResNet on random images (jcjohnson/cnn-benchmarks), without an optimizer.

The source times both passes on 16 resident images and discards the gradients. The models come from transformers. They
have as many parameters as torchvision's (11,689,512 with 18 layers, 25,557,032 with 50). Like the source's models, they
have the stride in the 3x3 convolution of a bottleneck, and batch norm in training mode. The backward pass starts from a
cross entropy with random labels; the source starts it from random numbers, which is the same work.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import GradientTask
from crossover.measurement.workloads._inputs import IMAGENET_CLASSES, draw_normal
from crossover.measurement.workloads._transformers import ResNetConfig, ResNetForImageClassification

SIZE_NAME = "layers"
SIZE_RANGE = (18, 152)
SIZES = (18, 34, 50, 101, 152)
DATASET = None
PROTOCOLS = ("resident",)

SIDE = 224

DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
"""Number of blocks in each of the four stages (He et al. 2015, table 1). A block has two layers in models of up to 34
layers, three in larger ones."""

BLOCK_SHARE = 0.2
"""Initial weight of the last batch norm in each block. With the default of 1, gradients double from block to block in
training mode. The error of fp32 is then 1 % of their norm (measured), which would hide a wrong kernel."""


def build_model(layers: int) -> nn.Module:
    """A ResNet: (batch, 3, 224, 224) -> (batch, 1000) logits."""
    basic = layers <= 34
    config = ResNetConfig(
        layer_type="basic" if basic else "bottleneck",
        depths=DEPTHS[layers],
        hidden_sizes=(64, 128, 256, 512) if basic else (256, 512, 1024, 2048),
        num_labels=IMAGENET_CLASSES,
    )
    model: nn.Module = ResNetForImageClassification(config)
    last_norm = f".layer.{1 if basic else 2}.normalization.weight"
    for name, weights in model.named_parameters():
        if name.endswith(last_norm):
            nn.init.constant_(weights, BLOCK_SHARE)
    return model.train()


class Passes(GradientTask):
    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        images, labels = inputs
        return (functional.cross_entropy(model(images).logits, labels),)


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Passes:
    images = draw_normal(arithmetic, cell.batch_size, 3, SIDE, SIDE)
    labels = torch.randint(IMAGENET_CLASSES, (cell.batch_size,), device=arithmetic.device)
    return Passes(build_model(cell.size), arithmetic, (images, labels))
