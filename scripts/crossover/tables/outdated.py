"""Set an outdated report and its files aside until there is a new report.

Otherwise the report could be mistaken for one on the new measurements: Snakemake keeps the outputs of jobs that did not
run, and may restore those of a failed job.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from crossover.files import atomic_path
from crossover.tables.run_tables import TABLES

OUTDATED = "outdated"

FORMER_TABLES = ("largest_batches",)
"""Tables that only earlier versions wrote."""

REPORT_FILES = {
    "report": "report.html",
    "markdown": "summary.md",
    "closing": "summary.txt",  # printed at the end of a run
    "provenance": "provenance.json",
    "thresholds": "thresholds.json",
    "checksums": "SHA256SUMS",
}
"""The files written by `write_report`, by the names of its rule's outputs."""

MARKED = {
    "report.html": ('<p class="note"><strong>', "</strong></p>"),
    "summary.md": ("**", "**\n\n"),
    "summary.txt": ("", "\n\n"),
}
"""The files for readers, with the markup before and after the mark."""

MARK = (
    "Outdated: a later run has started to measure or compute again, and has no report yet. "
    "If a job failed, fix the cause given in its log; then run Snakemake again."
)


def set_aside(results: Path) -> None:
    """Move the report, figures and derived tables of a results folder to `outdated/`, and mark the report.

    Without a report, the figures and tables are deleted, since the next analysis makes them again.
    """
    tables = [f"{name}.{suffix}" for name in (*TABLES, *FORMER_TABLES) for suffix in ("parquet", "csv")]
    present = [path for name in (*REPORT_FILES.values(), "figures", *tables) if (path := results / name).exists()]
    outdated = results / OUTDATED
    if (results / REPORT_FILES["report"]).is_file():
        shutil.rmtree(outdated, ignore_errors=True)
        outdated.mkdir()
        for path in present:
            path.rename(outdated / path.name)
        for name in MARKED:
            _mark(outdated / name)
    else:
        for path in present:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def forget_outdated(results: Path) -> None:
    """Delete the earlier report."""
    shutil.rmtree(results / OUTDATED, ignore_errors=True)


def _mark(path: Path) -> None:
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    head, body, rest = text.partition("<body>") if path.suffix == ".html" else ("", "", text)
    before, after = MARKED[path.name]
    with atomic_path(path) as temporary:
        temporary.write_text(f"{head}{body}{before}{MARK}{after}{rest}", encoding="utf-8")
