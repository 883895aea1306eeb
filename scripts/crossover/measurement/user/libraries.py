"""Models of torchvision, timm and transformers with random weights; nothing is downloaded.

A forward pass on torch's meta device, which computes nothing, shows whether a model accepts its inputs.
"""

from __future__ import annotations

import importlib
import inspect
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import nn

from crossover import Step
from crossover.config.models import Model
from crossover.errors import UserError, did_you_mean

IMAGE_PIXELS = 224
TOKENS = 128
PROBED_ROWS = 2
LONGEST_REASON = 200
IN_A_FILE = "build it in your own file"
LAYERS = "num_hidden_layers"
LAYERS_OF_DECODERS = ("decoder_layers", "num_decoder_layers")
"""Keys of a config for the number of layers in a separate decoder."""


def _of_images(library: str, model: Model, size: int | str, batch_size: int) -> Step:
    name = size if isinstance(size, str) else model.name
    network = _image_network(library, name)
    default_pixels = getattr(network, "default_cfg", {}).get("input_size", (IMAGE_PIXELS,))[-1]
    pixels = default_pixels if isinstance(size, str) else size
    classes = _classes(library, name, pixels)
    targets = torch.randint(classes, (batch_size,)) if classes else None
    return Step(model=network, inputs=torch.randn(batch_size, 3, pixels, pixels), targets=targets)


def _image_network(library: str, name: str) -> nn.Module:
    models = _library(library)
    if name not in models.list_models():
        raise _unknown(library, name, models.list_models())
    network: nn.Module
    if library == "timm":
        network = models.create_model(name, pretrained=False)
        return network
    builder = models.get_model_builder(name)
    if "quantization" in builder.__module__.split("."):
        raise UserError(f"torchvision:{name}: without its weights it computes in floating point; {IN_A_FILE}")
    backbone = {"weights_backbone": None} if "weights_backbone" in inspect.signature(builder).parameters else {}
    network = models.get_model(name, weights=None, **backbone)
    return network


@cache
def _classes(library: str, name: str, pixels: int) -> int | None:
    """Number of classes for which a model returns scores; None if it has another kind of output."""
    make, images = partial(_image_network, library, name), torch.ones(PROBED_ROWS, 3, pixels, pixels)
    try:
        with torch.device("meta"):
            output = _forward(make(), images.to("meta"))
    except UserError:
        raise
    except Exception:  # the meta device may lack an operator
        shown = f"{library}:{name}: a first forward pass on images of {pixels} x {pixels} pixels"
        output = _on_cpu(make, shown, f"use other sizes, or {IN_A_FILE}", images)
    if isinstance(output, list):
        raise UserError(f"{library}:{name}: its output is a list, like that of a detector; {IN_A_FILE}")
    scores = getattr(output, "logits", output)
    return scores.shape[1] if isinstance(scores, torch.Tensor) and scores.dim() == 2 else None


def _transformers(model: Model, size: int | str, batch_size: int) -> Step:
    """A step of a config's model with `size` layers; with the default number if `size` is the config's name."""
    name, layers = (size, None) if isinstance(size, str) else (model.name, size)
    _check_transformers(name, layers)
    network = _transformers_network(name, layers)
    return Step(model=network, inputs=_inputs(network, name, batch_size))


@cache
def _check_transformers(name: str, layers: int | None) -> None:
    """Raise UserError if the number of layers has no effect, or if a forward pass shows that the inputs do not fit."""
    with torch.device("meta"):
        networks = [_transformers_network(name, layers)]
        inputs = _inputs(networks[0], name, PROBED_ROWS)
        networks += [] if layers is None else [_transformers_network(name, layers + 1)]
    calls: set[int] = set()
    for network in networks:
        try:
            calls.add(_calls(network, inputs))
        except RuntimeError:  # the meta device may lack an operator; wrong inputs will fail in the step
            break
        except Exception:
            zeros = {key: torch.zeros_like(value, device="cpu") for key, value in inputs.items()}
            shown = f"transformers:{name}: a first forward pass with {' and '.join(inputs)}"
            make = partial(_transformers_network, name, layers)
            _on_cpu(make, shown, f"it may need other inputs: {IN_A_FILE}", **zeros)
            break
    if len(networks) == 2 and len(set(map(_extent, networks))) == 1 and len(calls) < 2:
        raise UserError(f"transformers:{name}: {LAYERS} has no effect on its network; {IN_A_FILE}, or give no sizes")


def _transformers_network(name: str, layers: int | None) -> nn.Module:
    transformers = _library("transformers")
    kind = getattr(transformers, name, None)
    if not isinstance(kind, type) or not issubclass(kind, transformers.PretrainedConfig):
        raise _unknown("transformers", name, [key for key in dir(transformers) if key.endswith("Config")])
    try:
        config = kind()
        if layers is not None:
            if getattr(config, LAYERS, None) is None:
                raise UserError(f"transformers:{name}: this config has no {LAYERS}; {IN_A_FILE}, or give no sizes")
            decoder = {key: layers for key in LAYERS_OF_DECODERS if getattr(config, key, None) is not None}
            config = kind(**{LAYERS: layers, **decoder})
            if getattr(config, LAYERS) != layers:
                raise UserError(f"transformers:{name}: this config ignores {LAYERS}; {IN_A_FILE}, or give no sizes")
        network: nn.Module = transformers.AutoModel.from_config(config)
    except UserError:
        raise
    except Exception as error:
        options = "" if layers is None else f" with {LAYERS}={layers}"
        raise UserError(f"transformers:{name}: no model can be built{options} ({_shown(error)}); {IN_A_FILE}") from None
    return network


def _inputs(network: Any, name: str, batch_size: int) -> dict[str, torch.Tensor]:
    """Random images of the config's size (default: 224 pixels), or texts of up to 128 random token ids."""
    config, main = network.config, network.main_input_name
    needed = inspect.signature(network.forward).parameters
    if main == "pixel_values":
        side = getattr(config, "image_size", None) or IMAGE_PIXELS
        sides = (side, side) if isinstance(side, int) else tuple(side)
        inputs = {main: torch.randn(batch_size, getattr(config, "num_channels", 3), *sides)}
    elif main == "input_ids" and isinstance(getattr(config, "vocab_size", None), int):
        longest = getattr(config, "max_position_embeddings", None) or TOKENS
        tokens = min(TOKENS, longest) if longest > 0 else TOKENS  # -1: no limit
        texts = [key for key in (main, "decoder_input_ids") if key == main or key in needed]
        inputs = {key: torch.randint(config.vocab_size, (batch_size, tokens)) for key in texts}
    else:
        raise UserError(f"transformers:{name}: its config does not describe its inputs ({main}); {IN_A_FILE}")
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    required = [key for key, value in needed.items() if value.default is value.empty and value.kind in kinds]
    if missing := [key for key in required if key not in inputs]:
        raise UserError(f"transformers:{name}: it needs {', '.join(missing)} in addition to {main}; {IN_A_FILE}")
    return inputs


def _on_cpu(make: Callable[[], nn.Module], shown: str, advice: str, *arguments: Any, **keywords: Any) -> Any:
    try:
        return _forward(make(), *arguments, **keywords)
    except Exception as error:
        raise UserError(f"{shown} fails ({_shown(error)}); {advice}") from None


def _forward(network: nn.Module, *arguments: Any, **keywords: Any) -> Any:
    with torch.no_grad():
        return network.eval()(*arguments, **keywords)


def _extent(network: nn.Module) -> tuple[int, int]:
    return sum(parameter.numel() for parameter in network.parameters()), len(list(network.modules()))


def _calls(network: nn.Module, inputs: Mapping[str, Any]) -> int:
    """Number of module calls in a forward pass, which grows with the number of layers even if they share weights."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    handle = nn.modules.module.register_module_forward_pre_hook(count)
    try:
        with torch.device("meta"):
            _forward(network, **inputs)
    finally:
        handle.remove()
    return calls


BUILDERS: Mapping[str, Callable[[Model, int | str, int], Step]] = {
    "torchvision": partial(_of_images, "torchvision"),
    "timm": partial(_of_images, "timm"),
    "transformers": _transformers,
}


def _unknown(library: str, name: str, names: Sequence[str]) -> UserError:
    close = did_you_mean(name, names, 3)
    return UserError(f"{library}:{name}: there is no model of that name{close}; allowed: one of its {len(names)} names")


def _shown(error: Exception) -> str:
    message = textwrap.shorten(str(error), LONGEST_REASON, placeholder="...")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _library(name: str) -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"  # transformers reads this when it is imported
    try:
        return importlib.import_module("torchvision.models" if name == "torchvision" else name)
    except Exception as error:
        raise UserError(
            f"{name} cannot be imported ({_shown(error)}); install the version for this torch: pip install {name}"
        ) from None
