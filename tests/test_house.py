"""What must stay in step though it stands in several places."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for folder in (".", "config", "profiles", "results")
    for page in (ROOT / folder).glob("*.md")
)


@pytest.mark.parametrize("page", PAGES)
def test_links_of_the_pages_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text())
    assert [link for link in links if not link.startswith("http") and not ((ROOT / page).parent / link).is_file()] == []
