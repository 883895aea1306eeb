"""What a trial is asked to do: a value that travels to the measuring process as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from crossover.studies import Cell, Effort


@dataclass(frozen=True)
class Request:
    """One trial of one cell. Paths are relative to the folder that the parent runs in, and so does the child."""

    cell: Cell
    trial: int
    seed: int
    dataset: str
    output: str
    """Parquet file to write; the child is given a temporary name, the parent gives it its own."""
    threads: int
    time_limit_s: float
    effort: Effort
    latency_steps: int = 0
    command: str = ""
    isolation: str = "process"
    attempts: int = 1
    uuid: str | None = None
    """The leased GPU."""
    lease_wait_s: float | None = None

    def to_json(self) -> str:
        """The request as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Request:
        """The request that `to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "cell": Cell(**values["cell"]), "effort": Effort(**values["effort"])})
