"""Made-up runs, and their pages."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
import pytest

from crossover.config.studies import MOST
from crossover.config.study import Study
from crossover.config.words import EXECUTIONS, PRECISIONS, PROTOCOLS
from crossover.home import ROOT
from crossover.machine.invocation import Checkout, Invocation
from crossover.report.problems import list_problems
from crossover.report.report import Run, write_report
from crossover.tables.columns import Training, arrow_schema
from crossover.tables.reference_files import Reference
from crossover.tables.run_tables import RunTables, table_of
from crossover.topics.analysis import analyse

TEMPLATES = Path(__file__).parents[1] / "report"
INVOCATION = Invocation("snakemake --cores 1", str(ROOT), Checkout("d" * 40))
CONFIG = {"seed": 0, "effort": {"preset": "quick"}, "prices": None}


def trial_command(trial: int, device: str, output: str = "trial.parquet", **cell: Any) -> str:
    """The command of a trial: its job as JSON, and the options that the rule adds."""
    options = [f"--device={device}", f"--trial={trial}", f"--output={output}"]
    return shlex.join(["python3", "scripts/measure_cell.py", json.dumps({"cell": cell}), *options])


OF_TRIALS = (MOST,)
"""Instead of a study's sizes: those of its trials."""


def study(**changes: Any) -> Study:
    """A study with other values of some keys."""
    plain = {
        "name": "a_study",
        "title": "A title",
        "question": "From which size on?",
        "workload": "disc_mlp",
        "figures": ("times",),
        "sizes": OF_TRIALS,
        "protocols": PROTOCOLS,
        "batch_sizes": (MOST,),
        "precisions": PRECISIONS,
        "executions": EXECUTIONS,
    }
    return Study(**plain | changes)


def tables_of(
    rows: pd.DataFrame,
    studies: Mapping[str, Study] | None = None,
    *,
    trainings: Sequence[Mapping[str, Any]] = (),
    searches: Sequence[Mapping[str, Any]] = (),
    prices: Mapping[str, Any] | None = None,
    roofs: Sequence[Mapping[str, Any]] = (),
    references: Sequence[Reference] = (),
) -> RunTables:
    """All tables of a run with these trials; the default sizes of a study are those of its trials."""
    completed = studies or {name: study() for name in rows["study"].unique()}
    sizes = {name: rows["size"][rows["study"] == name].unique().tolist() or OF_TRIALS for name in completed}
    completed = {
        name: replace(spec, name=name, sizes=sizes[name] if spec.sizes == OF_TRIALS else spec.sizes)
        for name, spec in completed.items()
    }
    trained = pd.DataFrame(trainings, columns=arrow_schema(Training).names)
    largest = table_of("cells", searches)
    probed = table_of("roofs", roofs)
    return analyse(rows, trained, largest, completed, prices, roofs=probed, references=references)


@dataclass(frozen=True)
class Page:
    """A page and the tables of its run."""

    path: Path
    tables: RunTables

    @property
    def folder(self) -> Path:
        """The folder of the page and of the files made with it."""
        return self.path.parent


def write_page(
    rows: pd.DataFrame,
    folder: Path,
    words: str | None = None,
    references: Sequence[Reference] = (),
    host: str = "here",
    spec: Mapping[str, Any] = MappingProxyType({}),
    **changes: Any,
) -> Page:
    """Write the report of these trials; `words` replace all texts of the studies, `spec` other keys."""
    names = list(rows["study"].unique())
    published = {
        "statement": words or "it starts at 700",
        "source": words or "Somebody (2019)",
        "crossover": [700, 700],
    }
    studies = {
        name: study(
            title=words or f"Study of {name}",
            question=words or f"From which of the {name} on?",
            published=published,
            **spec,
        )
        for name in names
    }
    where = {"protocol": "resident"}
    claim = {"statement": words or "from 100 on", "crossover_between": {"range": [100, 1000], "where": where}}
    studies[names[0]] = replace(studies[names[0]], claims=[claim])
    tables = tables_of(rows, studies, references=references)
    made = {"config": CONFIG, "note": words, "problems": list_problems(tables)}
    run = Run(tables, studies, **made | changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("platform.node", lambda: host)
        write_report(run, folder, TEMPLATES, INVOCATION)
    return Page(folder / "report.html", tables)
