from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from crossover.measurement.workloads import gpt_block
from tiny_tasks import cell_of, task_of


def plain_block(block: Any, hidden: torch.Tensor, heads: int) -> torch.Tensor:
    """GPT-2's block in plain operations: pre-norm, causal attention, perceptron with the tanh GELU."""
    batch, tokens, width = hidden.shape
    split = functional.layer_norm(hidden, (width,), block.ln_1.weight, block.ln_1.bias) @ block.attn.c_attn.weight
    query, key, value = (
        part.view(batch, tokens, heads, width // heads).transpose(1, 2)
        for part in (split + block.attn.c_attn.bias).split(width, dim=2)
    )
    scores = query @ key.transpose(-1, -2) / (width // heads) ** 0.5
    future = torch.ones(tokens, tokens).triu(1).bool()
    mixed = scores.masked_fill(future, -torch.inf).softmax(dim=-1) @ value
    mixed = mixed.transpose(1, 2).reshape(batch, tokens, width)
    hidden = hidden + mixed @ block.attn.c_proj.weight + block.attn.c_proj.bias
    inner = functional.layer_norm(hidden, (width,), block.ln_2.weight, block.ln_2.bias) @ block.mlp.c_fc.weight
    inner = functional.gelu(inner + block.mlp.c_fc.bias, approximate="tanh")
    return hidden + inner @ block.mlp.c_proj.weight + block.mlp.c_proj.bias


def test_a_step_is_that_of_a_block_in_plain_operations() -> None:
    task = task_of(cell_of("gpt_block", 128))
    hidden, targets = task.next_inputs()
    assert hidden.shape == targets.shape == (2, 256, 128)
    dropouts = [module for module in task.model.modules() if isinstance(module, nn.Dropout)]
    assert {dropout.p for dropout in dropouts} == {0.1}  # GPT-2's
    for dropout in dropouts:
        dropout.p = 0.0
    model: Any = gpt_block.build_model(128)
    model.load_state_dict(task.model.state_dict())
    output = plain_block(model.block, hidden, heads=2)
    assert torch.allclose(task.model(hidden), output, rtol=1e-4, atol=1e-4)
    loss = (output - targets).square().sum() / (2 * 256)
    loss.backward()
    task.step()
    for mine, theirs in zip(task.model.parameters(), model.parameters(), strict=True):
        assert theirs.grad is not None
        assert float(theirs.grad.norm()) > 0
        assert torch.allclose(mine, theirs - 1e-5 * theirs.grad, rtol=1e-5, atol=1e-7)
