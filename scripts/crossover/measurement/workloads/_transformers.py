"""The models and configs that workloads take from transformers, imported quickly, quietly and without a network.

transformers reads sklearn, scipy and pandas in where it finds them, for text generation and object detection. That
would cost a process another second, and the numbers here must not depend on what is installed beside torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

os.environ["HF_HUB_OFFLINE"] = "1"  # read once, when it is imported; all weights here are random


@contextmanager
def _left_out(*packages: str) -> Iterator[None]:
    """Have packages that are not imported yet look as if they were not installed."""
    absent = [package for package in packages if package not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None is Python's mark for that
    try:
        yield
    finally:
        for package in absent:
            del sys.modules[package]


with _left_out("sklearn", "scipy", "pandas"):
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        EfficientNetConfig,
        EfficientNetForImageClassification,
        GPT2Config,
        ResNetConfig,
        ResNetForImageClassification,
    )
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

__all__ = [
    "BertConfig",
    "BertForSequenceClassification",
    "EfficientNetConfig",
    "EfficientNetForImageClassification",
    "GPT2Block",
    "GPT2Config",
    "ResNetConfig",
    "ResNetForImageClassification",
]
