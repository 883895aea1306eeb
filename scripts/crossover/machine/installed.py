"""Installed packages: which folders hold them, their versions, and what tells one of the same version apart."""

from __future__ import annotations

import csv
import hashlib
import re
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.machine.named_files import INSTALLED, digest_of

if TYPE_CHECKING:
    from importlib.metadata import Distribution

STANDARD = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
NOT_INSTALLED = "not installed"

MOST_FILES = 1000
"""Of a package that is looked at for files that were edited in their place."""


def is_installed(folder: Path) -> bool:
    """Whether a folder on Python's path belongs to Python or holds installed packages."""
    return (
        not INSTALLED.isdisjoint(folder.parts)
        or any(map(folder.is_relative_to, STANDARD))
        or any(folder.glob("*.dist-info"))  # as `pip install --target` leaves it
    )


@cache
def version_of(package: str) -> dict[str, str]:
    """Versions of the distributions that a package is imported from, by their names."""
    from importlib import metadata  # takes a moment

    try:
        return {package: metadata.version(package)}
    except metadata.PackageNotFoundError:  # its distribution has another name, or is missing
        names = metadata.packages_distributions().get(package, [])
        return {name: metadata.version(name) for name in sorted(set(names))} or {package: NOT_INSTALLED}


def installed_with(packages: Iterable[str]) -> dict[str, str]:
    """What tells the distributions of packages, and of all that they need, from others: their versions, and more.

    One that was installed from a folder or a repository keeps its version when its code changes, so that it counts by
    its files. So do files that were changed after they were installed. What a package may use, but does not need,
    counts if it is installed.
    """
    from importlib import metadata

    own = {_spelled(name) for package in packages for name in version_of(package)}
    todo, found = sorted(own), dict[str, str]()
    while todo:
        name = todo.pop()
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            found[name] = NOT_INSTALLED
            continue
        # Python's own parser takes a millisecond for each.
        facts = (distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or "").partition("\n\n")[0]
        found[name] = "".join(re.findall(r"^Version: (.*)$", facts, flags=re.MULTILINE))
        if name in own:
            found[name] += _changes(distribution)
        needs = re.findall(r"^Requires-Dist: ([\w.-]+)(.*)$", facts, flags=re.MULTILINE)
        todo += [_spelled(need) for need, condition in needs if name in own or "extra ==" not in condition]
    return {name: version for name, version in found.items() if name in own or version != NOT_INSTALLED}


def _spelled(name: str) -> str:
    """A distribution's name as all spellings of it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _changes(distribution: Distribution) -> str:
    """A digest of a distribution's own files if its version does not tell them; empty if it does."""
    record = distribution.read_text("RECORD")
    listed = Path(getattr(distribution, "_path", ""), "RECORD")
    if record is None or not listed.is_file():
        return ""
    lines = record.splitlines()
    kept = sorted(lines) if distribution.read_text("direct_url.json") else []
    if len(lines) <= MOST_FILES:
        folder, written_s = Path(str(distribution.locate_file(""))), listed.stat().st_mtime
        files = [folder / row[0] for row in csv.reader(lines) if row]
        kept += [f"{file.name} {digest_of(file)}" for file in files if _changed_after(file, written_s)]
    kept = [line for line in kept if ".dist-info" not in line]
    return " " + hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16] if kept else ""


def _changed_after(file: Path, written_s: float) -> bool:
    """Whether a file is newer than the list of what was installed, which is written last."""
    return file.suffix not in ("", ".pyc") and file.is_file() and file.stat().st_mtime > written_s + 1
