"""Which code ran: the commit of this checkout, and whether files differ from it."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
"""The checkout that this package lies in."""

PARTS = ("Snakefile", "rules", "scripts", "config", "envs", "profiles", "report", "requirements.txt")
"""The parts of the checkout that can change a number or a page; results or notes beside them cannot."""

MOST_NAMED = 100

LONGEST_S = 20
"""Longest wait for git on a slow file system."""


@dataclass(frozen=True)
class Checkout:
    """A checkout as git sees it."""

    commit: str | None = None
    """The whole hash; None if it is not known."""
    branch: str | None = None
    """None if no branch is checked out."""
    tag: str | None = None
    """A tag of this commit."""
    changed: tuple[str, ...] = ()
    """Files of PARTS that differ from the commit or are not in git, at most MOST_NAMED."""
    remote: str | None = None
    """The URL it was cloned from, without user and password."""
    unknown: str | None = None
    """Why the commit is not known."""

    @property
    def code_version(self) -> str | None:
        """The commit, with `-dirty` if files were changed; None if it is not known."""
        return self.commit and self.commit + ("-dirty" if self.changed else "")


def find_checkout(root: Path = ROOT) -> Checkout:
    """Ask git about the checkout in a folder."""
    try:
        # A copy inside another repository does not have that one's commits.
        _git(root, "ls-files", "--error-unmatch", "Snakefile")
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *PARTS)
    except FileNotFoundError:
        return Checkout(unknown="git is not installed")
    except subprocess.TimeoutExpired:
        return Checkout(unknown=f"git took longer than {LONGEST_S} s")
    except (subprocess.CalledProcessError, OSError) as error:
        return Checkout(unknown=f"no git checkout ({_said(error)})")
    return Checkout(
        commit,
        _answer(root, "symbolic-ref", "--short", "--quiet", "HEAD"),
        _answer(root, "describe", "--tags", "--exact-match", "HEAD"),
        tuple(entry[3:] for entry in changed.split("\0") if entry)[:MOST_NAMED],
        without_password(_answer(root, "remote", "get-url", "origin")),
    )


def without_password(address: str | None) -> str | None:
    """A URL without user and password."""
    return address and re.sub(r"^(\w+://)[^/@]*@", r"\1", address)


def _answer(root: Path, *arguments: str) -> str | None:
    """What git says; None if it has no answer."""
    try:
        return _git(root, *arguments) or None
    except (subprocess.SubprocessError, OSError):
        return None


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


def _said(error: Exception) -> str:
    lines = str(getattr(error, "stderr", None) or error).strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else type(error).__name__
