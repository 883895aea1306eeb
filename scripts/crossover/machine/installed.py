"""Installed packages: their folders, their versions, and digests of those installed from a folder or repository."""

from __future__ import annotations

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

STANDARD_LIBRARY = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
NOT_INSTALLED = "not installed"


def is_installed(folder: Path) -> bool:
    """Whether a folder on Python's path belongs to Python or holds installed packages."""
    return (
        not INSTALLED.isdisjoint(folder.parts)
        or any(map(folder.is_relative_to, STANDARD_LIBRARY))
        or any(folder.glob("*.dist-info"))  # as `pip install --target` leaves it
    )


@cache
def version_of(package: str) -> dict[str, str]:
    """Versions of the distributions that a package is imported from, by their names."""
    from importlib import metadata  # takes a moment

    try:
        return {package: metadata.version(package)}
    except metadata.PackageNotFoundError:  # its distribution has another name, or is missing
        return {name: metadata.version(name) for name in _distributions_of(package)} or {package: NOT_INSTALLED}


def _distributions_of(package: str) -> list[str]:
    """Names of the distributions that hold a package, sorted.

    As `importlib.metadata.packages_distributions` finds them, which takes half a second, since it makes a path of each
    file of each distribution.
    """
    from importlib import metadata

    of_package = re.compile(rf"^{re.escape(package)}[/.]", re.MULTILINE)

    def holds(distribution: Distribution) -> bool:
        if (top_level := distribution.read_text("top_level.txt")) is not None:
            return package in top_level.split()
        return of_package.search(distribution.read_text("RECORD") or "") is not None

    return sorted({distribution.metadata["Name"] for distribution in metadata.distributions() if holds(distribution)})


def local_builds(packages: Iterable[str]) -> dict[str, str]:
    """Digests of the packages' distributions that were installed from a folder or a repository, by name.

    Such a distribution may keep its version when its code changes.
    """
    from importlib import metadata

    names = {name for package in packages for name, version in version_of(package).items() if version != NOT_INSTALLED}
    distributions = [metadata.distribution(name) for name in sorted(names)]
    return {built.name: _digest_of_files(built) for built in distributions if built.read_text("direct_url.json")}


def _digest_of_files(distribution: Distribution) -> str:
    """A digest of the names and hashes of a distribution's files, without its metadata."""
    files = (distribution.read_text("RECORD") or "").splitlines()
    listed = sorted(line for line in files if ".dist-info" not in line)
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]
