"""Decoding with a small Llama: one token per sequence, after a context whose keys and values are cached."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.workloads._llama import Inference, Llama

SIZE_NAME = "tokens of context"
SIZE_RANGE = (1, 32767)
DATASET = None
PROTOCOLS = ("resident",)
PRELOADED = "_llama"


def build_model(context: int) -> nn.Module:
    return Llama(context, 1)


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Inference:
    return Inference(cell, arithmetic, cell.size, 1)
