"""The report: one self-contained page that starts with the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from crossover.answers.claim_words import tally
from crossover.answers.effort_words import effort_words
from crossover.answers.other_crossovers import price_words
from crossover.answers.sentences import missing_half
from crossover.answers.side_by_side import machine_notes
from crossover.config.words import FLAGS
from crossover.figures.style import bytes_text, seconds_text
from crossover.figures.svg_size import dimensions
from crossover.report.machine_facts import fact_rows
from crossover.report.machines import machines
from crossover.report.opening import opening
from crossover.report.page_assets import inline
from crossover.report.page_data import page_data
from crossover.report.provenance import as_yaml
from crossover.report.report_figures import FigureFile
from crossover.report.report_sections import study_section
from crossover.report.report_tables import ReportTables
from crossover.tables.frames import records
from crossover.tables.merged_provenance import completeness_notes, joined_runs, merged_views

TEMPLATE = "report.html.j2"


def render(
    path_to_templates: Path,
    studies: Mapping[str, Mapping[str, Any]],
    tables: ReportTables,
    figures: Sequence[FigureFile],
    problems: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> str:
    """Fill the template.

    `studies` maps names to their files, `problems` is what `problems_view` gives, and `facts` says how and when the
    report was made.
    """
    raised = sorted({flag for flags in tables.cells["flags"] for flag in flags})
    return (
        _environment(path_to_templates)
        .get_template(TEMPLATE)
        .render(
            tally=tally(tables.claims) if len(tables.claims) else None,
            opening=opening(studies, tables, figures),
            sections=[study_section(name, spec, tables, figures) for name, spec in studies.items()],
            cells=records(tables.cells),
            machines=machines(tables.measured),
            machine_notes=machine_notes(tables.measurements) + completeness_notes(joined_runs(facts)),
            # The other half of a run that has not finished may still come.
            missing_half=None
            if facts["partial"]
            else missing_half(device for table in tables.measured for device in table["device"]),
            flags={flag: str(FLAGS[flag]) for flag in raised},
            facts=facts,
            page_data=page_data(studies, tables),
            prices=price_words(facts["price_per_hour"], facts["currency"]),
            problems=problems,
        )
    )


def _environment(path_to_templates: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(path_to_templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["seconds"] = lambda value: "" if value is None else seconds_text(value)
    environment.filters["dimensions"] = lambda figure: dimensions(figure.path)
    environment.filters["bytes"] = bytes_text
    environment.globals["effort_words"] = effort_words
    environment.globals["fact_rows"] = fact_rows
    environment.globals["as_yaml"] = as_yaml
    environment.globals["merged_views"] = merged_views
    environment.globals["inline"] = lambda name: inline(path_to_templates / name)
    return environment
