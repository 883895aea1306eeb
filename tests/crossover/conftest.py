"""Fixture: a fake NVML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fake_nvml import FakeGpu, FakeNvml


@pytest.fixture
def fake_nvml() -> Callable[..., FakeNvml]:
    """Build a fake NVML of GPUs by UUID that answer the queries in a mapping and no others."""

    def build(gpus: Mapping[str, Mapping[str, Any]], installed: bool = True) -> FakeNvml:
        fakes = (FakeGpu(uuid, knows_mig=False, answers=answers) for uuid, answers in gpus.items())
        return FakeNvml(*fakes, there=installed)

    return build
