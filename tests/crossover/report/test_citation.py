from __future__ import annotations

from pathlib import Path

import yaml

from crossover.machine.checkout import ROOT
from crossover.report.citation import citation


def written(folder: Path, **values: object) -> Path:
    path = folder / "CITATION.cff"
    path.write_text(yaml.safe_dump({"cff-version": "1.2.0", "message": "cite", **values}))
    return path


def test_people_a_doi_and_what_tex_would_misread(tmp_path: Path) -> None:
    people = [
        {"given-names": "Ada", "name-particle": "van", "family-names": "Love"},
        {"name": "R&D_Group", "website": "unused"},
    ]
    more = {"doi": "10.1/x_y", "version": "1.0", "date-released": "2026-03-01", "license": "MIT"}
    found = citation(written(tmp_path, title="When: 50 % & more", authors=people, **more))
    assert found == {
        "text": "Ada van Love, R&D_Group (2026). When: 50 % & more, version 1.0. https://doi.org/10.1/x_y.",
        "bibtex": "\n".join(
            [
                "@software{when2026,",
                r"  author = {Ada van Love and {R\&D\_Group}},",
                r"  title = {{When: 50 \% \& more}},",
                "  version = {1.0},",
                "  year = {2026},",
                "  month = {3},",
                "  license = {MIT},",
                "  doi = {10.1/x_y},",
                "}",
            ]
        ),
        "license": "MIT",
    }


def test_the_least_that_a_citation_file_may_hold(tmp_path: Path) -> None:
    found = citation(written(tmp_path, title="It", authors=[{"name": "Us"}]))
    assert found == {
        "text": "Us. It.",
        "bibtex": "@software{it,\n  author = {{Us}},\n  title = {{It}},\n}",
        "license": "",
    }


def test_our_own_file_is_read() -> None:
    found = citation(ROOT / "CITATION.cff")
    assert found is not None
    assert found["text"].startswith("The Crossover contributors (2026). Crossover: when does the GPU pay off?, version")
    assert found["bibtex"].startswith("@software{crossover2026,")


def test_a_missing_or_broken_file_gives_none(tmp_path: Path) -> None:
    assert citation(tmp_path / "none.cff") is None
    assert citation(written(tmp_path, title="It")) is None
    (tmp_path / "CITATION.cff").write_text("a: [")
    assert citation(tmp_path / "CITATION.cff") is None
