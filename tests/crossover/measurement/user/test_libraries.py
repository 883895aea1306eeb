"""Models of libraries: how they are built, and which are rejected. transformers is real; torchvision and timm are
stand-ins with the same interface."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from crossover import Step
from crossover.config.models import Model
from crossover.measurement.user import libraries
from crossover.measurement.user.libraries import BUILDERS
from user_errors import error_line


@pytest.fixture(autouse=True)
def _fresh() -> None:
    libraries._classes.cache_clear()
    libraries._check_transformers.cache_clear()


def build(source: str, size: int | str, batch_size: int = 4) -> Step:
    library, name = source.split(":")
    return BUILDERS[library](Model(library, name), size, batch_size)


def complaint(source: str, size: int | str) -> str:
    line = error_line(build, source, size)
    assert line.startswith(f"{source}: ")
    return line.removeprefix(f"{source}: ")


class Scores(nn.Module):
    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.head = nn.Linear(3, classes)

    def forward(self, images: torch.Tensor) -> Any:
        return self.head(images.mean((2, 3)))


class Patches(Scores):
    def forward(self, images: torch.Tensor) -> Any:
        assert images.shape[-1] == 224, f"Wrong image height! Expected 224 but got {images.shape[-1]}!"
        return super().forward(images)


class Picky(Scores):
    """A model that reads a tensor's value, which fails on the meta device."""

    def forward(self, images: torch.Tensor) -> Any:
        return super().forward(images) if images.sum().item() else None


class Detector(Scores):
    def forward(self, images: torch.Tensor) -> Any:
        return [{"boxes": torch.zeros(0, 4)} for _ in images]


class Segmenter(Scores):
    def forward(self, images: torch.Tensor) -> Any:
        return OrderedDict(out=images, aux=images)


MODELS = {"resnet": Scores, "vit": Patches, "rcnn": Detector, "fcn": Segmenter}
MODELS |= {"picky": Picky, "quantized_resnet": Scores}


@pytest.fixture(params=["torchvision", "timm"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def builder(name: str) -> Callable[..., nn.Module]:
        def make(weights: object, weights_backbone: object = "downloads") -> nn.Module:
            assert weights is None
            assert weights_backbone is None
            return MODELS[name]()

        make.__module__ = f"torchvision.models.{'quantization.resnet' if 'quantized' in name else 'resnet'}"
        return make

    def create_model(name: str, pretrained: bool) -> nn.Module:
        assert not pretrained
        network = MODELS[name]()
        network.default_cfg = {"input_size": (3, 224, 224)}
        return network

    models: Any = ModuleType("torchvision.models")
    models.list_models = lambda: list(MODELS)
    models.get_model_builder = builder
    models.get_model = lambda name, **options: builder(name)(**options)
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    timm = SimpleNamespace(list_models=lambda: list(MODELS), create_model=create_model)
    monkeypatch.setitem(sys.modules, "timm", timm)
    return str(request.param)


@pytest.mark.parametrize("name", ["resnet", "picky"])
def test_a_classifier_has_images_and_labels_of_all_its_classes(library: str, name: str) -> None:
    made = build(f"{library}:{name}", 32, batch_size=200)
    assert made.inputs.shape == (200, 3, 32, 32)
    assert set(made.targets.tolist()) == set(range(5))
    assert made.model.training


def test_a_model_that_scores_pixels_has_no_labels(library: str) -> None:
    assert build(f"{library}:fcn", 32).targets is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vit", "a first forward pass on images of 64 x 64 pixels fails (AssertionError: Wrong image height!"),
        ("rcnn", "its output is a list, like that of a detector; build it in your own file"),
        ("resnets", "there is no model of that name (did you mean 'resnet'"),
    ],
)
def test_a_model_with_other_inputs_is_one_line(library: str, name: str, message: str) -> None:
    assert complaint(f"{library}:{name}", 64).startswith(message)


@pytest.mark.parametrize("library", ["torchvision"], indirect=True)
def test_a_quantised_model_is_not_measured_in_floating_point(library: str) -> None:
    message = "without its weights it computes in floating point; build it in your own file"
    assert complaint(f"{library}:quantized_resnet", 64) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ConvNextConfig", "this config has no num_hidden_layers; build it in your own file, or give no sizes"),
        (
            "ViltConfig",
            "a first forward pass with input_ids fails (ValueError: You have to specify either pixel_values or",
        ),
        ("SwinConfig", "num_hidden_layers has no effect on its network; build it in your own file"),
        ("BertConfg", "there is no model of that name (did you mean 'BertConfig'"),
    ],
)
def test_a_config_whose_layers_have_no_effect_or_with_other_inputs_is_one_line(name: str, message: str) -> None:
    assert complaint(f"transformers:{name}", 1).startswith(message)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("BertConfig", {"input_ids": (4, 128)}),
        ("T5Config", {"input_ids": (4, 128), "decoder_input_ids": (4, 128)}),
        ("ViTConfig", {"pixel_values": (4, 3, 224, 224)}),
    ],
)
def test_inputs_are_those_that_the_config_describes(name: str, shapes: dict[str, Any]) -> None:
    with torch.device("meta"):  # only shapes count
        made = build(f"transformers:{name}", 1)
    assert {key: tuple(value.shape) for key, value in made.inputs.items()} == shapes


def parameters(name: str, layers: int) -> int:
    with torch.device("meta"):
        model = build(f"transformers:{name}", layers).model
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_size_counts_layers_of_both_encoder_and_decoder() -> None:
    """T5 has width 512 (2048 in feed-forward layers) and no biases."""
    attention, feed_forward, norm = 4 * 512 * 512, 2 * 512 * 2048, 512
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    assert parameters("T5Config", 2) - parameters("T5Config", 1) == encoder + decoder
