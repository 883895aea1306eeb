"""Training of a BERT classifier on sequences of 512 tokens, with methods that save memory.

Source: "Efficient Training on a Single GPU" in the docs of Hugging Face Transformers.

A plain loop does the work of the source's Trainer: loss, backward, AdamW (learning rate 5e-5, no weight decay), on
random tokens with random labels. The Trainer's gradient clipping and learning rate schedule are omitted. With 24
layers the model has the shape of bert-large-uncased. Attention is torch's fused kernel, which stores less for the
backward pass than the source's attention.

As in the source, the variants combine gradient accumulation (one sequence at a time), checkpointing (activations of
each layer are recomputed in the backward pass) and Adafactor (whose state is two vectors per matrix). The source's
8-bit Adam is omitted, since it needs bitsandbytes or torchao.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import TrainingTask
from crossover.measurement.workloads._transformers import BertConfig, BertForSequenceClassification

SIZE_NAME = "encoder layers"
SIZE_RANGE = (1, 96)
DATASET = None
PROTOCOLS = ("resident",)
VARIANTS = ("plain", "accumulate", "accumulate_checkpoint", "adafactor", "accumulate_checkpoint_adafactor")

SEQUENCE_LENGTH = 512
SHAPE = {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 30522}
"""As in bert-large-uncased."""
LABELS = 2
LEARNING_RATE = 5e-5


def parameter_count(size: int) -> int:
    """Number of trainable parameters of embeddings and head, plus those of each layer."""
    return 32_834_562 + 12_596_224 * size


def build_model(encoder_layers: int) -> nn.Module:
    """A BERT classifier in training mode: (batch, 512) tokens -> (batch, 2) logits."""
    config = BertConfig(**SHAPE, num_hidden_layers=encoder_layers, num_labels=LABELS)
    model: nn.Module = BertForSequenceClassification(config)
    return model.train()


class Training(TrainingTask):
    checked_rows = 1
    """One sequence: four sequences through 24 layers in double precision take 12 s on 16 cores."""

    def __init__(self, cell: Cell, arithmetic: Arithmetic) -> None:
        shape, device = (cell.batch_size, SEQUENCE_LENGTH), arithmetic.device
        tokens = torch.randint(SHAPE["vocab_size"], shape, device=device)
        labels = torch.randint(LABELS, shape[:1], device=device)
        super().__init__(build_model(cell.size), arithmetic, (tokens, labels))
        ways = cell.variant.split("_")
        self.parts = cell.batch_size if "accumulate" in ways else 1
        if "checkpoint" in ways:
            model: Any = self.model
            model.gradient_checkpointing_enable({"use_reentrant": False})
        weights = self.model.parameters()
        if "adafactor" in ways:
            self.optimizer = torch.optim.Adafactor(weights, lr=LEARNING_RATE)
            self.reads_back = True  # its step reads norms of weights and updates on the host
        else:
            self.optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.0)

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tokens, labels = inputs
        return (model(tokens, labels=labels).loss,)

    def run(self, *inputs: torch.Tensor) -> None:
        for part in zip(*(tensor.chunk(self.parts) for tensor in inputs), strict=True):
            self.add_gradients(*part, parts=self.parts)
        self.use_gradients()


def build(cell: Cell, _data: Mapping[str, torch.Tensor], arithmetic: Arithmetic) -> Training:
    return Training(cell, arithmetic)
