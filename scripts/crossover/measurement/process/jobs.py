"""Jobs, which are sent to measuring processes as JSON, and their outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from crossover.config.models import Model, Table
from crossover.config.studies import (
    LATENCY_STEPS_MAX,
    LATENCY_STEPS_MIN,
    LONGEST_S,
    MOST,
    MOST_SEED,
    BatchSearch,
    Cell,
    Effort,
    number,
)
from crossover.config.words import (
    AS_WRITTEN,
    BASELINE,
    BASELINE_SETTINGS,
    COMPUTES_IN,
    PRECISIONS,
    is_cpu,
    unit_of_side,
)
from crossover.config.workloads import size_words

COLUMNS = (
    *("seed", "isolation", "code_key", "model_key", "measurement_key", "packages", "command", "code_version"),
    *("plan_key", "environment_variables"),
    *("trial", "repeat", "attempts", "lease_wait_s", "turn_missed", "epochs", "test_share"),
)
"""Fields of jobs that are also columns of their rows."""

Default = TypeVar("Default")

REFUSED = "refused"
"""Status of a job whose step failed, until a try on the CPU in fp32 shows why."""


def plain_cell(cell: Cell) -> Cell:
    """The same cell on the CPU in fp32, run eagerly; a plain function keeps its precision."""
    sides: dict[str, Any] = BASELINE_SETTINGS if cell.precision != AS_WRITTEN else {}
    return replace(cell, **sides | {"device": unit_of_side(cell.device) if is_cpu(cell.device) else BASELINE})


def later(default: Default) -> Default:
    """A field that a command sets after it has read the job's JSON, which cannot give it."""
    return field(default=default, metadata={"is_set_later": True})


@dataclass(frozen=True, kw_only=True)
class Job:
    """What all jobs have: what the config sets, what a command adds, and what `reserve` adds to these.

    Relative paths start from the working directory that parent and measuring process share.
    """

    kind: ClassVar[str]
    axes: ClassVar[dict[str, Any]] = {}
    """Axes of the cell of each job of this kind."""
    begins: ClassVar[bytes]
    """The beginning of each file that a job of this kind writes."""

    cell: Cell
    seed: int = number(0, "Seed of the weights and data.", ge=0, le=MOST_SEED)
    cpu_threads: int | str = "auto"
    """Number of threads, or `auto`; a GPU or a side such as cpu-4 may have other `threads`."""
    time_limit_s: float = number(300.0, "Seconds for each measuring process.", gt=0, le=LONGEST_S)
    isolation: str = "auto"
    """`server`: a fork of a preloaded server on this host; `process`: a fresh one."""
    written_files: str | None = None
    """Record of the files that the model's code writes; see `machine.written_files`."""
    plan_key: str | None = None
    """Hash of what the run was planned with."""
    dataset: str | None = later(None)
    output: str = later("")
    """File to write; a row is first written to a temporary file, which the parent renames."""
    command: str = later("")
    code_version: str | None = later(None)

    threads: int = later(1)
    uuid: str | None = later(None)
    """The leased GPU; None if the device is not a GPU or has no UUID."""
    cpus: list[int] | None = later(None)
    """Logical CPUs of the measuring process; None: those of its parent."""
    rank_uuids: list[str] | None = later(None)
    """The leased GPUs of the ranks, if there are several."""
    rank_cpus: list[list[int]] | None = later(None)
    """Logical CPUs of each rank; None: those of the measuring process."""
    environment_variables: str | None = later(None)
    """The result of `timed_variables` as JSON."""
    lease_wait_s: float | None = later(None)
    """Time spent waiting for a turn on the host and for a GPU."""
    turn_missed: str | None = later(None)
    """The process of another user beside which this one runs, since it kept its turn for too long."""

    code_key: str | None = later(None)
    """Hash of the code that runs the job. The measuring process sets this field and the next three."""
    model_key: str | None = later(None)
    """Hash of the model's code alone."""
    measurement_key: str | None = later(None)
    """Hash of all other code."""
    packages: str | None = later(None)
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

    record: ClassVar[str]
    """Name of the row's class in `tables.columns`, which the parent of a successful job need not import."""
    begins = b"PAR1"


@dataclass(frozen=True, kw_only=True)
class TrialJob(RowJob):
    kind = "trial"
    record = "Measurement"

    trial: int = number(1, "Number of the trial; only the first is checked and profiled.", ge=1, le=MOST)
    repeat: int = number(0, "Number of earlier measurements of the trial, all of which were disturbed.", ge=0, le=MOST)
    effort: Effort = field(default_factory=Effort)
    latency_steps: int = number(0, "Steps to time one by one.", ge=LATENCY_STEPS_MIN, le=LATENCY_STEPS_MAX)
    latency_mistakes: bool = False
    attempts: int = later(1)


@dataclass(frozen=True, kw_only=True)
class TrainingJob(RowJob):
    """A whole training of a cell's model, and the predictions for the held-out rows."""

    kind = "training"
    record = "Training"

    epochs: int = field(metadata={"ge": 1, "le": MOST})
    test_share: float = field(metadata={"gt": 0, "lt": 1})
    """Share of the dataset's rows that is held out, from the end of the dataset."""


@dataclass(frozen=True, kw_only=True)
class TryJob(Job):
    """Runs a few steps of a cell to find out whether they succeed and fit into memory; writes no file."""

    kind = "batch_try"
    begins = b"{"

    search: BatchSearch = field(default_factory=BatchSearch)
    """The search to which the try belongs."""
    steps: int = later(3)
    """By step 2, optimizer state exists; by step 3, the heap is steady."""
    memory_limit_bytes: int | None = later(None)
    """Limit on the memory of the device; None: no limit."""
    timed_batches: int = later(0)
    """Maximum number of batches to time after these steps."""


@dataclass(frozen=True, kw_only=True)
class ProbeJob(Job):
    """A probe of a device's peak rates. Of its cell, it uses only the device and the machine. Writes no file."""

    kind = "probe"
    axes: ClassVar[dict[str, Any]] = {"study": "roofs", "workload": "matmul", "size": 16, "batch_size": 1}
    begins = b"["

    precisions: Sequence[str] = tuple(precision for precision in PRECISIONS if precision not in COMPUTES_IN)


@dataclass(frozen=True)
class Outcome:
    status: str
    reason: str | None
    written: bool
    """True if the measuring process has written the row."""
    facts: dict[str, Any]
    """The columns known so far, for a row that is not written yet."""
    result: dict[str, Any] = field(default_factory=dict)
    """The result of a try of a batch, or of a probe of roofs. For a trial, the values that its command prints; for a
    REFUSED job, the error.
    """
    transient: bool = False
    """True for an invalid trial whose cause may be temporary."""


KINDS: dict[str, type[Job]] = {kind.kind: kind for kind in (TrialJob, TrainingJob, TryJob, ProbeJob)}


def job_from_json(text: str) -> Job:
    values = json.loads(text)
    kind = KINDS[values.pop("kind")]
    model = values["cell"]["model"]
    values["cell"] = Cell(**values["cell"] | {"model": model and model_of(model)})
    for name, nested in (("effort", Effort), ("search", BatchSearch)):
        if name in values:
            values[name] = nested(**values[name])
    return kind(**values)


def model_of(values: Mapping[str, Any]) -> Model:
    """A user's model from JSON."""
    table = values.get("table")
    tuples = {name: tuple(values[name]) for name in ("names", "takes", "axes", "passed") if name in values}
    return Model(
        **{**values, **tuples, "table": table and Table(**{**table, "inputs": tuple(table.get("inputs", ()))})}
    )
