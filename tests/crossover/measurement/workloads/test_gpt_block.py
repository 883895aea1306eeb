from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.config.studies import Cell
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.flops import count_flops
from crossover.measurement.step.precision import arithmetic_of
from crossover.measurement.workloads import build_model, build_task, count_parameters, gpt_block
from tiny_tasks import CPU


def cell(width: int, precision: str = "fp32") -> Cell:
    return Cell("transformer_width", "gpt_block", "resident", 2, precision, "eager", width, "cpu")


def task(width: int, precision: str = "fp32") -> Any:
    torch.manual_seed(0)
    return build_task(cell(width, precision), {}, arithmetic_of(precision, CPU))


@pytest.mark.parametrize("width", [64, 768, 4096])
def test_parameters_by_arithmetic(width: int) -> None:
    """Attention 3 + 1, perceptron 4 + 4 width^2; biases 3 + 1 + 4 + 1, norms 2 x 2 widths."""
    assert count_parameters(cell(width)) == 12 * width**2 + 13 * width


def test_every_size_is_a_multiple_of_a_head() -> None:
    assert gpt_block.GRANULARITY == gpt_block.HEAD_WIDTH
    assert [width % gpt_block.HEAD_WIDTH for width in gpt_block.SIZE_RANGE] == [0, 0]


def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            assert module.p == 0.1  # GPT-2's
            module.p = 0.0
    return model


def restated(block: Any, hidden: torch.Tensor, heads: int) -> torch.Tensor:
    """GPT-2's block with plain operations: pre-norm, causal attention, perceptron with the tanh GELU."""
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


def test_a_step_is_that_of_the_block_restated() -> None:
    ours = task(128)
    hidden, targets = ours.next_inputs()
    assert hidden.shape == targets.shape == (2, 256, 128)
    without_dropout(ours.model)
    model: Any = gpt_block.build_model(128)
    model.load_state_dict(ours.model.state_dict())
    output = restated(model.block, hidden, heads=2)
    assert torch.allclose(ours.model(hidden), output, rtol=1e-4, atol=1e-4)
    loss = (output - targets).square().sum() / (2 * 256)
    loss.backward()
    ours.step()
    for mine, theirs in zip(ours.model.parameters(), model.parameters(), strict=True):
        assert theirs.grad is not None
        assert float(theirs.grad.norm()) > 0
        assert torch.allclose(mine, theirs - 1e-5 * theirs.grad, rtol=1e-5, atol=1e-7)


def test_a_token_sees_none_that_come_later() -> None:
    model = gpt_block.build_model(64).eval()
    hidden = torch.randn(1, 10, 64)
    changed = hidden.clone()
    changed[:, 7:] += 1
    before, after = model(hidden), model(changed)
    assert torch.allclose(before[:, :7], after[:, :7], atol=1e-6)
    assert not torch.allclose(before[:, 7:], after[:, 7:], atol=1e-1)


@pytest.mark.parametrize("precision", ["amp-fp16", "bf16", "fp16"])
def test_it_trains_and_is_right_in_low_precisions(precision: str) -> None:
    ours = task(64, precision)
    ours.step()
    assert all(torch.isfinite(weights).all() for weights in ours.model.parameters())
    answer = compare_with_reference(ours, lambda: build_model(cell(64)), precision)
    assert answer.wrong is answer.unchecked is None
    assert 0 < answer.errors["gradient"] < 0.05  # well above what underflow would leave


@pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled:UserWarning")
def test_it_is_one_graph_to_the_compiler() -> None:
    from torch._dynamo import explain

    torch._dynamo.reset()
    found = explain(gpt_block.build_model(64).forward)(torch.randn(2, 256, 64))
    torch._dynamo.reset()
    assert (found.graph_count, found.graph_break_count) == (1, 0)


def test_operations_by_arithmetic() -> None:
    """Each weight of the four matrices serves each token three times, once forward; with dropout, a CPU computes
    attention by plain products, two forward and four backward.
    """
    tokens, width = 2 * 256, 128
    attention = 2 * tokens * 256 * width
    assert count_flops(task(width).step, "eager") == 3 * 2 * 12 * width**2 * tokens + 6 * attention
