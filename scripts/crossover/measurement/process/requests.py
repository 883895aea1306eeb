"""What a measuring process is asked to do: a value that travels to it as JSON. There are three kinds of job."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import ClassVar

from crossover.config.studies import Cell, Effort


@dataclass(frozen=True)
class _AsJson:
    """A job as text, which names its kind."""

    kind: ClassVar[str]

    def to_json(self) -> str:
        """The job as text."""
        return json.dumps({"kind": self.kind, **asdict(self)})


@dataclass(frozen=True)
class Request(_AsJson):
    """One trial of one cell. Paths are relative to the folder that the parent runs in, and so does the child."""

    kind = "trial"

    cell: Cell
    trial: int
    seed: int
    dataset: str | None
    output: str
    """Parquet file to write; the child is given a temporary name, the parent gives it its own."""
    threads: int
    time_limit_s: float
    effort: Effort
    latency_steps: int = 0
    latency_mistakes: bool = False
    command: str = ""
    isolation: str = "process"
    attempts: int = 1
    uuid: str | None = None
    """The leased GPU."""
    cpus: list[int] | None = None
    """Logical CPUs that the measuring process is to run on; None: those of its parent."""
    lease_wait_s: float | None = None
    code_version: str | None = None
    code_key: str | None = None
    """Of the code that does the job, which its process finds out."""
    packages: str | None = None
    """The versions that the same process finds, as JSON."""


@dataclass(frozen=True)
class BatchTry(_AsJson):
    """One try of a search: whether three steps of the cell fit, at its batch size, and, where wanted, how many samples
    a second it does then. Writes no file.
    """

    kind = "batch_try"

    cell: Cell
    seed: int
    dataset: str | None
    threads: int
    time_limit_s: float
    memory_limit_bytes: int | None = None
    """What the cell may take of its device's memory; None: all there is."""
    timed_batches: int = 0
    """Batches to time after these steps, at most; 0: none."""
    isolation: str = "process"
    uuid: str | None = None
    """The leased GPU."""
    cpus: list[int] | None = None
    """Logical CPUs that the measuring process is to run on; None: those of its parent."""
    code_key: str | None = None
    """As in `Request`, and so are `packages`."""
    packages: str | None = None


@dataclass(frozen=True)
class TrainingRun(_AsJson):
    """A whole training of a cell's model, and its predictions of rows that it has not seen. Writes a Parquet file."""

    kind = "training"

    cell: Cell
    seed: int
    epochs: int
    test_share: float
    """Of the dataset's rows, the last ones, which are predicted."""
    dataset: str | None
    output: str
    threads: int
    time_limit_s: float
    command: str = ""
    isolation: str = "process"
    uuid: str | None = None
    """The leased GPU."""
    cpus: list[int] | None = None
    """Logical CPUs that the measuring process is to run on; None: those of its parent."""
    code_version: str | None = None
    code_key: str | None = None
    """As in `Request`, and so are `packages`."""
    packages: str | None = None


Job = Request | BatchTry | TrainingRun


def job_from_json(text: str) -> Job:
    """The job that `to_json` wrote."""
    values = json.loads(text)
    kind = values.pop("kind")
    values["cell"] = Cell(**values["cell"])
    if kind == Request.kind:
        return Request(**{**values, "effort": Effort(**values["effort"])})
    return TrainingRun(**values) if kind == TrainingRun.kind else BatchTry(**values)
