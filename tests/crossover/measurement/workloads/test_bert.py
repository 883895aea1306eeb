from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.config.studies import Cell
from crossover.measurement.step.precision import arithmetic_of
from crossover.measurement.workloads import bert, build_task, count_parameters
from tiny_tasks import CPU

SMALL = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100}


def cell(variant: str = "plain", precision: str = "fp32", layers: int = 2) -> Cell:
    return Cell("bert_memory", "bert", "resident", 4, precision, "eager", layers, "cpu", variant)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow model on short sequences."""
    monkeypatch.setattr(bert, "SHAPE", SMALL)
    monkeypatch.setattr(bert, "SEQUENCE_LENGTH", 16)


def task(variant: str = "plain", precision: str = "fp32") -> Any:
    """A task without dropout, of which two runs would draw different numbers."""
    torch.manual_seed(0)
    ours = build_task(cell(variant, precision), {}, arithmetic_of(precision, CPU))
    dropouts = [module for module in ours.model.modules() if isinstance(module, nn.Dropout)]
    assert {dropout.p for dropout in dropouts} == {0.1}  # as the source's
    for dropout in dropouts:
        dropout.p = 0.0
    return ours


def test_parameters_by_arithmetic() -> None:
    """Embeddings of words, 512 positions and 2 segments; in each layer 4 + 8 width^2 weights with biases and norms."""
    width = 1024
    embeddings = (30522 + 512 + 2) * width + 2 * width
    layer = 4 * (width**2 + width) + (4 * width**2 + 4 * width) + (4 * width**2 + width) + 4 * width
    pooler, classifier = width**2 + width, 2 * width + 2
    assert count_parameters(cell(layers=24)) == embeddings + 24 * layer + pooler + classifier == 335_143_938


@pytest.mark.usefixtures("small")
def test_a_step_of_the_sources_loop() -> None:
    """Loss, backward, AdamW without weight decay at 5e-5, restated plainly: the same weights after two steps."""
    ours = task()
    tokens, labels = ours.next_inputs()
    assert (tokens.shape, labels.shape) == ((4, 16), (4,))
    assert (int(tokens.max()) < 100, set(labels.tolist()) <= {0, 1}) == (True, True)
    model = bert.build_model(2)
    model.load_state_dict(ours.model.state_dict())
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0)
    for _ in range(2):
        ours.step()
        logits = model(input_ids=tokens).logits
        assert logits.shape == (4, 2)
        functional.cross_entropy(logits, labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    for mine, theirs in zip(ours.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def gradients(ours: Any) -> torch.Tensor:
    """The gradients that the optimizer is given, as one vector."""
    found: list[torch.Tensor] = []
    ours.optimizer.step = lambda: found.extend(p.grad.flatten().clone() for p in ours.model.parameters())
    ours.step()
    assert all(p.grad is None for p in ours.model.parameters())
    return torch.cat(found)


@pytest.mark.parametrize("variant", [name for name in bert.VARIANTS if name != "plain"])
@pytest.mark.usefixtures("small")
def test_every_variant_has_the_gradients_of_the_plain_step(variant: str) -> None:
    plain = gradients(task())
    assert float(plain.norm()) > 0.1
    assert float((gradients(task(variant)) - plain).norm() / plain.norm()) < 1e-6


@pytest.mark.usefixtures("small")
def test_accumulated_scaled_gradients_are_the_same_and_update_once() -> None:
    """In amp-fp16 all parts are scaled alike, and the scaler is asked once a step."""
    updated = []
    for variant in ("plain", "accumulate"):
        ours = task(variant, "amp-fp16")
        before = ours.model.classifier.weight.clone()
        ours.step()
        updated.append((ours.model.classifier.weight - before).detach())
        assert ours.arithmetic.scaler.state_dict()["_growth_tracker"] == 1
    assert float(updated[0].abs().max()) == pytest.approx(5e-5, rel=0.01)  # Adam's first step
    assert torch.allclose(*updated, atol=1e-6)


def passes(ours: Any) -> tuple[list[int], int]:
    """Sequences in each pass through the embeddings, and passes through the layers, of a step."""
    sequences: list[int] = []
    layers: list[int] = []
    ours.model.bert.embeddings.register_forward_hook(lambda _m, _i, output: sequences.append(len(output)))
    for layer in ours.model.bert.encoder.layer:
        layer.attention.register_forward_hook(lambda *_: layers.append(1))
    ours.step()
    return sequences, len(layers)


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
@pytest.mark.usefixtures("small")
def test_what_a_variant_switches_on(variant: str, sequences: list[int], layers: int) -> None:
    ours = task(variant)
    assert passes(ours) == (sequences, layers)
    state = sum(t.numel() for s in ours.optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor))
    parameters = sum(p.numel() for p in ours.model.parameters())
    if "adafactor" in variant:
        assert state < 0.2 * parameters  # a row and a column for a matrix
        assert ours.reads_back
    else:
        assert 2 * parameters <= state < 2.01 * parameters
        assert not ours.reads_back
