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

from crossover.machine.named_files import INSTALLED

if TYPE_CHECKING:
    from importlib.metadata import Distribution

STANDARD = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
NOT_INSTALLED = "not installed"

MOST_FILES = 3000
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
    its files. So do files that were changed after they were installed.
    """
    from importlib import metadata

    todo = [name for package in packages for name in version_of(package)]
    found: dict[str, str] = {}
    while todo:
        name = _spelled(todo.pop())
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            found[name] = NOT_INSTALLED
            continue
        found[name] = distribution.version
        todo += [match[0] for need in distribution.requires or [] if (match := re.match(r"[\w.-]+", need))]
    for package in packages:
        for name in version_of(package):
            if found[_spelled(name)] != NOT_INSTALLED:
                found[_spelled(name)] += _changes(metadata.distribution(name))
    return found


def _spelled(name: str) -> str:
    """A distribution's name as all spellings of it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _changes(distribution: Distribution) -> str:
    """A digest of a distribution's own files if its version does not tell them; empty if it does."""
    record = distribution.read_text("RECORD")
    folder = Path(str(distribution.locate_file("")))
    files = [row[:2] for row in csv.reader((record or "").splitlines()) if len(row) > 1 and ".dist-info/" not in row[0]]
    listed = Path(getattr(distribution, "_path", folder), "RECORD")
    if record is None or not listed.is_file():
        return ""
    kept = sorted(map(str, files)) if distribution.read_text("direct_url.json") else []
    if len(files) <= MOST_FILES:
        kept += [f"{name} {_digest(folder / name)}" for name, _ in files if _is_newer(folder / name, listed)]
    return " " + hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16] if kept else ""


def _is_newer(file: Path, than: Path) -> bool:
    return file.suffix != ".pyc" and file.is_file() and file.stat().st_mtime > than.stat().st_mtime + 1


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
