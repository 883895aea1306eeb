"""Models and configs of transformers for the workloads, imported quickly and without a network.

sklearn, scipy and pandas are hidden during the import, since transformers would import them if they are installed. That
would take another second per process, and results must not depend on which packages are installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers reads this when it is imported; all weights here are random


@contextmanager
def _left_out(*packages: str) -> Iterator[None]:
    absent = [package for package in packages if package not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # an import of a module that is None fails
    try:
        yield
    finally:
        for package in absent:
            del sys.modules[package]


with _left_out("sklearn", "scipy", "pandas"):
    from transformers import BertConfig as BertConfig
    from transformers import BertForSequenceClassification as BertForSequenceClassification
    from transformers import EfficientNetConfig as EfficientNetConfig
    from transformers import EfficientNetForImageClassification as EfficientNetForImageClassification
    from transformers import GPT2Config as GPT2Config
    from transformers import ResNetConfig as ResNetConfig
    from transformers import ResNetForImageClassification as ResNetForImageClassification
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block as GPT2Block
