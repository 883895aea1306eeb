"""Fixture: a config folder with one study, new for each test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from crossover.config.config_keys import Configuration
from crossover.config.configuration import read_configuration
from crossover.config.layers import read_layers
from crossover.config.study import Study

STUDY = {
    "title": "A title",
    "question": "A question?",
    "workload": "disc_mlp",
    "sizes": [3, 2],
    "batch_sizes": [100],
}


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        for name in ("studies", "published"):
            (path / name).mkdir()
        self.write()

    def write(self, name: str = "mine", **changes: Any) -> None:
        """Write a study with other values of some keys; `...` leaves a key out."""
        values = {key: value for key, value in {**STUDY, **changes}.items() if value is not ...}
        (self.path / "studies" / f"{name}.yaml").write_text(yaml.safe_dump(values, sort_keys=False))

    def read(self, override: dict[str, Any] | None = None, entries: Sequence[str] = (), **config: Any) -> Configuration:
        """Read a config.yaml with these keys, a file that overrides it, and command-line entries."""
        (self.path / "config.yaml").write_text(yaml.safe_dump({"studies": ["mine"], **config}))
        sources = [self.path / "config.yaml"]
        if override:
            (self.path / "override.yaml").write_text(yaml.safe_dump(override))
            sources.append(self.path / "override.yaml")
        return read_configuration(read_layers(sources, entries), self.path)

    def study(self, **changes: Any) -> Study:
        self.write(**changes)
        return self.read().studies[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)
