"""The versions of installed packages."""

from __future__ import annotations

from importlib import metadata

from crossover.machine.installed import NOT_INSTALLED, version_of


def test_distributions_of_packages_agree_with_importlib() -> None:
    held = metadata.packages_distributions()
    named = {distribution.name.replace("-", "_").lower() for distribution in metadata.distributions()}
    others = sorted(package for package in held if package.isidentifier() and package.lower() not in named)
    for package in ["sklearn", "yaml", *others[::5]]:
        assert [*version_of(package)] == sorted(set(held[package])), package
    assert version_of("no_such_package") == {"no_such_package": NOT_INSTALLED}
