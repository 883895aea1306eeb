"""The example workload in docs/how-to/configure.md is valid, and its test passes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from crossover.config import workloads as offered
from crossover.config.words import COLD, COPYING, EACH
from crossover.measurement import workloads


def test_the_example_is_a_workload_and_its_own_test_passes(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (root / "docs" / "how-to" / "configure.md").read_text()
    section = readme.partition("## A workload of your own\n")[2].partition("\n## ")[0]
    module, test = re.findall(r"^```python\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "repeat.py").write_text(module)
    monkeypatch.setattr(offered, "WORKLOADS_FOLDER", tmp_path)
    monkeypatch.setattr(workloads, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{workloads.__name__}.repeat", raising=False)
    assert offered.known_workloads() == ["repeat"]
    assert offered.workload_traits("repeat") == offered.Traits(
        "features", (1, 32768), None, ("resident", *COPYING, EACH, COLD)
    )

    names: dict[str, Any] = {}
    exec(test, names)
    torch.manual_seed(0)
    names["test_it_learns_to_repeat"]()
    assert names["CELL"].workload == "repeat"
