"""Adds the workflow to the wheel, as the folder `workflow` of package `crossover`, and to the metadata what depends on
the repository from which the package is built: its address, and the README with links to it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PARTS = ("Snakefile", "CITATION.cff", "rules", "scripts/*.py", "config", "envs", "profiles", "report")
REMOTE = re.compile(r"(?:https://(?:[^/@]*@)?|git@)([^/:]+)[/:](.+?)(?:\.git)?/?")
RELATIVE_LINK = re.compile(r"(!?)\[([^]]*)\]\((?!https?:|#)([^)]+)\)")


class WorkflowInWheel(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":  # which finds them in the checkout
            root = Path(self.root)
            parts = [path.relative_to(root) for part in PARTS for path in root.glob(part)]
            build_data["force_include"] |= {str(path): f"crossover/workflow/{path}" for path in parts}


class RepositoryInMetadata(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        if "readme" in metadata:  # as in a source archive, which was built with the repository
            return
        address = None
        if Path(self.root, ".git").exists() and shutil.which("git"):
            git = ["git", "-C", self.root, "remote", "get-url", "origin"]
            address = web_address(subprocess.run(git, capture_output=True, text=True).stdout.strip())
        if address:
            pages = {"Issues": "issues", "Changelog": "blob/HEAD/CHANGELOG.md", "Documentation": "tree/HEAD/docs"}
            metadata["urls"] = {"Repository": address, **{name: f"{address}/{page}" for name, page in pages.items()}}
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_links_to(address, text)}


def web_address(remote: str) -> str | None:
    """The address of a repository's page, from the URL of its remote; None for a local one."""
    match = REMOTE.fullmatch(remote)
    return match and f"https://{match[1]}/{match[2]}"


def with_links_to(address: str | None, text: str) -> str:
    """A Markdown text whose relative links lead to the repository; without an address, their words stay."""

    def linked(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if address is None:
            return "" if picture else words
        return f"{picture}[{words}]({address}/{'raw' if picture else 'blob'}/HEAD/{target})"

    return RELATIVE_LINK.sub(linked, text)
