"""The first pass of a small Llama over a prompt: fills the cache and gives the logits of the next token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import InferenceTask
from crossover.measurement.workloads._llama import VOCABULARY, Llama

SIZE_NAME = "tokens of prompt"
SIZE_RANGE = (1, 32768)
DATASET = None
PROTOCOLS = ("resident",)
PRELOADED = "_llama"


def build_model(tokens: int) -> nn.Module:
    return Llama(0, tokens)


class Prefill(InferenceTask):
    sample_name = "tokens"

    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        tokens = torch.randint(VOCABULARY, (cell.batch_size, cell.size), device=arithmetic.device)
        super().__init__(Llama(0, cell.size, cell.batch_size), arithmetic, (tokens,))
        self.tokens = tokens.numel()
        self.samples_taken: int = 0

    def next_inputs(self) -> tuple[Any, ...]:
        self.samples_taken += self.tokens
        return super().next_inputs()

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs),)


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Prefill:
    return Prefill(cell, arithmetic)
