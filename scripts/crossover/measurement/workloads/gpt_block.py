"""Training of a single GPT-2 block of varying width, which maps random hidden states to random targets.

The block comes from transformers: causal attention with heads of width 64 and an MLP four times as wide, each after a
layer norm. It has 12 width^2 + 13 width parameters, but no embeddings or logits, whose cost depends on the vocabulary.
The optimizer is SGD. Adam would divide by zero in pure fp16, where its epsilon rounds to 0, and would need
`capturable=True` in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import TrainingTask
from crossover.measurement.workloads._inputs import draw_normal
from crossover.measurement.workloads._transformers import GPT2Block, GPT2Config

SIZE_NAME = "width"
SIZE_RANGE = (64, 8192)
GRANULARITY = 64
DATASET = None
PROTOCOLS = ("resident",)

SEQUENCE_LENGTH = 256
HEAD_WIDTH = 64
LEARNING_RATE = 1e-5
"""Small, since the curvature grows with the width."""


class Block(nn.Module):
    """(batch, 256, width) hidden states -> hidden states of the same shape."""

    def __init__(self, width: int) -> None:
        super().__init__()
        config = GPT2Config(
            n_embd=width,
            n_head=width // HEAD_WIDTH,
            n_layer=1,
            n_positions=SEQUENCE_LENGTH,
            attn_implementation="sdpa",  # as in a whole model; a block by itself would not be causal
        )
        self.block = GPT2Block(config, layer_idx=0)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.block(hidden)
        return output


def parameter_count(size: int) -> int:
    return 12 * size**2 + 13 * size


def build_model(width: int) -> Block:
    """The block in training mode, with GPT-2's dropout."""
    return Block(width)


class Training(TrainingTask):
    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        shape = (cell.batch_size, SEQUENCE_LENGTH, cell.size)
        resident = draw_normal(arithmetic, *shape), draw_normal(arithmetic, *shape)
        super().__init__(build_model(cell.size), arithmetic, resident)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Squared distance between output and target, summed over the width and averaged over tokens.

        An average over the width would let gradients underflow in pure fp16.
        """
        hidden, targets = inputs
        return ((model(hidden) - targets).square().sum(dim=-1).mean(),)


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Training:
    return Training(cell, arithmetic)
