"""One more token of each sequence by a small Llama, behind a context whose keys and values are cached.

Each step is the same: the token's place in the cache is written anew.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import InferenceTask
from crossover.measurement.workloads._llama import VOCABULARY, Llama

SIZE_NAME = "tokens of context"
SIZE_RANGE = (1, 32767)
DATASET = None
PROTOCOLS = ("resident",)
PRELOADED = "_llama"


def build_model(context: int) -> nn.Module:
    return Llama(context, 1)


class Decode(InferenceTask):
    sample_name = "tokens"

    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        tokens = torch.randint(VOCABULARY, (cell.batch_size, 1), device=arithmetic.device)
        super().__init__(Llama(cell.size, 1, cell.batch_size), arithmetic, (tokens,))

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs),)


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Decode:
    return Decode(cell, arithmetic)
