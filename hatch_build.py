"""Adds the workflow to the wheel, as the folder `workflow` of package `crossover`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = ("Snakefile", "CITATION.cff", "rules", "scripts/*.py", "config", "envs", "profiles", "report")


class WorkflowInWheel(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":  # which finds them in the checkout
            root = Path(self.root)
            parts = [path.relative_to(root) for part in PARTS for path in root.glob(part)]
            build_data["force_include"] |= {str(path): f"crossover/workflow/{path}" for path in parts}
