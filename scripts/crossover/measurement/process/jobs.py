"""Jobs, which are sent to measuring processes as JSON, and their outcomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from crossover.config.models import Model, Table
from crossover.config.studies import Cell, Effort
from crossover.config.words import AS_WRITTEN, BASELINE, BASELINE_SETTINGS, is_cpu
from crossover.config.workloads import size_words
from crossover.tables.columns import Measurement, Training

COLUMNS = (
    *("seed", "isolation", "code_key", "model_key", "measurement_key", "packages", "command", "code_version"),
    *("plan_key", "environment_variables"),
    *("trial", "repeat", "attempts", "lease_wait_s", "turn_missed", "epochs", "test_share"),
)
"""Fields of jobs that are also columns of their rows."""

REFUSED = "refused"
"""Status of a job whose step failed, until a try on the CPU in fp32 shows why."""


def plain_cell(cell: Cell) -> Cell:
    """The same cell on the CPU in fp32, run eagerly; a plain function keeps its precision."""
    sides: dict[str, Any] = BASELINE_SETTINGS if cell.precision != AS_WRITTEN else {}
    return replace(cell, **sides | {"device": cell.device if is_cpu(cell.device) else BASELINE})


@dataclass(frozen=True, kw_only=True)
class Job:
    """Fields of all jobs. Relative paths start from the working directory that parent and measuring process share."""

    kind: ClassVar[str]

    cell: Cell
    seed: int
    dataset: str | None
    threads: int
    time_limit_s: float
    isolation: str = "process"
    uuid: str | None = None
    """The leased GPU."""
    cpus: list[int] | None = None
    """Logical CPUs of the measuring process; None: those of its parent."""
    written_files: str | None = None
    """Record of the files that the model's code writes; see `machine.written_files`."""
    plan_key: str | None = None
    environment_variables: str | None = None
    """The result of `timed_variables` as JSON."""
    code_key: str | None = None
    """Hash of the code that runs the job. The measuring process sets this field and the next three."""
    model_key: str | None = None
    """Hash of the model's code alone."""
    measurement_key: str | None = None
    """Hash of all other code."""
    packages: str | None = None
    """Versions of packages as JSON."""

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, **asdict(self)})

    def columns(self) -> dict[str, Any]:
        """Columns of the row that are known from the job."""
        model = self.cell.model.shown if self.cell.model else None
        fields_of_job = {name: getattr(self, name) for name in COLUMNS if hasattr(self, name)}
        return {**self.cell.values, **size_words(self.cell), "model": model, **fields_of_job}


@dataclass(frozen=True, kw_only=True)
class RowJob(Job):
    """A job whose result is a row of a table."""

    record: ClassVar[type[Measurement] | type[Training]]

    output: str
    """Parquet file to write: for the measuring process a temporary file, which the parent renames."""
    command: str = ""
    code_version: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrialJob(RowJob):
    kind = "trial"
    record = Measurement

    trial: int
    effort: Effort
    latency_steps: int = 0
    latency_mistakes: bool = False
    repeat: int = 0
    """Number of earlier measurements of the trial, all of which were disturbed."""
    attempts: int = 1
    lease_wait_s: float | None = None
    turn_missed: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingJob(RowJob):
    """A whole training of a cell's model, and the predictions for the held-out rows."""

    kind = "training"
    record = Training

    epochs: int
    test_share: float
    """Share of the dataset's rows that is held out, from the end of the dataset."""


@dataclass(frozen=True, kw_only=True)
class TryJob(Job):
    """Runs a few steps of a cell to find out whether they succeed and fit into memory; writes no file."""

    kind = "batch_try"

    steps: int = 3
    """By step 2, optimizer state exists; by step 3, the heap is steady."""

    memory_limit_bytes: int | None = None
    """Limit on the memory of the device; None: no limit."""
    timed_batches: int = 0
    """Maximum number of batches to time after these steps."""


@dataclass(frozen=True, kw_only=True)
class ProbeJob(Job):
    """A probe of a device's peak rates. Of its cell, it uses only the device and the machine. Writes no file."""

    kind = "probe"

    precisions: Sequence[str]


@dataclass(frozen=True)
class Outcome:
    status: str
    reason: str | None
    written: bool
    """True if the measuring process has written the row."""
    facts: dict[str, Any]
    """The columns known so far, for a row that is not written yet."""
    result: dict[str, Any] = field(default_factory=dict)
    """The result of a try or a probe. For a trial, the values that its command prints; for a REFUSED job, the error."""
    transient: bool = False
    """True for an invalid trial whose cause may be temporary."""


KINDS: dict[str, type[TrialJob] | type[TrainingJob] | type[TryJob] | type[ProbeJob]] = {
    kind.kind: kind for kind in (TrialJob, TrainingJob, TryJob, ProbeJob)
}


def job_from_json(text: str) -> TrialJob | TrainingJob | TryJob | ProbeJob:
    values = json.loads(text)
    kind = KINDS[values.pop("kind")]
    values["cell"] = Cell(**values["cell"] | {"model": _model_from_values(values["cell"]["model"])})
    if "effort" in values:
        values["effort"] = Effort(**values["effort"])
    return kind(**values)


def _model_from_values(values: dict[str, Any] | None) -> Model | None:
    if values is None:
        return None
    table = values["table"] and Table(**values["table"] | {"inputs": tuple(values["table"]["inputs"])})
    tuples = {name: tuple(values[name]) for name in ("names", "takes")}
    return Model(**values | tuples | {"table": table})
