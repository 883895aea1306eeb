"""Write the report: a self-contained page, a Markdown summary, and the lines printed at the end of a run."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from crossover.compare.intervals import ENDS, interval_of
from crossover.config.statuses import DISTURBED, FLAGS
from crossover.config.study import Study
from crossover.config.words import BASELINE, DIRTY, HERE, X_AXES, is_cpu
from crossover.drawing.style import SPLIT_COLOURS
from crossover.drawing.view import ALL_TOGETHER
from crossover.files import atomic_path, sha256_of
from crossover.machine.invocation import Invocation
from crossover.report.figure_files import FIGURES, draw_run, figures_of
from crossover.report.page_data import is_analysed, page_data
from crossover.report.problems import FLAGGED
from crossover.report.provenance import differing_software, hosts_elsewhere, provenance
from crossover.report.study_rows import first_of, main_answers, row_of
from crossover.report.templates import environment_of
from crossover.report.thresholds import thresholds_of
from crossover.tables.frames import records, with_x_axes
from crossover.tables.labels import machine_side, name_by, side_word, size_titles, varying
from crossover.tables.reference_files import facts_of
from crossover.tables.registry import CELL_AXES, QUALITY_METRICS, SERIES_AXES, SPLIT
from crossover.tables.run_tables import REPORT_FILES, TABLE_NAMES, RunTables
from crossover.text import with_noun
from crossover.topics.answer import Answer
from crossover.topics.answers import by_relevance, read_answers
from crossover.topics.bottlenecks.answers import Bottleneck
from crossover.topics.claims.findings import NO_DATA
from crossover.topics.correction import expected_false
from crossover.topics.crossovers.answers import LEADS, Crossover
from crossover.topics.ranking.answers import ranked_series
from crossover.topics.ranking.table import shown_column
from crossover.topics.references.answers import Elsewhere, Reference

SAFE = " !'$()*+,-./:;=?@_~"
"""Characters that are not escaped in a data URI."""


@dataclass(frozen=True)
class Run:
    """The tables and config from which a report is made."""

    tables: RunTables
    studies: Mapping[str, Study]
    """Completed with defaults."""
    config: Mapping[str, Any] | None = None
    """Completed with defaults; None if runs were merged."""
    note: str | None = None
    """A sentence shown at the top."""
    progress: Mapping[str, tuple[int, int]] | None = None
    """For an unfinished run, the numbers of jobs done and requested, by kind of work; else None."""
    problems: Sequence[Mapping[str, Any]] = ()
    """From `list_problems`."""
    merged: Sequence[Mapping[str, Any]] = ()
    """For merged runs, from `read_provenances`."""

    @property
    def title(self) -> str:
        return (self.config or {}).get("title") or "When does the GPU pay off?"

    @property
    def currency(self) -> str | None:
        prices: Mapping[str, Any] = (self.config or {}).get("prices") or {}
        return prices.get("currency")


def write_report(run: Run, folder: Path, templates: Path, invocation: Invocation | None = None) -> None:
    """Write the report's files to a results folder, with a list of their checksums.

    `templates` is the folder report/; `invocation` is None without a workflow.
    """
    made_at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    files = [path for name in TABLE_NAMES for path in sorted(folder.glob(f"{name}.*"))]
    files += sorted(folder.glob("datasets/*"))
    measured = [run.tables.measurements, run.tables.quality]
    facts = provenance(measured, run.config, run.studies, invocation, files, folder, made_at)
    facts |= {"runs": list(run.merged), "progress": run.progress, "problems": list(run.problems)}
    context = context_of(run, facts)
    page, plain = environment_of(templates, html=True), environment_of(templates)
    texts = {
        "thresholds.json": json.dumps(thresholds_of(run.tables, made_at), indent=1, allow_nan=False) + "\n",
        "provenance.json": json.dumps(facts, indent=1, ensure_ascii=False),
        "report.html": page.get_template("page/report.html.j2").render(context),
        "summary.md": plain.get_template("summary.md.j2").render(context),
        "summary.txt": plain.get_template("summary.txt.j2").render(context | {"folder": folder}),
    }
    for name, text in texts.items():
        with atomic_path(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    paths = [folder / name for name in texts]
    with atomic_path(folder / REPORT_FILES["checksums"]) as temporary:
        lines = [f"{sha256_of(path)}  {Path(os.path.relpath(path, folder)).as_posix()}\n" for path in paths]
        temporary.write_text("".join(lines), encoding="utf-8")


def context_of(run: Run, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The variables for the templates; `facts` is the content of provenance.json."""
    tables = run.tables
    answers = read_answers(tables.answers)
    trust = trust_of(tables.cells, answers, tables.claims)
    common = _common_caveats(answers, trust)
    answers = [replace(answer, told=common) for answer in answers]
    counts = {answer.study: answer.corrected_for for answer in answers}
    together = {study: with_noun(count, "comparison") for study, count in counts.items()}
    shown = [(study, kind) for study, kind in figures_of(tables, run.studies) if not FIGURES[kind].is_in_chart]
    drawn = draw_run(tables, run.studies, shown, run.currency)
    figures = [picture_of(study, kind, pictures["svg"].decode(), together) for study, kind, pictures in drawn]
    studies = [
        _study(name, study, tables.of_study(name), answers, figures, common) for name, study in run.studies.items()
    ]
    flags = sorted({flag for cell_flags in tables.cells["flag_names"] for flag in cell_flags})
    machines = list(tables.measurements["machine"].unique())
    return {
        "studies": studies,
        "together": together,
        "common_caveats": common,
        "fullest": [answer for answer in answers if answer.kind == "memory" and answer.main],
        "trust": trust,
        "cells": records(tables.cells),
        "size_titles": size_titles(tables.cells),
        "varied_axes": varying(tables.cells, ["variant", "execution"]),
        "without_data": int((tables.claims["verdict"] == NO_DATA).sum()),
        "raised": {flag: FLAGS[flag] for flag in flags},
        "problems": facts["problems"],
        "lost": [entry for entry in facts["problems"] if entry["kind"] != FLAGGED],
        "title": run.title,
        "progress": run.progress,
        "note": run.note,
        "without_gpu": machines == [HERE]
        and all(map(is_cpu, tables.measurements["device"]))
        and any(study.may_use_accelerator for study in run.studies.values())
        and not run.progress,
        "machines": machines,
        "currency": run.currency,
        "measured_on": hosts_elsewhere(facts["machines"], platform.node()) if len(machines) == 1 else None,
        "references": _references(tables, answers),
        "unlike": differing_software(tables.measurements) if len(machines) > 1 else [],
        "provenance": facts,
        "page_data": Markup(page_data(with_x_axes(run.studies, tables.cells), tables)),
    }


def picture_of(study: str, kind: str, svg: str, together: Mapping[str, str]) -> dict[str, Any]:
    """Study, caption, data URI and size in CSS pixels of a figure.

    `together` has for each study for how many comparisons its sentences are corrected, in words.
    """
    points = re.findall(r'(?:width|height)="([0-9.]+)pt"', svg)[:2]
    width, height = (round(float(length) * 4 / 3) for length in points)
    short = " ".join(svg.split()).replace("> <", "><")  # in the URI, a line break takes three bytes
    return {
        "study": study,
        "caption": FIGURES[kind].caption.replace(ALL_TOGETHER, together[study]),
        "source": f"data:image/svg+xml,{quote(short, safe=SAFE)}",
        "width": width,
        "height": height,
    }


def trust_of(cells: pd.DataFrame, answers: Sequence[Answer], claims: pd.DataFrame) -> dict[str, Any]:
    """Counts of cells, trials per cell, failures, disturbed and otherwise flagged cells, by flag, and statements."""
    statements, false_at_most = expected_false(answers, claims)
    trials = cells.loc[cells["trials"] > 0, "trials"]
    flags = Counter(flag for cell_flags in cells["flag_names"] for flag in cell_flags)
    statuses = Counter(cells.loc[cells["status"] != "ok", "status"])
    return {
        "cells": len(cells),
        "timed": len(trials) > 0,
        "trials_low": int(trials.min()) if len(trials) else 0,
        "trials_high": int(trials.max()) if len(trials) else 0,
        "flagged": int(cells["flag_names"].map(lambda cell_flags: not {*cell_flags} <= {*DISTURBED}).sum()),
        "flags": [(flag, count) for flag, count in flags.most_common() if flag not in DISTURBED],
        "disturbed": int(cells["flag_names"].map(lambda cell_flags: not set(DISTURBED).isdisjoint(cell_flags)).sum()),
        "disturbances": [(flag, count) for flag, count in flags.most_common() if flag in DISTURBED],
        "lost": sum(statuses.values()),
        "statuses": statuses.most_common(),
        "statements": statements,
        "false_at_most": false_at_most,
        "remedies": any(isinstance(answer, Bottleneck) and answer.gain is not None for answer in answers),
    }


def _common_caveats(answers: Sequence[Answer], trust: Mapping[str, Any]) -> list[str]:
    """The caveats that the report states once: a single trial if all cells have one, and flags of more than half of the
    answers or cells, except for disturbances.
    """
    from_trials = [answer.caveats for answer in answers if answer.trials is not None]
    may_be_common = FLAGS.keys() - DISTURBED
    counts = Counter(caveat for caveats in from_trials for caveat in caveats if caveat in may_be_common)
    frequent = {flag for flag, count in trust["flags"] if count > trust["cells"] / 2}
    common = [caveat for caveat, count in counts.items() if count > len(from_trials) / 2 or caveat in frequent]
    return ["one_trial", *common] if trust["trials_high"] == 1 else common


def _study(
    name: str,
    study: Study,
    tables: RunTables,
    answers: Sequence[Answer],
    figures: Sequence[Mapping[str, Any]],
    common: Collection[str],
) -> dict[str, Any]:
    """The templates' variables of a study; `common` are the caveats that the report states once."""
    answers = _busy_said_once([answer for answer in answers if answer.study == name])
    causes = [answer for answer in answers if _is_cause(answer)]
    others = [answer for answer in answers if not _is_cause(answer)]
    doubted = [answer for answer in (*others, *causes) if answer.is_doubted]
    paybacks = [answer for answer in others if answer.main and answer.kind == "payback"]
    runs = [answer for answer in others if answer.main and _is_on_runs(answer)]
    rankings = [answer for answer in others if answer.kind in ("ranking", "bound", "no_estimate")]
    main = main_answers([answer for answer in others if answer not in (*paybacks, *runs)])
    # A lead at every size is told with its speed-ups, that at the largest size among them.
    led = [_sides(answer) for answer in main if isinstance(answer, Reference) and answer.status in LEADS]
    elsewhere = [answer for answer in others if isinstance(answer, Elsewhere) and _sides(answer) not in led]
    speedups = [answer for answer in others if answer.kind == "ratio" and not answer.main]
    is_crossing = any(isinstance(answer, Crossover) for answer in main)
    shown = [figure for figure in figures if figure["study"] == name]
    groups: list[Sequence[Answer]] = [runs, paybacks, rankings, elsewhere, speedups]
    others = [answer for answer in others if not answer.main and answer not in chain(*groups)]
    quality, machines = _quality(tables), _machines(tables)
    claims = [
        claim | {"caveats": [caveat for caveat in claim["caveats"] if caveat not in common]}
        for claim in records(tables.claims)
    ]
    row = row_of(main, claims)
    ranked = _ranked(ranked_series(by_relevance(tables, study), study.x_axis), X_AXES[study.x_axis])
    return {
        "name": name,
        "title": study.title,
        "question": study.question,
        "published": study.published,
        "main": main,
        "groups": groups,
        "speedup": None if is_crossing else next(iter([*speedups, *elsewhere]), None),
        "row": row,
        "others": others,
        "costs": {answer.cost for answer in (*main, *others) if isinstance(answer, Crossover)},
        "doubted": doubted,
        "why": _why(tables, causes),
        "why_answer": next((answer for answer in causes if answer.main), None),
        "claims": claims,
        "tested": [claim | {"strip": _strip(claim)} for claim in claims if claim["verdict"] != NO_DATA],
        "figures": shown,
        "quality": quality,
        "machines": machines,
        "ranked": ranked,
        "more": bool(others or doubted or shown or quality or machines or ranked),
    }


def _busy_said_once(answers: Sequence[Answer]) -> list[Answer]:
    """The answers; if the first sentence of their study says that the machine was busy, the others do not.

    That is unless it does not hold for all main answers of the first one's kind.
    """
    aside = [answer for answer in answers if answer.kind == "payback" or _is_on_runs(answer) or _is_cause(answer)]
    main = main_answers([answer for answer in answers if answer not in aside])
    first = first_of(main)
    told = all(answer.is_busy for answer in main if answer.kind == first.kind)
    return [replace(answer, busy_is_told=told and answer is not first) for answer in answers]


def _is_cause(answer: Answer) -> bool:
    """Whether an answer says why a step takes its time."""
    return answer.kind == "bottleneck" or (answer.kind == "communication" and answer.main)


def _sides(answer: Reference | Elsewhere) -> set[str]:
    return {answer.series, answer.winner, answer.loser}


def _is_on_runs(answer: Answer) -> bool:
    return isinstance(answer, Crossover) and answer.cost == "run"


STRIP_MARGIN = 0.12
"""Margin at each end, as a share of the strip's length."""


def _strip(claim: Mapping[str, Any]) -> dict[str, float | None] | None:
    """The positions of a claim's tested range and of the measured interval on a strip from 0 to 1."""
    tested, measured = ("tested_low", "tested_high"), ("measured_low", "measured", "measured_high")
    names = (*tested, *measured)
    values = {name: claim[name] for name in names if claim[name] is not None}
    if values.keys().isdisjoint(tested) or values.keys().isdisjoint(measured):
        return None
    scaled = {name: math.log(value) for name, value in values.items()} if min(values.values()) > 0 else values
    low, high = min(scaled.values()), max(scaled.values())
    length = (high - low) or 1
    positions = {name: STRIP_MARGIN + (1 - 2 * STRIP_MARGIN) * (value - low) / length for name, value in scaled.items()}
    return {name: positions.get(name) for name in names}


def _why(tables: RunTables, answers: Sequence[Answer]) -> dict[str, Any] | None:
    """The parts of a step's time, for the accelerator's cell whose time is closest to the CPU's.

    If no accelerator's cell is split into parts, they are for the CPU's first cell.
    """
    cells = tables.cells[is_analysed(tables.cells)]
    accelerated = [not is_cpu(device) for device in cells["device"]]
    rows = cells[accelerated] if any(accelerated) else cells[cells["device"] == BASELINE]
    if rows.empty:
        return None
    ratios = tables.ratios[tables.ratios["baseline"] == BASELINE]
    ratios_of_rows = rows[CELL_AXES].merge(ratios.drop_duplicates(CELL_AXES)[[*CELL_AXES, "ratio"]], how="left")
    distance = ratios_of_rows["ratio"].astype(float).map(lambda ratio: abs(math.log(ratio))).fillna(math.inf).to_numpy()
    row = records(rows)[int(distance.argmin())]
    shares = {part: row[f"{part}_share"] or 0 for part in SPLIT}
    return {
        "answers": [answer for answer in answers if is_cpu(row["device"]) or answer.device != side_word(BASELINE)],
        "series": name_by(row, varying(tables.cells, SERIES_AXES)),
        "device": side_word(row["device"]),
        "place": name_by(row, ["size"]),
        "parts": [
            {"words": SPLIT[part], "colour": SPLIT_COLOURS[part], "share": share}
            for part, share in shares.items()
            if share > 0.005
        ],
    }


def _references(tables: RunTables, answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The facts about each reference; `slowdown` compares this CPU with its CPU, if an answer rests on that."""
    slowdowns = {answer.machine: answer.host_slowdown for answer in answers if isinstance(answer, Reference)}
    references: dict[tuple[Any, ...], dict[str, Any]] = {}
    for facts in facts_of(tables.reference_cells).values():
        uncommitted = str(facts.code_version).endswith(DIRTY)
        identity = (facts.device_name, facts.physical_cores, facts.measured_on, facts.torch_version, uncommitted)
        references.setdefault(
            identity, asdict(facts) | {"uncommitted": uncommitted, "slowdown": slowdowns.get(facts.name)}
        )
    return list(references.values())


def _quality(tables: RunTables) -> list[dict[str, Any]]:
    """One row per trained cell: means over seeds, and the difference in accuracy from the CPU in fp32."""
    if tables.quality.empty:
        return []
    cells = tables.quality.groupby(CELL_AXES, sort=False)
    counts = cells["status"].agg(
        seeds=lambda statuses: (statuses == "ok").sum(), failed=lambda statuses: (statuses != "ok").sum()
    )
    differences = cells[[f"accuracy_difference{end}" for end in ENDS]].first()
    return records(pd.concat([cells[[*QUALITY_METRICS, "loss"]].mean(), counts, differences], axis=1).reset_index())


def _machines(tables: RunTables) -> list[dict[str, Any]]:
    varied_axes = [axis for axis in varying(tables.cells, SERIES_AXES) if axis != "machine"]
    return [
        row | {"series": name_by(row, varied_axes), "device": side_word(row["device"])}
        for row in records(tables.ratios[tables.ratios["pair"] == "machine"])
    ]


def _ranked(rows: pd.DataFrame, along: str) -> dict[str, Any] | None:
    """The cost of a step or run at each point, on each device of each machine. This machine's devices come first."""
    if rows.empty:
        return None
    ranked = records(rows)
    sides = sorted({(row["machine"] != HERE, row["machine"], row["device"]) for row in ranked})
    points: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for row in ranked:
        costs = vars(interval_of(row, shown_column(row))) | {"behind": row["behind"]}
        points.setdefault(name_by(row, [along]), {})[row["machine"], row["device"]] = costs
    return {
        "by": ranked[0]["ranked_by"],
        "steps": ranked[0]["steps"],
        "sides": [machine_side(device, machine) for _, machine, device in sides],
        "points": {name: [costs[machine, device] for _, machine, device in sides] for name, costs in points.items()},
    }
