"""The workload that config/README.md shows is one, and its test passes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from crossover.config import studies
from crossover.config.studies import Traits
from crossover.config.workloads import workload_traits
from crossover.measurement import workloads

README = Path(__file__).parents[4] / "config" / "README.md"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module is put where modules of workloads are looked for; the text of its test."""
    section = README.read_text().partition("## A workload of your own\n")[2].partition("\n## ")[0]
    module, test = re.findall(r"^```python\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "repeat.py").write_text(module)
    monkeypatch.setattr(studies, "WORKLOADS_FOLDER", tmp_path)
    monkeypatch.setattr(workloads, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{workloads.__name__}.repeat", raising=False)
    return str(test)


@pytest.mark.usefixtures("example")
def test_the_example_says_what_it_offers() -> None:
    assert studies.known_workloads() == ["repeat"]
    assert workload_traits("repeat") == Traits("features", (1, 32768), None, ("resident",))


def test_the_examples_own_test_passes(example: str) -> None:
    names: dict[str, Any] = {}
    exec(example, names)
    torch.manual_seed(0)
    names["test_it_learns_to_repeat"]()
    assert names["CELL"].workload == "repeat"
