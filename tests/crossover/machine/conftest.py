"""Fixture: a fake kernel, as files under /proc and /sys in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Kernel = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """Write files below a temporary root, and return the root."""

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "machine" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "machine"

    return write
