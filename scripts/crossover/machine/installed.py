"""Installed packages: which folders hold them, their versions, and what tells one of the same version apart."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from crossover.machine.named_files import INSTALLED

STANDARD = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
NOT_INSTALLED = "not installed"


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


def files_of_checkouts(packages: Iterable[str]) -> dict[str, str]:
    """By distribution, a digest of the files of each package that was installed from a folder or a repository.

    Such a package keeps its version when its code changes.
    """
    from importlib import metadata

    digests = {}
    names = {name: version for package in packages for name, version in version_of(package).items()}
    for name in (name for name, version in names.items() if version != NOT_INSTALLED):
        distribution = metadata.distribution(name)
        if distribution.read_text("direct_url.json"):
            files = (distribution.read_text("RECORD") or "").splitlines()
            listed = "\n".join(sorted(line for line in files if ".dist-info" not in line))
            digests[name] = hashlib.sha256(listed.encode()).hexdigest()[:16]
    return digests
