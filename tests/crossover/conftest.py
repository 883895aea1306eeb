"""An NVML of made-up GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fake_nvml import FakeGpu, FakeNvml


@pytest.fixture
def fake_nvml() -> Callable[..., FakeNvml]:
    """Builds an NVML whose GPUs, by UUID, give the answers of a mapping and no others."""

    def build(gpus: Mapping[str, Mapping[str, Any]], installed: bool = True) -> FakeNvml:
        fakes = (FakeGpu(uuid, knows_mig=False, answers=answers) for uuid, answers in gpus.items())
        return FakeNvml(*fakes, there=installed)

    return build
