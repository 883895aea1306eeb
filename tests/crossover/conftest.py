"""Fixtures: a fake kernel and a fake NVML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fake_nvml import FakeGpu, FakeNvml


@pytest.fixture
def kernel(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Writes files below the root of the machine, and returns that root."""

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "machine" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "machine"

    return write


@pytest.fixture
def fake_nvml() -> Callable[..., FakeNvml]:
    """Build a fake NVML of GPUs by UUID that answer the queries in a mapping and no others."""

    def build(gpus: Mapping[str, Mapping[str, Any]], installed: bool = True) -> FakeNvml:
        fakes = (FakeGpu(uuid, knows_mig=False, answers=answers) for uuid, answers in gpus.items())
        return FakeNvml(*fakes, there=installed)

    return build
