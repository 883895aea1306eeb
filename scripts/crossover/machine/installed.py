"""Versions of installed packages, and digests of those that were installed from a folder or repository."""

from __future__ import annotations

import hashlib
import json
import re
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from crossover.machine.named_files import INSTALLED

if TYPE_CHECKING:
    from importlib.metadata import Distribution

STANDARD_LIBRARY = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
NOT_INSTALLED = "not installed"


def is_installed(folder: Path) -> bool:
    """True for a folder on Python's path that belongs to Python or contains installed packages."""
    return (
        not INSTALLED.isdisjoint(folder.parts)
        or any(map(folder.is_relative_to, STANDARD_LIBRARY))
        or any(folder.glob("*.dist-info"))  # made by `pip install --target`
    )


@cache
def version_of(package: str) -> dict[str, str]:
    """Versions, by name, of the distributions that provide a package; NOT_INSTALLED if none does."""
    from importlib import metadata  # imported here, since the import takes a moment

    try:
        return {package: metadata.version(package)}
    except metadata.PackageNotFoundError:  # the distribution's name differs from the package's, or it is missing
        return {name: metadata.version(name) for name in _distributions_of(package)} or {package: NOT_INSTALLED}


def _distributions_of(package: str) -> list[str]:
    """Sorted names of the distributions that contain a package.

    `importlib.metadata.packages_distributions` is much slower, since it makes a path for each file.
    """
    from importlib import metadata

    of_package = re.compile(rf"^{re.escape(package)}[/.]", re.MULTILINE)

    def contains_package(distribution: Distribution) -> bool:
        if (top_level := distribution.read_text("top_level.txt")) is not None:
            return package in top_level.split()
        return of_package.search(distribution.read_text("RECORD") or "") is not None

    return sorted({entry.metadata["Name"] for entry in metadata.distributions() if contains_package(entry)})


def requirement_of(name: str) -> str:
    """What `pip install` takes for a distribution as it is installed: a repository's URL, a path, or a version.

    A distribution without its origin (PEP 610) is from an index, which has its version; of files that were copied, only
    the name is known.
    """
    from importlib import metadata

    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return name
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    if "vcs_info" in origin:
        return f"{origin['vcs_info']['vcs']}+{origin['url']}@{origin['vcs_info']['commit_id']}"
    return unquote(origin["url"].removeprefix("file://")) if origin else f"{name}=={distribution.version}"


def installed_with(packages: Iterable[str]) -> dict[str, str]:
    """Versions of the distributions of packages and of their dependencies, by name.

    The code of a package installed from a folder or a repository may change without a new version, so the digest of its
    files is added. Dependencies get no digest. Optional dependencies of the given packages are included if they are
    installed.
    """
    from importlib import metadata

    direct = {_normalised(name) for package in packages for name in version_of(package)}
    todo, versions = sorted(direct), dict[str, str]()
    while todo:
        name = todo.pop()
        if name in versions:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            versions[name] = NOT_INSTALLED
            continue
        # Regular expressions, since Python's parser of metadata is slow.
        text = (distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or "").partition("\n\n")[0]
        versions[name] = "".join(re.findall(r"^Version: (.*)$", text, flags=re.MULTILINE))
        if name in direct and distribution.read_text("direct_url.json"):
            versions[name] += f" {_digest_of_files(distribution)}"
        required = re.findall(r"^Requires-Dist: ([\w.-]+)(.*)$", text, flags=re.MULTILINE)
        todo += [_normalised(other) for other, condition in required if name in direct or "extra ==" not in condition]
    return {name: version for name, version in versions.items() if name in direct or version != NOT_INSTALLED}


def _normalised(name: str) -> str:
    """A distribution's name, normalised by PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _digest_of_files(distribution: Distribution) -> str:
    """Digest of the names and hashes of a distribution's files, without its metadata."""
    lines = (distribution.read_text("RECORD") or "").splitlines()
    text = "\n".join(sorted(line for line in lines if ".dist-info" not in line))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
