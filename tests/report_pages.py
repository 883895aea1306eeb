"""Tables and pages of made-up runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from crossover.answers.problem_words import problems_view
from crossover.claims.claims import check_claims
from crossover.machine.checkout import Checkout
from crossover.plan.invocation import Invocation
from crossover.report.provenance import provenance
from crossover.report.report import render
from crossover.report.report_figures import FigureFile
from crossover.report.report_tables import ReportTables
from crossover.statistics.comparisons import compare_lines
from crossover.statistics.cost_models import model_lines
from crossover.statistics.problems import list_problems, rows_by_work
from crossover.statistics.summary import summarise
from crossover.statistics.unfinished import Unfinished

TEMPLATES = Path(__file__).parents[1] / "report" / "page"
METHOD = "../docs/method.md"
FACTS: Mapping[str, Any] = {
    "made_at": "today",
    "effort": {"blocks_min": 30},
    "cpu_threads": "auto",
    "seed": 0,
    "trials": 3,
    "note": None,
    "method": METHOD,
    "price_per_hour": None,
    "currency": "USD",
    "partial": False,
    "results": "results",
}

LONG = " ".join(["snakemake", "--cores 1", *["results/cells/long/path.parquet"] * 40])
RUN = Invocation(LONG, "/house", Checkout("d" * 40))


def tables_of(
    rows: pd.DataFrame,
    claims: Sequence[Mapping[str, Any]] = (),
    *,
    x_axis: str = "parameters",
    prices: Mapping[str, float] | None = None,
    steps_per_run: Mapping[str, int] | None = None,
    unfinished: Sequence[Unfinished] = (),
    **more: Any,
) -> ReportTables:
    """What the stages of the analysis make of the rows of trials; `more` are tables as `ReportTables` has them."""
    studies = dict.fromkeys(rows["study"])
    crossovers = compare_lines(rows, dict.fromkeys(studies, x_axis), prices)
    cells = summarise(rows)
    made = {
        "claims": check_claims([{"source": "Somebody (2019)", **claim} for claim in claims], rows, crossovers),
        "cost_models": model_lines(rows, studies | dict(steps_per_run or {})),
        "problems": list_problems(rows_by_work(rows), cells, unfinished),
    }
    return ReportTables(rows, cells, crossovers, **(made | more))


def html_of(
    studies: Mapping[str, Mapping[str, Any]], tables: ReportTables, figures: Sequence[FigureFile] = (), **facts: Any
) -> str:
    """The page, rendered as the workflow does; `facts` replace those of FACTS."""
    known = {**FACTS, **facts}
    problems = problems_view(tables.problems, tables.by_work, list(studies), known["partial"])
    return render(TEMPLATES, studies, tables, figures, problems, known)


@dataclass(frozen=True)
class Run:
    """A page and the tables behind it."""

    path: Path
    cells: pd.DataFrame
    models: pd.DataFrame


def write_page(
    rows: pd.DataFrame, path: Path, words: str | None = None, steps_per_run: Mapping[str, int] | None = None
) -> Run:
    """Write the page of plain studies; `words` stand wherever a study's file has text of its author's."""
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
    claim = {
        "study": studies[0],
        "statement": words or "from 100 on",
        "source": words or "Somebody (2019)",
        "crossover_between": {"range": [100, 1000], "where": {"protocol": "resident"}},
    }
    tables = tables_of(rows, [claim], x_axis="size", steps_per_run=steps_per_run)
    figure = path.parent / studies[0] / "times.svg"
    figure.parent.mkdir(exist_ok=True)
    figure.write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' width='60' height='20'><rect width='60' height='9'/></svg>"
    )
    gathered = provenance([rows], {"seed": 0}, specs, RUN, {}, path, "today")
    path.write_text(html_of(specs, tables, [FigureFile(figure)], note=words, provenance=gathered), encoding="utf-8")
    return Run(path, tables.cells, tables.cost_models)
