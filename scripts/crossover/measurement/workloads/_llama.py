"""A small language model with random weights and a static cache: transformers' Llama, 8 layers of width 512.

The position of new tokens in the cache is fixed, so that each step does the same work.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from crossover.config.studies import Cell
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import InferenceTask
from crossover.measurement.workloads._transformers import _left_out

with _left_out("sklearn", "scipy", "pandas"):
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.cache_utils import Cache
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

LAYERS, HEADS, HEAD_WIDTH, VOCABULARY = 8, 8, 64, 8192
LONGEST = 32768
"""Maximum number of tokens in a sequence."""
SHAPE = {
    "hidden_size": HEADS * HEAD_WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "intermediate_size": 1376,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": LONGEST,
}


class Rotary(nn.Module):
    """Llama's rotary embedding, with frequencies and angles in fp32 in every precision.

    The numerical check in double precision therefore uses the same angles.
    """

    bits: torch.Tensor

    def __init__(self, frequencies: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("bits", frequencies.view(torch.int32), persistent=False)

    def forward(self, hidden: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines (1, token, width of a head) in the type of the hidden states."""
        angles = position_ids[:, :, None].float() * self.bits.view(torch.float32)
        angles = torch.cat((angles, angles), dim=-1).to(torch.promote_types(hidden.dtype, torch.float32))
        return angles.cos().to(hidden.dtype), angles.sin().to(hidden.dtype)


class FixedCache(Cache):  # type: ignore[misc]  # mypy does not read transformers
    """Keys and values in two tensors (layer, batch, head, token, width), whose first `context` tokens are fixed.

    If the cache has one sequence, its context applies to all sequences of a batch.
    """

    is_compileable = True
    is_sliding = (False,)

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, context: int) -> None:
        self.stored = keys, values
        self.context = context
        self.layers: list[Any] = []

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_more: Any, **_options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and values of a layer: the context's, followed by the new ones."""
        stored_keys, stored_values = self.stored
        return self._with(stored_keys[layer], keys), self._with(stored_values[layer], values)

    def _with(self, stored: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        if len(stored) == len(new):
            stored[:, :, self.context :] = new
            return stored
        return torch.cat([stored[:1, :, : self.context].expand(len(new), -1, -1, -1), new], dim=2)

    def get_seq_length(self, *_layer: Any, **_options: Any) -> int:
        return self.context

    def get_mask_sizes(self, query: int | torch.Tensor, *_layer: Any, **_options: Any) -> tuple[int, int]:
        """Number of tokens to attend to, and the index of the first."""
        return self.context + (query if isinstance(query, int) else len(query)), 0


class Llama(nn.Module):
    """(batch, new) tokens, which follow `context` cached ones -> (batch, vocabulary) logits of the next token."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, context: int, new: int, batch_size: int = 1) -> None:
        super().__init__()
        self.context = context
        self.model = LlamaForCausalLM(LlamaConfig(**SHAPE)).eval()
        self.model.model.rotary_emb = Rotary(LlamaRotaryEmbedding(self.model.config).inv_freq)
        for name in ("keys", "values"):
            tokens = torch.randn(LAYERS, 1, HEADS, context + new, HEAD_WIDTH).expand(-1, batch_size, -1, -1, -1)
            self.register_buffer(name, tokens.clone(), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        cache = FixedCache(self.keys, self.values, self.context)
        logits: torch.Tensor = self.model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        return logits[:, -1]


class Inference(InferenceTask):
    sample_name = "tokens"

    def __init__(self, cell: Cell, arithmetic: Arithmetic, context: int, new: int) -> None:
        tokens = torch.randint(VOCABULARY, (cell.batch_size, new), device=arithmetic.device)
        super().__init__(Llama(context, new, cell.batch_size), arithmetic, (tokens,))
        self.tokens = tokens.numel()
        self.samples_taken: int = 0

    def next_inputs(self) -> tuple[Any, ...]:
        self.samples_taken += self.tokens
        return super().next_inputs()

    def forward(self, model: nn.Module, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (model(*inputs),)
