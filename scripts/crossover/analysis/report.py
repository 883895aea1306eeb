"""The report: one self-contained page that starts with the answer."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from crossover.analysis.claim_words import claim_group, tally
from crossover.analysis.comparisons import headline_rows
from crossover.analysis.cores_words import cores_view
from crossover.analysis.cost_models import model_words
from crossover.analysis.largest_batches import searches_view
from crossover.analysis.loading import loading_answers
from crossover.analysis.naming import varying
from crossover.analysis.other_crossovers import other_crossovers, price_words, transfers
from crossover.analysis.quality import METRICS
from crossover.analysis.quality_words import quality_answer, quality_view
from crossover.analysis.sentences import answer, answer_at_one_size, line_words, merged, missing_half
from crossover.analysis.style import device_label, seconds_text
from crossover.analysis.tables import LINE_AXES, on_all_cores, records, rows_with, with_ok_times
from crossover.records import FLAGS
from crossover.stages import CROSSOVER_FIGURES

CAPTIONS = {
    "times": "Time over size, both axes logarithmic. Lines: the cells' times with their 95 % interval over trials; "
    "dots: trials, hollow at sizes that refinement added; black: the crossover, with its 95 % interval where there is "
    "one; grey, or dotted with squares: published; thin dots: the cost model, a guide whose misses the table below "
    "names.",
    "speedups": "How many times as fast as the CPU, with the 95 % interval over trials; above 1 the accelerator wins. "
    "Hollow: sizes that refinement added. Grey: published crossover.",
    "comparison": "A row a cell: its time with the 95 % interval over trials, and its memory. Hollow: projected from "
    "fewer steps than a run has. In brackets: one epoch of a run. Grey diamonds: published, on the hardware named.",
    "latency": "The right ways to measure a latency and each mistake; the trials' passes all together. Box: quartiles; "
    "whiskers: 1st to 99th percentile; ring: mean, with the standard deviation beside it; black line: the right mean. "
    "Last: how far off a mistake's mean is, by the ratio of a trial's means averaged over trials; grey where one trial "
    "or their scatter leaves that open. Grey diamonds: published.",
    "throughput": "Samples per second over batch size, both axes logarithmic, with the 95 % interval over trials. "
    "Ring: a line's optimum. Hollow square: the largest batch that fits, where it was searched, timed in one process. "
    "Grey diamonds: published, on the hardware named.",
    "trade_off": "Time of a sample over memory: down and to the left is better in both. The grey line joins what "
    "nothing beats in both. Grey diamonds: published.",
    "utilisation": "Floating-point operations that a step achieves per second, with the 95 % interval over trials. "
    "Hollow: sizes that refinement added. Ring: a line's best, with its share of what a plain matrix product reached "
    "on the device in the same precision.",
}
"""What each kind of figure shows."""


@dataclass(frozen=True)
class FigureFile:
    """A figure of a study; the kind of figure is its file's name."""

    path: Path

    @property
    def caption(self) -> str:
        """What the figure shows."""
        return CAPTIONS[self.path.stem]

    @property
    def study(self) -> str:
        """The study it belongs to, by its folder."""
        return self.path.parent.name

    @property
    def source(self) -> str:
        """The figure as a data URI, so that the page needs no other file."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.path.read_bytes()).decode()}"


def link_to(path_to_file: Path, path_to_page: Path) -> str:
    """The address of a file as a page links to it, relative to the page's folder."""
    return quote(Path(os.path.relpath(path_to_file, path_to_page.parent)).as_posix())


def render(
    template: Path,
    studies: Mapping[str, Mapping[str, Any]],
    measurements: pd.DataFrame,
    cells: pd.DataFrame,
    crossovers: pd.DataFrame,
    claims: pd.DataFrame,
    figures: Sequence[FigureFile],
    facts: Mapping[str, Any],
    quality: pd.DataFrame | None = None,
    searches: pd.DataFrame | None = None,
    cost_models: pd.DataFrame | None = None,
    cores_worth: pd.DataFrame | None = None,
) -> str:
    """Fill the template. `studies` maps names to their files; `facts` says how and when the report was made.

    `quality` holds the quality of trained models, where a study trains any, `searches` the largest batches, where a
    study has them searched; `cost_models` is what `model_lines` gives; `cores_worth` is how many cores an accelerator
    is worth, where a study times the CPU on fewer.
    """
    environment = Environment(
        loader=FileSystemLoader(template.parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["seconds"] = lambda value: "" if value is None else seconds_text(value)
    sections = [
        _section(name, spec, measurements, cells, crossovers, figures)
        | _quality(name, quality)
        | _searches(name, searches)
        | {"cost_models": _cost_models(name, spec, cost_models)}
        | _cores_worth(name, cores_worth)
        | claim_group(claims[claims["study"] == name], spec["published"])
        for name, spec in studies.items()
    ]
    measured = [measurements] if quality is None else [measurements, quality]
    raised = sorted({flag for flags in cells["flags"] for flag in flags})
    return environment.get_template(template.name).render(
        tally=tally(claims) if len(claims) else None,
        sections=sections,
        cells=records(cells),
        machines=_machines(measured),
        missing_half=missing_half(device for table in measured for device in table["device"]),
        flags={flag: FLAGS[flag] for flag in raised},
        facts=facts,
        prices=price_words(facts["price_per_hour"], facts["currency"]),
    )


def _section(
    name: str,
    spec: Mapping[str, Any],
    measurements: pd.DataFrame,
    cells: pd.DataFrame,
    crossovers: pd.DataFrame,
    figures: Sequence[FigureFile],
) -> dict[str, Any]:
    of_study = crossovers[crossovers["study"] == name]
    headlines = headline_rows(of_study)
    trials = measurements[measurements["study"] == name]
    own = cells[cells["study"] == name]
    several = varying(headlines, LINE_AXES)
    asks_where = _asks_for_crossovers(spec)
    return {
        "name": name,
        "title": spec["title"],
        "question": spec["question"],
        "published": spec["published"],
        "devices": spec.get("devices"),
        "answers": [
            *[("", text) for text in _loading(trials, spec)],
            *merged(
                (line_words(row, several), text) for row in records(headlines) if (text := _answer(row, own, spec))
            ),
        ],
        "figures": [figure for figure in figures if figure.study == name],
        "transfers": transfers(of_study) if asks_where else [],
        "others": other_crossovers(of_study) if asks_where else [],
        "not_ok": records(own[own["status"] != "ok"]),
        "flagged": int((own["flags"].map(len) > 0).sum()),
        "count": len(own),
        "trials": _range(own["trials"]),
    }


def _loading(trials: pd.DataFrame, spec: Mapping[str, Any]) -> list[str]:
    """What loading takes of a step, where no crossover is the question: its figure shows that by size."""
    return [] if _asks_for_crossovers(spec) else loading_answers(with_ok_times(trials), spec["steps_per_run"])


def _asks_for_crossovers(spec: Mapping[str, Any]) -> bool:
    return not CROSSOVER_FIGURES.isdisjoint(spec["figures"])


def _answer(row: dict[str, Any], cells: pd.DataFrame, spec: Mapping[str, Any]) -> str | None:
    """The answer for a line: its crossover where that is the question, or how much faster one side is at one size."""
    if _asks_for_crossovers(spec):
        return answer(row)
    line = rows_with(cells, LINE_AXES, row).dropna(subset=["step_time_s"])
    seconds = dict(zip(line["device"], line["step_time_s"], strict=False))
    at_one_size = len(line) == len(seconds)
    return answer_at_one_size(row, seconds) if at_one_size else None


def _quality(name: str, quality: pd.DataFrame | None) -> dict[str, Any]:
    """What a study's trained models add to its section; nothing where it trains none."""
    if quality is None or (own := quality[quality["study"] == name]).empty:
        return {"quality": None}
    return {"quality": {"answer": quality_answer(own), "rows": quality_view(own), "metrics": METRICS}}


def _searches(name: str, searches: pd.DataFrame | None) -> dict[str, Any]:
    """The largest batches of a study; nothing where it has none searched."""
    return {"searches": [] if searches is None else searches_view(searches[searches["study"] == name])}


def _cost_models(name: str, spec: Mapping[str, Any], models: pd.DataFrame | None) -> list[dict[str, str]]:
    """The cost models beside a study's figure of times; none where it has no such figure."""
    if models is None or "times" not in spec["figures"]:
        return []
    own = models[models["study"] == name]
    several = varying(own, LINE_AXES)
    return [model_words(row, several) for row in records(own)]


def _cores_worth(name: str, table: pd.DataFrame | None) -> dict[str, Any]:
    """What the numbers of cores add to a study's section; nothing where the CPU ran on all of them only."""
    own = None if table is None else table[table["study"] == name]
    return {"cores": None if own is None or own.empty else cores_view(own)}


def _range(counts: pd.Series) -> str:
    if counts.empty:
        return "0"
    low, high = counts.min(), counts.max()
    return f"{low}" if low == high else f"{low} to {high}"


MACHINE_COLUMNS = {
    "hostname": "host",
    "cpu_model": "CPU",
    "physical_cores": "usable physical cores",
    "threads": "threads of torch",
    "cpu_capability": "instruction set",
    "driver_version": "GPU driver",
    "cuda_version": "CUDA",
    "cudnn_version": "cuDNN",
    "torch_version": "torch",
    "python_version": "Python",
    "operating_system": "operating system",
    "crossover_version": "Crossover",
}


def _machines(tables: Sequence[pd.DataFrame]) -> list[dict[str, str]]:
    """The distinct combinations of device, host and software that measured or trained."""
    columns = ["device", "device_name", *MACHINE_COLUMNS]
    rows = pd.concat([on_all_cores(table)[columns].astype(object) for table in tables if len(table)])
    machines = []
    for _, row in rows.drop_duplicates().iterrows():
        facts = {words: str(row[key]) for key, words in MACHINE_COLUMNS.items() if not pd.isna(row[key])}
        machines.append({"device": device_label(row["device"], row["device_name"])} | facts)
    return machines
