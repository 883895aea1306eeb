"""Models whose class uses a name of nn.Module for something else, or overrides a method of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from crossover.measurement.modules import buffers_of, modules_of, parameters_of, set_mode
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import parameter_count

DOUBLE = Arithmetic(torch.device("cpu"), torch.float64)


class Net(nn.Module):
    """Two linear layers that share a weight, a batch norm within a child, and an unused place for a module."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight
        self.child = nn.Sequential(nn.BatchNorm1d(2), nn.GRU(2, 2))
        self.absent: nn.Module | None = None
        self.register_module("nothing", None)


def with_attributes(**attributes: object) -> nn.Module:
    return type("Named", (Net,), attributes)()


def looping(_net: nn.Module, data: Any, epochs: int) -> None:
    raise AssertionError(f"{epochs} epochs of {data}")


NAMES = ["train", "eval", "buffers", "parameters", "modules", "children", "named_buffers", "named_parameters"]


@pytest.mark.parametrize("name", [*NAMES, "named_modules", "named_children", "state_dict", "device", "dtype"])
@pytest.mark.parametrize("value", [False, looping])
def test_a_name_of_torch_with_another_meaning_hides_nothing(name: str, value: object) -> None:
    net, plain = with_attributes(**{name: value}), Net()
    assert [type(module).__name__ for module in modules_of(net)][1:] == [
        type(module).__name__ for module in plain.modules()
    ][1:]
    assert [p.shape for p in parameters_of(net)] == [p.shape for p in plain.parameters()]
    assert [b.shape for b in buffers_of(net)] == [b.shape for b in plain.buffers()]
    for training in (False, True):
        set_mode(net, training)
        assert {module.training for module in modules_of(net)} == {training}
    DOUBLE.place_model(net)
    assert {tensor.dtype for tensor in [*parameters_of(net), *buffers_of(net)]} == {torch.float64, torch.int64}
    assert net.child[1](torch.ones(1, 2, dtype=torch.float64))[0].dtype is torch.float64


def frozen(self: Any, mode: bool = True) -> None:
    nn.Module.train(self, mode)
    self.child[0].eval()


def fused(self: Any) -> None:
    nn.Module.eval(self)
    self.absent = "fused"


def refused(self: Any, mode: bool = True) -> None:
    raise NotImplementedError("an exported program has no modes")


def test_overrides_with_the_meaning_of_torch_are_called() -> None:
    net = with_attributes(train=frozen, eval=fused)
    outer = nn.Sequential(net)
    set_mode(outer, training=True)
    assert (net.training, net.child[0].training, net.child[1].training) == (True, False, True)
    set_mode(outer, training=False)
    assert (net.training, net.absent) == (False, "fused")


def test_a_mode_that_is_not_implemented_is_set_all_the_same() -> None:
    net = with_attributes(train=refused, eval=refused)
    set_mode(net, training=False)
    assert {module.training for module in modules_of(net)} == {False}


def moving(self: Any, *args: Any, **kwargs: Any) -> None:
    device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
    self.given = (device, dtype)
    nn.Module.to(self, *args, **kwargs)


def moving_by_name(self: Any, *, dtype: torch.dtype, device: torch.device) -> None:
    moving(self, device, dtype)


def moving_to(self: Any, device: torch.device) -> None:
    self.given = (device,)


@pytest.mark.parametrize(
    ("to", "given"),
    [
        (moving, (DOUBLE.device, torch.float64)),
        (moving_by_name, (DOUBLE.device, torch.float64)),
        (moving_to, (DOUBLE.device,)),
    ],
)
def test_a_to_of_its_own_is_called_with_what_it_takes(to: Callable[..., None], given: tuple[object, ...]) -> None:
    net = with_attributes(to=to)
    DOUBLE.place_model(net)
    assert net.given == given
    assert {parameter.dtype for parameter in parameters_of(net)} == {torch.float64}


def test_a_to_gets_no_type_that_would_discard_imaginary_parts() -> None:
    net = with_attributes(to=moving)
    net.phase = nn.Parameter(torch.tensor([1j]))
    DOUBLE.place_model(net)
    assert net.given == (DOUBLE.device, None)
    assert net.phase.item() == 1j


def failing(_net: nn.Module, graph: object, node: object) -> None:
    raise ValueError(f"no edge {graph}, {node}")


def test_a_to_that_fails_matters_only_if_something_must_move() -> None:
    net = with_attributes(to=failing)
    Arithmetic(torch.device("cpu")).place_model(net)
    with pytest.raises(ValueError, match=r"no edge cpu, torch\.float64"):
        DOUBLE.place_model(net)


@pytest.mark.filterwarnings("ignore")  # torch deprecates its quantisation
def test_weights_of_quantised_layers_count_as_parameters_of_an_inference() -> None:
    layers = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2, bias=False), nn.LayerNorm(2))
    quantised = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear}, dtype=torch.qint8)
    assert parameter_count(quantised, "infer") == parameter_count(layers, "infer") == (4 + 1) * 8 + 8 * 2 + 2 * 2
    assert parameter_count(quantised, "train") == 2 * 2
