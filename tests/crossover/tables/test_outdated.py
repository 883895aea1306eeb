"""An earlier report is set aside while newer results are computed."""

from __future__ import annotations

from pathlib import Path

from crossover.tables.outdated import MARK, forget_outdated, set_aside


def test_an_earlier_report_is_set_aside_with_a_mark_at_its_top(tmp_path: Path) -> None:
    texts = {"report.html": "<head></head><body>\n<h1>GPU</h1>", "summary.md": "GPU", "summary.txt": "GPU"}
    others = {
        "cells.csv": "size",
        "largest_batches.csv": "of an earlier version",
        "thresholds.json": "{}",
        "figures/s/times.svg": "<svg>",
    }
    for name, text in {**texts, **others, "measurements.parquet": "new", "plan.json": "{}"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    set_aside(tmp_path)
    outdated = tmp_path / "outdated"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["measurements.parquet", "outdated", "plan.json"]
    page = (outdated / "report.html").read_text()
    assert page.startswith(f'<head></head><body><p class="note"><strong>{MARK}</strong></p>')
    assert page.endswith("<h1>GPU</h1>")
    assert (outdated / "summary.md").read_text() == f"**{MARK}**\n\nGPU"
    assert (outdated / "summary.txt").read_text() == f"{MARK}\n\nGPU"
    assert {name: (outdated / name).read_text() for name in others} == others
    forget_outdated(tmp_path)
    assert not outdated.exists()


def test_an_outdated_report_is_kept_if_the_next_analysis_fails_too(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<body>")
    set_aside(tmp_path)
    (tmp_path / "cells.csv").write_text("of no report")
    set_aside(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["outdated"]
    assert [path.name for path in (tmp_path / "outdated").iterdir()] == ["report.html"]
    assert (tmp_path / "outdated" / "report.html").read_text().count(MARK) == 1
