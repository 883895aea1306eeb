"""What the tests of measuring share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def light_heap() -> Iterator[None]:
    """Leaves what is there already out of the collections before each timing, which take most of a quick test."""
    gc.freeze()
    yield
    gc.unfreeze()
