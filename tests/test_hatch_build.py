"""The package's metadata, as far as it depends on the repository from which it is built."""

from __future__ import annotations

import sys

import pytest

from workflow_copy import ROOT

sys.path.append(str(ROOT))

from hatch_build import RELATIVE_LINK, web_address, with_links_to


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/me/crossover", "https://github.com/me/crossover"),
        ("https://token@github.com/me/crossover.git", "https://github.com/me/crossover"),
        ("git@gitlab.com:group/me/crossover.git", "https://gitlab.com/group/me/crossover"),
        ("/srv/crossover", None),
        ("", None),
    ],
)
def test_the_address_of_a_repository_is_that_of_its_page(remote: str, address: str | None) -> None:
    assert web_address(remote) == address


def test_links_lead_to_the_repository_or_are_left_out() -> None:
    text = "![a\nb](docs/a.png) [c](docs/c.md#d) [e](https://e.org) [f](#g)"
    there = "https://x.org/me/y"
    assert with_links_to(there, text) == (
        f"![a\nb]({there}/raw/HEAD/docs/a.png) [c]({there}/blob/HEAD/docs/c.md#d) [e](https://e.org) [f](#g)"
    )
    assert with_links_to(None, text) == " c [e](https://e.org) [f](#g)"
    assert RELATIVE_LINK.search((ROOT / "README.md").read_text())
