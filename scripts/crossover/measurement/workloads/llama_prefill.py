"""Prefill with a small Llama: process a prompt, fill the cache and compute the logits of the next token."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.workloads._llama import Inference, Llama

SIZE_NAME = "tokens of prompt"
SIZE_RANGE = (1, 32768)
DATASET = None
PROTOCOLS = ("resident",)
PRELOADED = "_llama"


def build_model(tokens: int) -> nn.Module:
    return Llama(0, tokens)


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Inference:
    return Inference(cell, arithmetic, 0, cell.size)
