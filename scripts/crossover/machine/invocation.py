"""The command and the code version of a run, which the main process passes to its jobs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from crossover import __version__
from crossover.config.words import DIRTY
from crossover.home import IS_INSTALLED, NAME, ROOT

INVOCATION = "CROSSOVER_INVOCATION"

PROFILE = "SNAKEMAKE_PROFILE"

TYPED = "CROSSOVER_TYPED"
"""The variable by which command `crossover` hands its own command line to the Snakemake that it becomes."""

SECRET = re.compile(r"(--\S*(?:secret|passw|token|credential|-key)\S*?[= ])\S+", re.IGNORECASE)
"""An option with a secret value, as in Snakemake's storage plugins."""

CHECKOUT_ELSEWHERE = "CROSSOVER"
"""Stands for the path of Crossover's checkout in a command for another machine."""

NO_PATH = "\\[\\]{},=:'\""
PATHS = re.compile(rf"(?:-[sd](?=.*/))?([^ {NO_PATH}](?:[^{NO_PATH}]*[^ {NO_PATH}])?)")
"""The parts of a word of a command that may be paths, without a short option before them."""

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
    own_config: bool = False
    """Whether this is a module of another workflow with a config of its own, which `--config` does not change."""

    def into(self, results: str, changes: Mapping[str, str] | None = None) -> str:
        """The command that measures the same into another results folder, with changed values of some config keys.

        For a module with a config of its own, a comment after the command says what to change there.
        """
        values = {**(changes or {}), "results": results}
        return self._with(values) + self._comment(values)

    def _comment(self, values: Mapping[str, str]) -> str:
        keys = ", ".join(f"{key}: {value}" for key, value in values.items())
        return f"  # after setting {keys} in the module's config" if self.own_config else ""

    def _with(self, values: Mapping[str, str]) -> str:
        if self.own_config:
            return self.command
        if self.typed is not None:
            words, _ = _without_options(shlex.split(self.typed), values)
            return shlex.join(_inserted(words, [word for key in values for word in (f"--{key}", values[key])]))
        words, given = _without_config(shlex.split(self.command))
        kept = {key: value for key, value in given.items() if key not in values}
        return _joined(_inserted(words, ["--config", *map("=".join, {**kept, **values}.items())]))

    def given(self, key: str) -> str | None:
        """The value of a config key in the command line; None if it is not there."""
        if self.typed is not None:
            return _without_options(shlex.split(self.typed), [key])[1].get(key)
        return _without_config(shlex.split(self.command))[1].get(key)

    def elsewhere(self, results: str, changes: Mapping[str, str], files: Sequence[str] = ()) -> Elsewhere:
        """The command that measures the same on another machine, with changed values of some config keys.

        `files` are those that the studies read. Files named in the command are then in the copy of the folder, and the
        checkout, if it is outside of the folder, is at CHECKOUT_ELSEWHERE.
        """
        moved: list[str] = []
        values = {**changes, "results": results}
        words = [
            PATHS.sub(lambda match: match[0].removesuffix(match[1]) + self._path_elsewhere(match[1], moved), word)
            for word in shlex.split(self._with(values))
        ]
        outside = [file for file in files if _below(file, self.folder) is None and file not in moved]
        folders = {Path(file).parent for file in moved}
        beside = [file for file in outside if Path(file).parent in folders]
        at_their_path = [file for file in outside if file not in beside and _below(file, ROOT) is None]
        uses_checkout = any(f"{CHECKOUT_ELSEWHERE}/" in word for word in words)
        return Elsewhere(_joined(words) + self._comment(values), uses_checkout, (*moved, *beside), tuple(at_their_path))

    def _path_elsewhere(self, text: str, moved: list[str]) -> str:
        """A path on another machine, or a text that is none; a file to copy is added to `moved`."""
        path = Path(os.path.normpath(Path(self.folder) / text))
        inside, in_checkout = _below(path, self.folder), _below(path, ROOT)
        if not path.exists() or (inside is not None and not Path(text).is_absolute()):
            return text
        if inside is not None:
            return inside
        if in_checkout is not None:
            return f"{CHECKOUT_ELSEWHERE}/{in_checkout}"
        if path.is_file():
            moved += [str(path)] if str(path) not in moved else []
            return path.name
        return text


@dataclass(frozen=True)
class Elsewhere:
    """A command for a copy of the working directory on another machine, and what it needs there."""

    command: str
    uses_checkout: bool
    """Whether the command contains CHECKOUT_ELSEWHERE."""
    files: tuple[str, ...]
    """Files outside of the working directory to be copied into it."""
    at_their_path: tuple[str, ...]
    """Files that must have the same path there, since a study names them."""


def _below(path: Path | str, folder: Path | str) -> str | None:
    """The path relative to a folder that contains it; None for a path outside."""
    relative = os.path.relpath(path, folder)
    return None if Path(relative).parts[:1] == ("..",) else relative


def _joined(words: Sequence[str]) -> str:
    """A command line, which may begin with an environment variable."""
    name, _, value = words[0].partition("=")
    environment = f"{PROFILE}={shlex.quote(value)} " if name == PROFILE else ""
    return environment + shlex.join(words[1:] if environment else words)


def _without_options(words: Sequence[str], keys: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """The command line of `crossover` without the options of some config keys, and the values of these."""
    options = {f"--{key}": key for key in keys}
    kept, given, rest = list[str](), dict[str, str](), iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        if word == "--":
            return [*kept, word, *rest], given
        if name in options:
            given[options[name]] = value if sign else next(rest)
        else:
            kept.append(word)
    return kept, given


def _without_config(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Snakemake's command without its last --config, the only one that counts, and the entries of that.

    Words after an option with its entry in the same word, `--config=KEY=VALUE`, are targets, and come after `--`.
    """
    end = words.index("--") if "--" in words else len(words)
    starts = [number for number in range(end) if re.match("--config(=|$)|-C", words[number])]
    if not starts:
        return list(words), {}
    first = starts[-1] + 1
    entry = re.sub("^(--config=?|-C)", "", words[first - 1])
    last = next((number for number in range(first, end) if words[number].startswith("-")), end)
    entries, targets = ([entry], words[first:last]) if entry else (words[first:last], [])
    options, targets = [*words[: first - 1], *words[last:end]], [*targets, *words[end + 1 :]]
    given = dict(text.split("=", 1) for text in entries if "=" in text)
    return [*options, *(["--", *targets] if targets else [])], given


def _inserted(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """A command with further options before `--`, if it has one."""
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], *options, *words[end:]]


def this_invocation(
    arguments: Sequence[str], folder: str, environment: Mapping[str, str] = os.environ, own_config: bool = False
) -> Invocation:
    """The invocation of the run that this process starts; `arguments` are Snakemake's."""
    command = SECRET.sub(r"\1***", shlex.join(["snakemake", *arguments]))
    if profile := environment.get(PROFILE):
        command = f"{PROFILE}={shlex.quote(profile)} {command}"
    typed = environment.get(TYPED)
    return Invocation(command, folder, find_checkout(), typed and SECRET.sub(r"\1***", typed), own_config)


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
    if IS_INSTALLED:
        return Checkout(unknown=f"the installed package {NAME} {__version__}")
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
