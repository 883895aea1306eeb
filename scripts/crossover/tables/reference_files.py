"""Reference machines, with which other machines are compared: the trials of a finished run in a small folder.

Rules read the facts about references, so pandas is imported only to read or write trials.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from crossover.config.words import AXES, BASELINE, DIRTY, HERE, REFERENCE_FILES, is_cpu
from crossover.errors import UserError, shown_path
from crossover.files import atomic_path, sha256_of
from crossover.reading import UnreadableError, read_json
from crossover.tables.columns import COLUMNS
from crossover.tables.run_tables import table_of

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1
FACTS_FILE, TRIALS_FILE = REFERENCE_FILES

KEPT = (
    *(axis for axis in AXES if axis != "machine"),
    *("trial", "status", "reason", "flag_names", "step_time_s", "parameters", "size_name", "size_label"),
    *("device_name", "threads", "energy_per_step_j", "peak_allocated_bytes", "model_key"),
)
"""The columns of a trial that a comparison needs."""

ALSO_EXPORTED = ("device_busy_s", "spent_s", "first_step_s", "batch_name")
"""Further columns: the device's part of a step, and start-up. References of older versions lack them."""

KEPT_OF_ROOFS = ["device", "roof", "precision", "working_set_bytes", "value", "lowest", "highest", "unit"]

OF_CELLS = {"above_roof", "drift"}
"""Flags of a cell that need data of its trials that a reference does not keep."""

CHECKSUM = "facts_and_roofs_sha256"

LARGEST_BYTES = 200_000


@dataclass(frozen=True)
class Facts:
    """Facts about a reference: hardware, software, date and code."""

    name: str
    device_name: str
    """Name of the accelerator."""
    cpu_model: str
    physical_cores: int
    measured_on: str
    """Date of the first valid trial."""
    torch_version: str
    python_version: str
    driver_version: str | None
    operating_system: str
    code_version: str | None
    command: str | None


def read_facts(folder: Path) -> Facts:
    """Read the facts about a reference; raises UserError for a folder that is damaged or of another version."""
    path, trials = (folder / name for name in REFERENCE_FILES)
    content = read_json(path, "reference")
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise UserError(f"{shown_path(path)}: not a reference of version {VERSION}; export it again")
    try:
        facts = TypeAdapter(Facts).validate_python(content["facts"])
        expected = content["files"][TRIALS_FILE]
    except (KeyError, TypeError, ValidationError):
        raise UserError(f"{shown_path(path)}: facts are missing or have the wrong type; export it again") from None
    if facts.name == HERE:
        raise UserError(f"{shown_path(path)}: name is '{HERE}', which means this machine; export it under another name")
    if content.get(CHECKSUM) not in (None, _checksum(content)):  # None: exported by an older version
        raise UserError(f"{shown_path(path)}: was edited: the checksum of its facts and roofs differs; export it again")
    if not trials.is_file():
        raise UnreadableError(trials, "no such table", "export it again")
    if sha256_of(trials) != expected:
        raise UserError(f"{shown_path(trials)}: is not the file that {FACTS_FILE} names; export both again")
    return facts


def write_facts(facts: Facts, folder: Path, roofs: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write the facts, and rows of table `roofs`, to the folder with the file of trials."""
    content = {
        "version": VERSION,
        "facts": asdict(facts),
        "files": {TRIALS_FILE: sha256_of(folder / TRIALS_FILE)},
        "roofs": [{name: row[name] for name in KEPT_OF_ROOFS} for row in roofs],
    }
    content[CHECKSUM] = _checksum(content)
    with atomic_path(folder / FACTS_FILE) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _checksum(content: Mapping[str, Any]) -> str:
    checked = [content["facts"], content.get("roofs", [])]
    return hashlib.sha256(json.dumps(checked, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Reference:
    """A machine measured elsewhere."""

    facts: Facts
    trials: pd.DataFrame
    """One row per trial with all columns of measurements, of which `machine`, KEPT and ALSO_EXPORTED have values."""
    roofs: pd.DataFrame = field(default_factory=partial(table_of, "roofs"))
    """Table `roofs` for its accelerator and, unless exported by an older version, its CPU; empty without roofs."""


def read_reference(folder: Path) -> Reference:
    """Read the reference machine in a folder; raises UserError if it is damaged or of another version."""
    from crossover.tables.rows import read_trials  # needs pandas

    facts = read_facts(folder)
    trials, path = read_trials(folder / TRIALS_FILE, KEPT, "export it again"), folder / FACTS_FILE
    try:
        roofs = table_of("roofs", read_json(path, "reference").get("roofs", ())).assign(machine=facts.name)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UserError(f"{shown_path(path)}: its roofs are not rows of table roofs; export it again") from None
    return Reference(facts, trials.to_pandas().assign(machine=facts.name).reindex(columns=list(COLUMNS)), roofs)


def with_facts(cells: pd.DataFrame, references: Sequence[Reference]) -> pd.DataFrame:
    """Cells of references, with the facts about their machines in column `reference`."""
    facts = {reference.facts.name: json.dumps(asdict(reference.facts)) for reference in references}
    return cells.assign(reference=cells["machine"].map(facts).astype("string"))


def facts_of(cells: pd.DataFrame) -> dict[str, Facts]:
    """The facts in the `reference` column of cells, by the name of the machine."""
    facts = [Facts(**json.loads(text)) for text in cells["reference"].unique()]
    return {machine.name: machine for machine in facts}


def with_cell_flags(trials: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Trials that have the flags in OF_CELLS if their cells have them, beside their other flags."""
    import pandas as pd

    columns = [*AXES, "flag_names"]
    flags_of = {cell[:-1]: OF_CELLS & {*cell[-1]} for cell in cells[columns].itertuples(index=False, name=None)}
    flags = [
        sorted({*trial[-1]} - OF_CELLS | flags_of.get(trial[:-1], set()))
        for trial in trials[columns].itertuples(index=False, name=None)
    ]
    return trials.assign(flag_names=pd.Series(flags, trials.index, dtype=object))


def write_reference(
    measurements: pd.DataFrame, name: str, command: str | None, folder: Path, roofs: pd.DataFrame | None = None
) -> Reference:
    """Write the trials of one machine, and the roofs of its accelerator and its CPU, as a reference.

    Raises UserError if the trials are not those of one unnamed machine, lack the CPU or an accelerator, were measured
    with uncommitted code, or take more than LARGEST_BYTES.
    """
    from crossover.tables.frames import first_row, records

    valid = measurements[measurements["status"] != "invalid"]
    machines = sorted(valid["machine"].unique())
    if machines != [HERE]:
        raise UserError(
            f"{', '.join(machines) or 'no trial'}: a reference is one machine without a name; export that "
            "machine's own run"
        )
    devices = valid[valid["status"] == "ok"].drop_duplicates("device")
    accelerators = devices[[not is_cpu(device) for device in devices["device"]]]
    if BASELINE not in set(devices["device"]) or accelerators.empty:
        raise UserError("the run lacks the CPU or an accelerator; measure both on one machine")
    if dirty := sorted({str(version) for version in valid["code_version"].dropna() if str(version).endswith(DIRTY)}):
        raise UserError(
            f"the run was measured with uncommitted changes (commit {dirty[0]}), which nobody else has; commit them, "
            "or set them by --config or in a config file outside the checkout, and measure again in a new results "
            "folder"
        )
    first, host = first_row(accelerators), first_row(valid.sort_values("started_at"))
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
    table = valid[[*KEPT, *ALSO_EXPORTED]].sort_values(list(KEPT[: KEPT.index("status")])).reset_index(drop=True)
    with atomic_path(trials) as temporary:
        table.to_parquet(temporary, compression="zstd", index=False)
    if (size := trials.stat().st_size) > LARGEST_BYTES:
        raise UserError(f"{shown_path(trials)}: {size:,} bytes; allowed: {LARGEST_BYTES:,}; leave studies out")
    kept_roofs = [] if roofs is None else records(roofs[roofs["device"].isin([first["device"], BASELINE])])
    write_facts(facts, folder, kept_roofs)
    return read_reference(folder)
