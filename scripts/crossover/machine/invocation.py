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

TYPED = "CROSSOVER_TYPED"
"""The variable by which command `crossover` hands its own command line to the Snakemake that it becomes."""

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
    typed: str | None = None
    """The command line of `crossover`, without secrets; None for a run that was started with Snakemake."""

    def into(self, results: str, without: Sequence[str] = ()) -> str:
        """The command that measures the same into another results folder, without the entries of some config keys."""
        words = shlex.split(self.command if self.typed is None else self.typed)
        dropped = ["results", *without]
        if self.typed is not None:
            return shlex.join(_inserted(_without_options(words, dropped), ["--results", results]))
        environment = ""
        if words[0].startswith(f"{PROFILE}="):
            environment = f"{PROFILE}={shlex.quote(words.pop(0).partition('=')[2])} "
        return environment + shlex.join(_with_config(words, f"results={results}", dropped))


def _without_options(words: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The command line of `crossover` without the options of some config keys."""
    end = words.index("--") if "--" in words else len(words)
    options = [f"--{key}" for key in keys]
    values = [number + 1 for number in range(end) if words[number] in options]
    kept = [n for n in range(end) if n not in values and words[n].partition("=")[0] not in options]
    return [*(words[number] for number in kept), *words[end:]]


def _with_config(words: Sequence[str], added: str, dropped: Sequence[str]) -> list[str]:
    """Snakemake's command with an entry of --config and without those of other keys; only the last --config counts."""
    end = words.index("--") if "--" in words else len(words)
    starts = [number for number in range(end) if re.match("--config(=|$)|-C", words[number])]
    if not starts:
        return _inserted(words, ["--config", added])
    first = starts[-1] + 1
    # Words after an option with its entry in the same word, `--config=KEY=VALUE`, are targets.
    entry = re.sub("^(--config=?|-C)", "", words[first - 1])
    last = first if entry else next((number for number in range(first, end) if words[number].startswith("-")), end)
    entries = [word for word in [entry, *words[first:last]] if word and word.partition("=")[0] not in dropped]
    if entry and not entries:
        return [*words[: first - 1], f"--config={added}", *words[first:]]
    others = words if entry else [*words[: first - 1], *words[last:]]
    return _inserted(others, ["--config", *entries, added])


def _inserted(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command with further options before `--`, if it has one."""
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], *options, *words[end:]]


def this_invocation(arguments: Sequence[str], folder: str, environment: Mapping[str, str] = os.environ) -> Invocation:
    """The invocation of the run that this process starts; `arguments` are Snakemake's."""
    command = SECRET.sub(r"\1***", shlex.join(["snakemake", *arguments]))
    if profile := environment.get(PROFILE):
        command = f"{PROFILE}={shlex.quote(profile)} {command}"
    typed = environment.get(TYPED)
    return Invocation(command, folder, find_checkout(), typed and SECRET.sub(r"\1***", typed))


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
