from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossover.config.studies import Cell
from crossover.measurement.step.correctness import compare_with_reference
from crossover.measurement.step.flops import count_flops
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.workloads import build_model, build_task, count_parameters, resnet
from tiny_tasks import CPU


def cell(layers: int, batch_size: int = 4) -> Cell:
    return Cell("cnn_cpu_gpu", "resnet", "resident", batch_size, "fp32", "eager", layers, "cpu")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small images, so that a pass is quick."""
    monkeypatch.setattr(resnet, "SIDE", 32)


@pytest.mark.parametrize(
    ("layers", "parameters"),
    [(18, 11_689_512), (34, 21_797_672), (50, 25_557_032), (101, 44_549_160), (152, 60_192_808)],
)
def test_parameters_are_those_of_torchvision(layers: int, parameters: int) -> None:
    assert count_parameters(cell(layers)) == parameters


@pytest.mark.parametrize("layers", resnet.SIZES)
def test_as_many_layers_as_the_name_says(layers: int) -> None:
    """He et al. count convolutions and the last layer, not the shortcuts' projections."""
    with torch.device("meta"):
        model = build_model(cell(layers))
    found = [name for name, m in model.named_modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len([name for name in found if "shortcut" not in name]) == layers


def test_the_stride_is_in_the_3x3_convolution_of_a_bottleneck() -> None:
    with torch.device("meta"):
        model = build_model(cell(50))
    convolutions = [m for name, m in model.named_modules() if isinstance(m, nn.Conv2d) and "shortcut" not in name]
    assert {c.kernel_size for c in convolutions[1:] if c.stride == (2, 2)} == {(3, 3)}


@pytest.mark.usefixtures("small")
def test_a_step_is_both_passes_and_drops_the_gradients() -> None:
    torch.manual_seed(0)
    ours: Any = build_task(cell(18), {}, Arithmetic(CPU))
    images, labels = ours.next_inputs()
    assert (images.shape, labels.shape) == ((4, 3, 32, 32), (4,))
    found: dict[str, torch.Tensor] = {}
    for name, weights in ours.model.named_parameters():
        weights.register_post_accumulate_grad_hook(lambda p, name=name: found.__setitem__(name, p.grad.clone()))
    before = {name: weights.clone() for name, weights in ours.model.named_parameters()}
    ours.step()

    torch.manual_seed(0)
    torch.randn(4, 3, 32, 32), torch.randint(1000, (4,))  # the inputs come first
    model = resnet.build_model(18)
    functional.cross_entropy(model(images).logits, labels).backward()
    assert found.keys() == before.keys()
    for name, weights in model.named_parameters():
        assert torch.equal(found[name], weights.grad)
        assert torch.equal(before[name], weights)
    for name, weights in ours.model.named_parameters():
        assert torch.equal(weights, before[name])
        assert weights.grad is None
    assert ours.optimizer is None
    assert all(module.training for module in ours.model.modules())


@pytest.mark.usefixtures("small")
def test_the_check_compares_the_gradients_too() -> None:
    torch.manual_seed(0)
    ours = build_task(cell(18), {}, Arithmetic(CPU))
    answer = compare_with_reference(ours, lambda: build_model(cell(18)), "fp32")
    assert answer.wrong is answer.unchecked is None
    assert answer.errors["gradient"] > 0


def test_operations_are_three_times_torchvisions() -> None:
    """It gives 1.814 GMAC for a forward pass; a backward pass is two more, but for the images' gradient."""
    images_gradient = 2 * (7 * 7 * 3) * 64 * 112**2
    counted = count_flops(build_task(cell(18, batch_size=1), {}, Arithmetic(CPU)).step, "eager")
    assert (counted + images_gradient) / 6 == pytest.approx(1.814e9, rel=1e-3)
