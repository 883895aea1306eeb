from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.measurement.workloads import bert
from tiny_tasks import cell_of, same_weights, task_of

SMALL = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bert, "SHAPE", SMALL)
    monkeypatch.setattr(bert, "SEQUENCE_LENGTH", 16)


def without_dropout(model: nn.Module) -> None:
    dropouts = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    assert {dropout.p for dropout in dropouts} == {0.1}  # as in the source
    for dropout in dropouts:
        dropout.p = 0.0


def make_task(variant: str = "plain") -> Any:
    task = task_of(cell_of("bert", 2, 4, variant=variant))
    without_dropout(task.model)
    return task


def test_a_step_is_that_of_the_source() -> None:
    """Loss, backward and AdamW at 5e-5 without weight decay give the same weights after two steps."""
    task = make_task()
    tokens, labels = task.next_inputs()
    assert (tokens.shape, labels.shape) == ((4, 16), (4,))
    assert (int(tokens.max()) < 100, set(labels.tolist()) <= {0, 1}) == (True, True)
    model = bert.build_model(2)
    model.load_state_dict(task.model.state_dict())
    without_dropout(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0)
    for _ in range(2):
        task.step()
        logits = model(input_ids=tokens).logits
        assert logits.shape == (4, 2)
        functional.cross_entropy(logits, labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert same_weights(task.model, model)


def gradients(task: Any) -> torch.Tensor:
    parts: list[torch.Tensor] = []
    task.optimizer.step = lambda: parts.extend(p.grad.flatten().clone() for p in task.model.parameters())
    task.step()
    assert all(p.grad is None for p in task.model.parameters())
    return torch.cat(parts)


@pytest.mark.parametrize("variant", [name for name in bert.VARIANTS if name != "plain"])
def test_every_variant_computes_the_gradients_of_the_plain_step(variant: str) -> None:
    plain = gradients(make_task())
    assert float(plain.norm()) > 0.1
    assert float((gradients(make_task(variant)) - plain).norm() / plain.norm()) < 1e-6


@pytest.mark.parametrize(
    ("variant", "sequences", "layers"),
    [
        ("plain", [4], 2),
        ("accumulate", [1] * 4, 8),
        ("accumulate_checkpoint", [1] * 4, 16),  # each layer again in the backward pass
        ("adafactor", [4], 2),
        ("accumulate_checkpoint_adafactor", [1] * 4, 16),
    ],
)
def test_passes_and_optimizer_of_a_variant(variant: str, sequences: list[int], layers: int) -> None:
    """Check the sequences per call of the embedding, the calls of layers, and the optimizer's state."""
    task = make_task(variant)
    embedded: list[int] = []
    attended: list[int] = []
    task.model.bert.embeddings.register_forward_hook(lambda _m, _i, output: embedded.append(len(output)))
    for layer in task.model.bert.encoder.layer:
        layer.attention.register_forward_hook(lambda *_: attended.append(1))
    task.step()
    assert (embedded, len(attended)) == (sequences, layers)
    state = sum(t.numel() for s in task.optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor))
    parameters = sum(p.numel() for p in task.model.parameters())
    adafactor = "adafactor" in variant
    assert task.reads_back is adafactor
    # Adafactor keeps a row and a column for a matrix, Adam two moments.
    assert state < 0.2 * parameters if adafactor else 2 * parameters <= state < 2.01 * parameters
