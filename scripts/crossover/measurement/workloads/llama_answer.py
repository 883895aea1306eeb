"""A small Llama that reads a prompt and generates an answer token by token.

The answer's tokens are fixed in advance, so that rounding on different devices cannot change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import InferenceTask
from crossover.measurement.workloads._llama import HEAD_WIDTH, HEADS, LAYERS, VOCABULARY, FixedCache, Llama

PROMPT = 512
SIZE_NAME = "tokens of answer"
SIZE_RANGE = (1, 4096)
DATASET = None
PROTOCOLS = ("resident",)
PRELOADED = "_llama"


class Answering(Llama):
    """(batch, prompt and answer without its last token) -> (batch, vocabulary) logits of the answer's last token."""

    def __init__(self) -> None:
        super().__init__(0, 0)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch_size, length = tokens.shape
        keys, values = (self.keys.new_empty(LAYERS, batch_size, HEADS, length, HEAD_WIDTH) for _ in range(2))
        start, logits = 0, tokens
        for end in range(PROMPT, length + 1):
            cache = FixedCache(keys[..., :end, :], values[..., :end, :], start)
            logits = self.model(tokens[:, start:end], past_key_values=cache, use_cache=True, logits_to_keep=1).logits
            start = end
        return logits[:, -1]


class Answers(InferenceTask):
    sample_name = "tokens"

    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        tokens = torch.randint(VOCABULARY, (cell.batch_size, PROMPT + cell.size - 1), device=arithmetic.device)
        super().__init__(Answering(), arithmetic, (tokens,))
        self.written = cell.batch_size * cell.size
        self.samples_taken: int = 0

    def next_inputs(self) -> tuple[Any, ...]:
        self.samples_taken += self.written
        return super().next_inputs()

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs),)


def build_model(_answer: int) -> nn.Module:
    return Answering()


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Answers:
    return Answers(cell, arithmetic)
