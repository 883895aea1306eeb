"""Reports on runs in which nothing differs from anything, for the number of false statements in a report."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from crossover.config.configuration import read_configuration
from crossover.config.studies import Cell
from crossover.config.study import Study, cells_of_candidates
from crossover.config.words import is_cpu
from crossover.tables.columns import COLUMNS, Training, arrow_schema
from crossover.tables.run_tables import RunTables, table_of
from crossover.topics.analysis import analyse
from crossover.topics.answers import read_answers
from crossover.topics.latency.table import MISTAKES, RIGHT

CONFIG = Path(__file__).parents[2] / "config"
DEVICES = ("cpu", "cuda")
STEP_S = 1e-3
STEPS_OF_LATENCY = 60
STEP_SPREAD = 0.05
"""Standard deviation of ln(latency) between the steps of a process."""


def studies_of(name: str) -> list[Study]:
    """The studies of a config file in config/, such as `config` or `full`."""
    values = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    return list(read_configuration([(f"config/{name}.yaml", values)], CONFIG).studies)


def null_rows(studies: Collection[Study], trials: int, spread: float, draw: np.random.Generator) -> pd.DataFrame:
    """Trials of all cells on a CPU and a GPU, whose times differ only by chance.

    `spread` is the standard deviation of ln(time) between trials.
    """
    rows = [
        row
        for study in studies
        for cell in [*study.cells(DEVICES), *cells_of_candidates(study, DEVICES)]
        for row in _trials(cell, study, trials, spread, draw)
    ]
    table = pd.DataFrame(rows).reindex(columns=list(COLUMNS)).astype(object)
    return table.where(table.notna(), None)


def _trials(
    cell: Cell, study: Study, trials: int, spread: float, draw: np.random.Generator
) -> Iterator[Mapping[str, Any]]:
    for trial in range(1, trials + 1):
        step_s = STEP_S * cell.batch_size * np.exp(spread * draw.normal())
        yield {
            **cell.values,
            "trial": trial,
            "status": "ok",
            "flag_names": [],
            "step_time_s": step_s,
            "first_step_s": step_s,
            "samples_per_step": cell.batch_size,
            "parameters": cell.size,
            "spent_s": json.dumps(dict.fromkeys(("context", "build"), abs(0.1 + 0.01 * draw.normal()))),
            "threads": 4 if is_cpu(cell.device) else None,
            **(_latencies(cell, study, step_s, draw) if study.latency_steps else {}),
        }


def _latencies(cell: Cell, study: Study, step_s: float, draw: np.random.Generator) -> dict[str, Any]:
    mistakes = (MISTAKES[1:2] if is_cpu(cell.device) else MISTAKES) if study.latency_mistakes else ()
    samples = {
        method: (step_s * np.exp(STEP_SPREAD * draw.normal(size=STEPS_OF_LATENCY))).tolist()
        for method in (RIGHT, *mistakes)
    }
    percentiles = np.percentile(samples[RIGHT], [50, 99])
    return samples | dict(zip(("latency_p50_s", "latency_p99_s"), percentiles, strict=True))


def report_on(studies: Collection[Study], rows: pd.DataFrame) -> RunTables:
    specs = {study.name: study for study in studies}
    trainings = arrow_schema(Training).empty_table().to_pandas()
    return analyse(rows, trainings, table_of("cells"), specs, None)


def false_statements(tables: RunTables) -> pd.Series:
    """Whether each comparing statement of a report claims a difference, by its study, although there is none."""
    answers = [answer for answer in read_answers(tables.answers) if answer.compares]
    claims = tables.claims[tables.claims["verdict"] != "no_data"]
    false_claims = claims.apply(_is_false_claim, axis=1) if len(claims) else pd.Series(dtype=bool)
    states = [answer.states_difference for answer in answers] + list(false_claims)
    return pd.Series(states, [*(answer.study for answer in answers), *claims["study"]], dtype=bool)


def _is_false_claim(claim: pd.Series) -> bool:
    """Whether a verdict is false if every ratio is 1 and no times cross."""
    if claim["form"] == "crossover_between":
        return claim["verdict"] in ("reproduced", "differs")
    if claim["form"] == "ratio_below":
        return bool(claim["verdict"] == ("reproduced" if claim["tested_high"] <= 1 else "differs"))
    is_within = claim["tested_low"] <= 1 <= claim["tested_high"]
    return bool(claim["verdict"] == ("differs" if is_within else "reproduced"))
