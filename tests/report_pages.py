"""Pages of made-up runs, for tests that open them in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.analysis.claims import check_claims
from crossover.analysis.comparisons import compare_lines
from crossover.analysis.cost_models import model_lines
from crossover.analysis.problems import list_problems
from crossover.analysis.provenance import provenance
from crossover.analysis.report import render
from crossover.analysis.report_figures import FigureFile
from crossover.analysis.report_tables import ReportTables
from crossover.analysis.summary import summarise
from crossover.checkout import Checkout
from crossover.invocation import Invocation

TEMPLATES = Path(__file__).parents[1] / "report" / "page"


LONG = " ".join(["snakemake", "--cores 1", *["results/cells/long/path.parquet"] * 40])
RUN = Invocation(LONG, "/house", Checkout("d" * 40))


@dataclass(frozen=True)
class Run:
    """A page and the tables behind it."""

    path: Path
    cells: pd.DataFrame
    models: pd.DataFrame


def write_page(
    rows: pd.DataFrame, path: Path, words: str | None = None, steps_per_run: Mapping[str, int] | None = None
) -> Run:
    """Render rows as the workflow does; `words` stand wherever a study's file has text of its author's."""
    studies = list(dict.fromkeys(rows["study"]))
    specs = {
        name: {
            "title": words or f"Study of {name}",
            "question": words or f"From which of the {name} on?",
            "published": {"statement": words or "it starts at 700", "source": words or "Somebody (2019)"},
            "figures": ["times"],
            "x_axis": "size",
            "steps_per_run": None,
        }
        for name in studies
    }
    facts: dict[str, Any] = {
        "made_at": "today",
        "effort": {"blocks_min": 30},
        "cpu_threads": "auto",
        "seed": 0,
        "note": words,
        "method": "../docs/method.md",
        "price_per_hour": None,
        "currency": "USD",
        "partial": False,
        "provenance": provenance([rows], {"seed": 0}, specs, RUN, {}, path, "today"),
    }
    crossovers = compare_lines(rows, dict.fromkeys(studies, "size"))
    claim = {"study": studies[0], "statement": words or "from 100 on", "source": words or "Somebody (2019)"}
    tested = {"range": [100, 1000], "where": {"protocol": "resident"}}
    claims = check_claims([claim | {"crossover_between": tested}], rows, crossovers)
    cells, models = summarise(rows), model_lines(rows, dict.fromkeys(studies) | dict(steps_per_run or {}))
    figure = path.parent / studies[0] / "times.svg"
    figure.parent.mkdir(exist_ok=True)
    figure.write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' width='60' height='20'><rect width='60' height='9'/></svg>"
    )
    html = render(
        TEMPLATES,
        specs,
        ReportTables(rows, cells, crossovers, claims, models, list_problems(rows, cells)),
        [FigureFile(figure)],
        facts,
    )
    path.write_text(html, encoding="utf-8")
    return Run(path, cells, models)
