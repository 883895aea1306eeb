"""Jobs: what a measuring process is asked to do, a value that travels to it as JSON, and how that ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from crossover.config.models import Model, Table
from crossover.config.studies import Cell, Effort
from crossover.config.words import BASELINE, PLAIN_SIDES, is_cpu
from crossover.config.workloads import size_words
from crossover.tables.columns import Measurement, Training

COLUMNS = (
    *("seed", "isolation", "code_key", "model_key", "measurement_key", "packages", "command", "code_version"),
    *("trial", "repeat", "attempts", "lease_wait_s", "epochs", "test_share"),
)
"""Fields of jobs that are columns of their rows too."""


REFUSED = "refused"
"""How a job ends whose step failed for a reason that only a try on the CPU in fp32 can tell."""


def plain_cell(cell: Cell) -> Cell:
    """The same step on the CPU in fp32, eagerly."""
    sides: dict[str, Any] = {**PLAIN_SIDES, "device": cell.device if is_cpu(cell.device) else BASELINE}
    return replace(cell, **sides)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What all jobs need. Paths are relative to the folder of the parent, where the measuring process runs too."""

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
    """Logical CPUs that the measuring process runs on; None: those of its parent."""
    code_key: str | None = None
    """Hash of the code that does the job, filled in by the measuring process."""
    model_key: str | None = None
    """Hash of the model's code alone, filled in with it."""
    measurement_key: str | None = None
    """Hash of the other code, filled in with it."""
    packages: str | None = None
    """Versions of packages as JSON, filled in with it."""

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, **asdict(self)})

    def columns(self) -> dict[str, Any]:
        """What the job itself says about its result, under the names of a row's columns."""
        model = self.cell.model.shown if self.cell.model else None
        own = {**self.cell.values, **size_words(self.cell), "model": model}
        return {**own, **{name: getattr(self, name) for name in COLUMNS if hasattr(self, name)}}


@dataclass(frozen=True, kw_only=True)
class RowJob(Job):
    record: ClassVar[type[Measurement] | type[Training]]
    """What its row is made of."""

    output: str
    """Parquet file to write; the measuring process gets a temporary name, the parent renames the file."""
    command: str = ""
    code_version: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrialJob(RowJob):
    """One trial of one cell."""

    kind = "trial"
    record = Measurement

    trial: int
    effort: Effort
    latency_steps: int = 0
    latency_mistakes: bool = False
    repeat: int = 0
    """Times that the trial was measured before, and disturbed."""
    attempts: int = 1
    lease_wait_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingJob(RowJob):
    """A whole training of a cell's model, and its predictions for rows that it has not seen."""

    kind = "training"
    record = Training

    epochs: int
    test_share: float
    """Share of the dataset's rows, the last ones, that is predicted."""


@dataclass(frozen=True, kw_only=True)
class TryJob(Job):
    """One try of a search: whether some steps of the cell fit at its batch size. Writes no file."""

    kind = "batch_try"

    steps: int = 3
    """Step 2 includes gradients and optimizer state; step 3 has a steady heap."""

    memory_limit_bytes: int | None = None
    """What the cell may take of its device's memory; None: all there is."""
    timed_batches: int = 0
    """Most batches to time after these steps; 0: none."""


@dataclass(frozen=True, kw_only=True)
class ProbeJob(Job):
    """What a device can do; its cell names the device alone. Writes no file."""

    kind = "probe"

    precisions: Sequence[str]
    """Of the matrix products."""


@dataclass(frozen=True)
class Outcome:
    status: str
    reason: str | None
    written: bool
    """Whether the measuring process has written its row."""
    facts: dict[str, Any]
    """The columns it knew when it began."""
    found: dict[str, Any] = field(default_factory=dict)
    """What a try or a probe found; of a trial what its command prints."""
    transient: bool = False
    """Whether what spoilt the result may be gone when it is measured again."""


KINDS: dict[str, type[TrialJob] | type[TrainingJob] | type[TryJob] | type[ProbeJob]] = {
    kind.kind: kind for kind in (TrialJob, TrainingJob, TryJob, ProbeJob)
}


def job_from_json(text: str) -> TrialJob | TrainingJob | TryJob | ProbeJob:
    """The job that `to_json` wrote."""
    values = json.loads(text)
    kind = KINDS[values.pop("kind")]
    values["cell"] = Cell(**values["cell"] | {"model": _model(values["cell"]["model"])})
    if "effort" in values:
        values["effort"] = Effort(**values["effort"])
    return kind(**values)


def _model(values: dict[str, Any] | None) -> Model | None:
    if values is None:
        return None
    table = values["table"] and Table(**values["table"] | {"inputs": tuple(values["table"]["inputs"])})
    return Model(**values | {"names": tuple(values["names"]), "table": table})
