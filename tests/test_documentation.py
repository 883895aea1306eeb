"""The documentation in a checkout: generated pages are current, and links have targets."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from reference_pages import pages  # noqa: E402

from crossover import __version__  # noqa: E402
from crossover.topics.caveats import CAVEATS  # noqa: E402
from crossover.topics.gate.table import summary  # noqa: E402

PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(file for folder in ROOT.glob("[!.]*/") for file in folder.rglob("*.md"))]
    if not path.is_relative_to(ROOT / "results") or path.parent == ROOT / "results"
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
OPTION = re.compile(r"^## .+$|(?<!\S)--[a-z][\w-]*", re.MULTILINE)


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize("name", ["config.md", "study.md", "columns.md", "statuses-and-flags.md", "figures.md"])
def test_generated_pages_are_up_to_date(name: str, generated: dict[str, str]) -> None:
    assert (ROOT / "docs" / "reference" / name).read_text() == generated[name], "run docs/reference_pages.py"


def test_the_page_of_commands_has_all_options(generated: dict[str, str]) -> None:
    """Only the options are compared, since Python versions lay out --help differently."""
    written = (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert set(OPTION.findall(written)) == set(OPTION.findall(generated["commands.md"])), "run docs/reference_pages.py"


def test_each_word_of_answers_and_of_compared_runs_is_explained(generated: dict[str, str]) -> None:
    compared = pd.DataFrame({"ratio": [1.0], "within": [True]})
    for word in (*CAVEATS, *summary(compared).index):
        assert f"| `{word}` |" in generated["statuses-and-flags.md"]


def anchors(page: Path) -> set[str]:
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in HEADING.findall(page.read_text())
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_point_to_existing_files(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*/*.md")), ids=lambda page: page.stem)
def test_yaml_examples_can_be_parsed(page: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        values = yaml.safe_load(block)
        assert all(re.fullmatch(r"\w+", key) for key in values), block
        assert not any(value is None for value in (values.get("published") or {}).values()), block


def test_version_and_date_of_the_release_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    if sections[0] == "Unreleased":
        del sections[0]
        assert re.fullmatch(r"\d+\.\d+\.\d+\.dev0", __version__)
        assert numbers(__version__) > numbers(citation["version"])
    else:
        assert __version__ == citation["version"]
    assert sections[0] == f"{citation['version']} - {citation['date-released']}"


def numbers(version: str) -> list[int]:
    return [*map(int, version.split(".")[:3])]


@pytest.mark.parametrize("sample", sorted((ROOT / "docs" / "samples").glob("*.html")), ids=lambda path: path.stem)
def test_a_sample_page_needs_no_other_file(sample: Path) -> None:
    html = sample.read_text(encoding="utf-8")
    assert len(html.encode()) <= 1_000_000
    assert not re.findall(r'(?:href|src)="(?!#|data:|https?:)[^"]*"', html)
    assert not re.findall(r"/(?:tmp|home|root)/\S*", html)  # absolute paths


def test_the_graph_of_rules_shows_rules_that_exist() -> None:
    shown = set(re.findall(r">(\w+)</text>", (ROOT / "images" / "rulegraph.svg").read_text(encoding="utf-8")))
    text = "".join(file.read_text(encoding="utf-8") for file in [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")])
    assert {"all", "measure_cell"} <= shown <= set(re.findall(r"^(?:rule|checkpoint) (\w+):", text, re.MULTILINE))
