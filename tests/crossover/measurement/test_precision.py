from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from crossover.measurement.precision import UnsupportedError, _leaves, set_precision

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    before = {name: leaf.fp32_precision for name, leaf in _leaves().items()}
    yield
    for name, leaf in _leaves().items():
        leaf.fp32_precision = before[name]


def test_fp32_turns_tf32_off_wherever_it_was_on() -> None:
    torch.backends.cudnn.conv.fp32_precision = "tf32"
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    settings = set_precision("fp32", CPU)
    assert set(settings.values()) == {"ieee"}
    assert torch.backends.cudnn.conv.fp32_precision == "ieee"
    assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    backends = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
    assert set(settings) == {f"{backend}.fp32_precision" for backend in backends}


def test_tf32_is_unsupported_on_a_cpu() -> None:
    with pytest.raises(UnsupportedError, match="tf32 needs an NVIDIA GPU"):
        set_precision("tf32", CPU)


@pytest.mark.parametrize(("capability", "supported"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_tf32_needs_an_ampere_gpu(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], supported: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    gpu = torch.device("cuda", 0)
    if not supported:
        with pytest.raises(UnsupportedError):
            set_precision("tf32", gpu)
        return
    settings = set_precision("tf32", gpu)
    assert settings["cuda.matmul.fp32_precision"] == "tf32"
    assert settings["cudnn.conv.fp32_precision"] == "tf32"
    assert settings["mkldnn.matmul.fp32_precision"] == "ieee"
