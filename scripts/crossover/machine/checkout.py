"""Which code ran: the commit of this checkout, and whether files differ from it."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from crossover.config.words import DIRTY

ROOT = Path(__file__).parents[3]
"""The checkout that this package lies in."""

PARTS = ("Snakefile", "rules", "scripts", "config", "envs", "profiles", "report", "requirements.txt")
"""The parts of the checkout that can change a number or a page; results or notes beside them cannot."""

LONGEST_S = 20
"""Longest wait for git on a slow file system."""


@dataclass(frozen=True)
class Checkout:
    """A checkout as git sees it."""

    commit: str | None = None
    """The whole hash; None if it is not known."""
    changed: tuple[str, ...] = ()
    """Files of PARTS that differ from the commit or are not in git."""
    remote: str | None = None
    """The URL it was cloned from, without user and password."""
    unknown: str | None = None
    """Why the commit is not known."""

    @property
    def code_version(self) -> str | None:
        """The commit, with `-dirty` if files were changed; None if it is not known."""
        return self.commit and self.commit + (DIRTY if self.changed else "")


def find_checkout(root: Path = ROOT) -> Checkout:
    """Ask git about the checkout in a folder."""
    try:
        # A copy inside another repository does not have that one's commits.
        _git(root, "ls-files", "--error-unmatch", "Snakefile")
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *PARTS)
    except (subprocess.SubprocessError, OSError) as error:
        return Checkout(unknown=f"no git checkout ({error})")
    try:
        remote = re.sub(r"^(\w+://)[^/@]*@", r"\1", _git(root, "remote", "get-url", "origin"))
    except subprocess.SubprocessError:
        remote = None
    return Checkout(commit, tuple(entry[3:] for entry in changed.split("\0") if entry), remote)


def _git(root: Path, *arguments: str) -> str:
    # In a git hook these variables name another repository, and a lock would disturb whoever works in this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        env=environment | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LONGEST_S,
        check=True,
    )
    return done.stdout.removesuffix("\n")
