"""Reference machines: the rows of a finished run as a small folder, to hold other machines against."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from crossover.config.words import AXES, BASELINE, DIRTY, HERE, is_cpu
from crossover.errors import UserError, shown_path
from crossover.files import atomic_path
from crossover.reading import read_arrow
from crossover.tables.columns import COLUMNS
from crossover.tables.frames import first_row
from crossover.tables.reference_facts import TRIALS_FILE, Facts, read_facts, write_facts

KEPT = (
    *(axis for axis in AXES if axis != "machine"),
    *("trial", "status", "reason", "flags", "step_time_s", "parameters", "size_name", "size_label"),
    *("device_name", "threads", "energy_per_step_j", "peak_allocated_bytes", "model_key"),
)
"""The columns of a trial that a comparison needs."""

LARGEST_BYTES = 200_000
"""Of the table of trials."""


@dataclass(frozen=True)
class Reference:
    """A machine measured elsewhere."""

    facts: Facts
    trials: pd.DataFrame
    """One row a trial, with all columns of measurements; those that were not kept are empty."""


def read_reference(folder: Path) -> Reference:
    """The reference machine in a folder; raises UserError for one that is damaged or of another version."""
    facts = read_facts(folder)
    trials = folder / TRIALS_FILE
    table = read_arrow(trials, "table")
    if missing := [name for name in KEPT if name not in table.column_names]:
        raise UserError(f"{shown_path(trials)}: lacks column {missing[0]}; export it again")
    return Reference(facts, table.to_pandas().assign(machine=facts.name).reindex(columns=list(COLUMNS)))


def write_reference(measurements: pd.DataFrame, name: str, command: str | None, folder: Path) -> Reference:
    """Write the trials of one machine as a reference.

    Raises UserError if they are of several machines, lack the CPU or an accelerator, or are of uncommitted code.
    """
    own = measurements[measurements["status"] != "invalid"]
    machines = sorted(own["machine"].unique())
    if machines != [HERE]:
        raise UserError(f"{', '.join(machines) or 'no trial'}: a reference is one machine without a name; take its run")
    devices = own[own["status"] == "ok"].drop_duplicates("device")
    accelerators = devices[[not is_cpu(device) for device in devices["device"]]]
    if BASELINE not in set(devices["device"]) or accelerators.empty:
        raise UserError("the run lacks the CPU or an accelerator; measure both on one machine")
    if dirty := sorted({str(version) for version in own["code_version"].dropna() if str(version).endswith(DIRTY)}):
        raise UserError(
            f"the run was measured with uncommitted changes (commit {dirty[0]}), which nobody else has; commit them, "
            "or give them by --config or by a config file outside the checkout, and measure again in a new results "
            "folder"
        )
    first, host = first_row(accelerators), first_row(own.sort_values("started_at"))
    facts = Facts(
        name=name,
        device_name=str(first["device_name"]),
        cpu_model=str(host["cpu_model"]),
        physical_cores=int(host["physical_cores"]),
        measured_on=str(host["started_at"])[:10],
        driver_version=first["driver_version"],
        command=command,
        **{key: host[key] for key in ("torch_version", "python_version", "operating_system", "code_version")},
    )
    trials = folder / TRIALS_FILE
    kept = own[list(KEPT)].sort_values([*KEPT[: KEPT.index("status")]]).reset_index(drop=True)
    with atomic_path(trials) as temporary:
        kept.to_parquet(temporary, compression="zstd", index=False)
    if (size := trials.stat().st_size) > LARGEST_BYTES:
        raise UserError(f"{shown_path(trials)}: {size:,} bytes; allowed: {LARGEST_BYTES:,}; leave studies out")
    write_facts(facts, folder)
    return read_reference(folder)
