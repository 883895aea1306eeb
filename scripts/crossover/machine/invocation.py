"""The command and the code version of a run, which the main process passes to its jobs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from crossover.config.words import DIRTY

INVOCATION = "CROSSOVER_INVOCATION"

PROFILE = "SNAKEMAKE_PROFILE"

SECRET = re.compile(r"(--\S*(?:secret|passw|token|credential|-key)\S*?[= ])\S+", re.IGNORECASE)
"""An option with a secret value, as in Snakemake's storage plugins."""

ROOT = Path(__file__).parents[3]

PARTS = ("Snakefile", "rules", "scripts", "config", "envs", "profiles", "report", "requirements.txt")
"""The files and folders of the checkout that can affect a result or a report."""

LONGEST_S = 20
"""Time limit of a git command, in seconds. Git may be slow on a network file system."""


@dataclass(frozen=True)
class Checkout:
    commit: str | None = None
    changed: tuple[str, ...] = ()
    """Files of PARTS that differ from the commit or are not in git."""
    remote: str | None = None
    """The URL of `origin`, without credentials."""
    unknown: str | None = None
    """Reason why the commit is not known."""

    @property
    def code_version(self) -> str | None:
        """The commit, with `-dirty` if files were changed; None if the commit is not known."""
        return self.commit and self.commit + (DIRTY if self.changed else "")


@dataclass(frozen=True)
class Invocation:
    command: str
    """The command line, without secrets."""
    folder: str
    """The working directory."""
    checkout: Checkout


def this_invocation(arguments: Sequence[str], folder: str, environment: Mapping[str, str] = os.environ) -> Invocation:
    """The invocation of the run that this process starts; `arguments` are Snakemake's."""
    command = SECRET.sub(r"\1***", shlex.join(["snakemake", *arguments]))
    if profile := environment.get(PROFILE):
        command = f"{PROFILE}={shlex.quote(profile)} {command}"
    return Invocation(command, folder, find_checkout())


def hand_down_invocation(invocation: Invocation) -> None:
    """Pass the invocation to the jobs of this workflow, by an environment variable."""
    os.environ[INVOCATION] = json.dumps(asdict(invocation))


def handed_down_invocation() -> Invocation | None:
    """The invocation that the main process passed to this job; None if there is none."""
    handed_down = os.environ.get(INVOCATION)
    if not handed_down:
        return None
    fields = json.loads(handed_down)
    checkout = fields.pop("checkout")
    return Invocation(**fields, checkout=Checkout(**{**checkout, "changed": tuple(checkout["changed"])}))


def code_version() -> str | None:
    """The run's code version; for a command started by hand, that of the checkout."""
    invocation = handed_down_invocation()
    return (find_checkout() if invocation is None else invocation.checkout).code_version


def find_checkout(root: Path = ROOT) -> Checkout:
    """The checkout in a folder, according to git."""
    try:
        # This command fails in a copy inside another repository, whose commits do not describe the copy.
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
    # Git hooks set GIT_ variables that point to another repository. Optional locks may block other git processes.
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
