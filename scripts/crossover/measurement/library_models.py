"""Models of torchvision, timm and transformers with random weights; nothing is downloaded."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

from crossover import Step
from crossover.config.models import Model
from crossover.errors import UserError, did_you_mean

CLASSES = 1000
IMAGE_PIXELS = 224
TOKENS = 128


def _torchvision(model: Model, size: int | str, batch_size: int) -> Step:
    models = _library("torchvision")
    name, pixels = (size, IMAGE_PIXELS) if isinstance(size, str) else (model.name, size)
    if name not in models.list_models():
        raise _unknown(name, models.list_models())
    return _images(models.get_model(name, weights=None), pixels, batch_size)


def _timm(model: Model, size: int | str, batch_size: int) -> Step:
    timm = _library("timm")
    name = size if isinstance(size, str) else model.name
    if name not in timm.list_models():
        raise _unknown(name, timm.list_models())
    network = timm.create_model(name, pretrained=False)
    return _images(network, network.default_cfg["input_size"][-1] if isinstance(size, str) else size, batch_size)


def _transformers(model: Model, size: int | str, batch_size: int) -> Step:
    """A model of a config's class with that many layers; of a name with as many as the config has by itself."""
    transformers = _library("transformers")
    name = size if isinstance(size, str) else model.name
    config_class = getattr(transformers, name, None)
    if not isinstance(config_class, type) or not issubclass(config_class, transformers.PretrainedConfig):
        known = sorted(one for one in dir(transformers) if one.endswith("Config"))
        raise _unknown(name, known)
    config = config_class(**({"num_hidden_layers": size} if isinstance(size, int) else {}))
    network = transformers.AutoModel.from_config(config)
    if getattr(config, "image_size", None):
        side = config.image_size
        return Step(model=network, inputs={"pixel_values": torch.randn(batch_size, config.num_channels, side, side)})
    tokens = min(TOKENS, getattr(config, "max_position_embeddings", TOKENS))
    return Step(model=network, inputs={"input_ids": torch.randint(config.vocab_size, (batch_size, tokens))})


BUILDERS: Mapping[str, Callable[[Model, int | str, int], Step]] = {
    "torchvision": _torchvision,
    "timm": _timm,
    "transformers": _transformers,
}


def _unknown(name: str, known: list[str]) -> UserError:
    """That a name is unknown, with the closest ones."""
    return UserError(f"'{name}' is unknown{did_you_mean(name, known, 3)}; allowed: one of its {len(known)} names")


def _images(network: torch.nn.Module, pixels: int, batch_size: int) -> Step:
    labels = torch.randint(CLASSES, (batch_size,))
    return Step(model=network, inputs=torch.randn(batch_size, 3, pixels, pixels), targets=labels)


def _library(name: str) -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported
    try:
        return importlib.import_module("torchvision.models" if name == "torchvision" else name)
    except Exception as error:
        detail = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{name} cannot be imported ({type(error).__name__}: {detail}); install the one for this torch: "
            f"pip install {name}"
        ) from None
