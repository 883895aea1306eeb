"""A model's modules and tensors, its mode and its place, also if its class uses a name of nn.Module for something else.

A user's class may call its training loop `train`, a list `buffers`, or its parts `children`. Such a model can be called
all the same. Its tensors are therefore found where torch stores them, and only overrides with torch's meaning are used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import nn


def named_modules_of(model: nn.Module) -> dict[str, nn.Module]:
    """A model's modules by name, each once, parents first; the model itself has the name ""."""
    named: dict[str, nn.Module] = {}
    seen: set[int] = set()

    def visit(name: str, module: nn.Module) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        named[name] = module
        for child_name, child in nn.Module.named_children(module):
            visit(f"{name}.{child_name}" if name else child_name, child)

    visit("", model)
    return named


def modules_of(model: nn.Module) -> list[nn.Module]:
    return list(named_modules_of(model).values())


def parameters_of(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of a model, each once."""
    owned = (parameter for module in modules_of(model) for parameter in module._parameters.values())
    return list({id(parameter): parameter for parameter in owned if parameter is not None}.values())


def named_buffers_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers of a model by name, each once, also those that are not persistent."""
    owned = {
        f"{prefix}.{name}" if prefix else name: buffer
        for prefix, module in named_modules_of(model).items()
        for name, buffer in module._buffers.items()
        if buffer is not None
    }
    first_names = {id(buffer): name for name, buffer in reversed(owned.items())}
    return {name: buffer for name, buffer in owned.items() if first_names[id(buffer)] == name}


def buffers_of(model: nn.Module) -> list[torch.Tensor]:
    return list(named_buffers_of(model).values())


def tensors_in(model: nn.Module) -> list[torch.Tensor]:
    """The parameters and buffers of a model."""
    return [*parameters_of(model), *buffers_of(model)]


def packed_tensors_in(model: nn.Module) -> list[torch.Tensor]:
    """The weights and biases of quantised linear and convolutional layers, which torch packs and no parameter holds."""
    layers: list[Any] = [
        module for module in modules_of(model) if isinstance(vars(module).get("_packed_params"), torch.ScriptObject)
    ]
    return [tensor for layer in layers for tensor in layer._weight_bias() if tensor is not None]


def set_mode(model: nn.Module, training: bool) -> None:
    """Put a model into training or evaluation mode; an override is called if it takes what torch passes.

    Any other attribute called `train` or `eval` is left alone. Raises what an override raises, except
    NotImplementedError, with which an exported program refuses a mode.
    """
    try:
        if not training and _is_own(model, "eval") and _parameters(model.eval) == []:
            model.eval()
            return
        if _is_own(model, "train") and _takes_mode(model.train):
            model.train(training)
            return
    except NotImplementedError:
        pass
    model.training = training
    for _, child in nn.Module.named_children(model):
        set_mode(child, training)


def _is_own(model: nn.Module, name: str) -> bool:
    """True if a model's class or the model itself replaces this attribute of nn.Module."""
    return name in vars(model) or getattr(type(model), name) is not getattr(nn.Module, name)


def _parameters(function: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # not callable, or without a signature
        return None


def _takes_mode(train: Any) -> bool:
    """True for a function like `train(mode=True)`, False for one that takes something else, such as data."""
    parameters = _parameters(train)
    if not parameters:
        return False
    first, *others = parameters
    if any(other.default is other.empty and other.kind is other.POSITIONAL_OR_KEYWORD for other in others):
        return False
    is_flag = first.name == "mode" or isinstance(first.default, bool) or first.annotation in (bool, "bool")
    return is_flag or first.kind is first.VAR_POSITIONAL


def move(
    model: nn.Module, place: Callable[[torch.Tensor], torch.Tensor], device: torch.device, dtype: torch.dtype
) -> None:
    """Apply `place` to a model's parameters and buffers, in place, after the model's own `to` if it has one.

    Raises what that `to` raises, unless the tensors are in place already. It gets no type if the model has complex
    tensors, whose imaginary parts it would discard.
    """
    is_complex = any(map(torch.is_complex, tensors_in(model)))
    try:
        call_own_to(model, device, None if is_complex else dtype)
    except Exception:
        if any(place(tensor) is not tensor for tensor in tensors_in(model)):
            raise
    modules = modules_of(model)
    if any(_is_own(module, name) for module in modules for name in ("children", "named_children")):
        for module in modules:
            module._apply(place, recurse=False)
    else:
        model._apply(place)


def call_own_to(model: nn.Module, device: torch.device, dtype: torch.dtype | None) -> None:
    """Call a model's `to` if it is not torch's, since it may update attributes, such as `device`, that the model reads.

    A `to` that takes only a device gets no type.
    """
    parameters = _parameters(model.to) if _is_own(model, "to") else None
    if parameters is None:
        return
    names = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    ways: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((device, dtype), {}), ((device,), {"dtype": dtype})]
    if names >= {"device", "dtype"}:
        ways.insert(0, ((), {"device": device, "dtype": dtype}))
    ways = [*(ways if dtype is not None else ()), ((device,), {})]
    for given, named in ways:
        with suppress(TypeError):
            inspect.signature(model.to).bind(*given, **named)
            break
    model.to(*given, **named)
