"""What must stay in step though it stands in several places."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

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


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*/*.md")), ids=lambda page: page.stem)
def test_yaml_in_the_pages_is_yaml(page: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        values = yaml.safe_load(block)
        assert all(re.fullmatch(r"\w+", key) for key in values), block
        assert not any(value is None for value in (values.get("published") or {}).values()), block
