"""What must stay in step though it stands in several places."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from crossover.figures.registry import FIGURES

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


def test_a_study_can_ask_for_every_kind_of_figure() -> None:
    schema = yaml.safe_load((ROOT / "config" / "schema.yaml").read_text())
    assert set(schema["$defs"]["study"]["properties"]["figures"]["items"]["enum"]) == set(FIGURES)
