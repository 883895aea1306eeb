"""The versions of installed packages."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from crossover.machine.installed import NOT_INSTALLED, requirement_of, version_of


def test_distributions_of_packages_agree_with_importlib() -> None:
    held = metadata.packages_distributions()
    named = {distribution.name.replace("-", "_").lower() for distribution in metadata.distributions()}
    others = sorted(package for package in held if package.isidentifier() and package.lower() not in named)
    for package in ["sklearn", "yaml", *others[::5]]:
        assert [*version_of(package)] == sorted(set(held[package])), package
    assert version_of("no_such_package") == {"no_such_package": NOT_INSTALLED}


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "some-tool==1.2"),
        ('{"url": "file:///a%20b/x.whl", "archive_info": {}}', "/a b/x.whl"),
        ('{"url": "file:///a/b", "dir_info": {}}', "/a/b"),
        (
            '{"url": "https://example.org/a/b", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "git+https://example.org/a/b@abc",
        ),
    ],
)
def test_a_package_can_be_installed_again_from_where_it_is_from(
    origin: str | None, requirement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "some_tool-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: some-tool\nVersion: 1.2\n")
    if origin:
        (folder / "direct_url.json").write_text(origin)
    monkeypatch.syspath_prepend(tmp_path)
    assert requirement_of("some-tool") == requirement
    assert requirement_of("no-such-tool") == "no-such-tool"
