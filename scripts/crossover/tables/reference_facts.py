"""What is known of a machine measured elsewhere, and the files of its folder; read before a run measures anything."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

from crossover.config.words import HERE, REFERENCE_FILES
from crossover.errors import UserError, shown_path
from crossover.files import atomic_path
from crossover.reading import UnreadableError, read_json

VERSION = 1
"""Of the folder's files."""
FACTS_FILE, TRIALS_FILE = REFERENCE_FILES


@dataclass(frozen=True)
class Facts:
    """What measured a reference, when, and with which code."""

    name: str
    device_name: str
    """The accelerator."""
    cpu_model: str
    physical_cores: int
    measured_on: str
    """The day of its first trial."""
    torch_version: str
    python_version: str
    driver_version: str | None
    operating_system: str
    code_version: str | None
    """git commit."""
    command: str | None
    """How its run was started."""

    @property
    def row(self) -> dict[str, Any]:
        """Its row of table `references`."""
        return {"machine" if name == "name" else name: value for name, value in asdict(self).items()}


def read_facts(folder: Path) -> Facts:
    """The facts of a reference; raises UserError for a folder that is damaged or of another version."""
    path, trials = (folder / name for name in REFERENCE_FILES)
    found = read_json(path, "reference")
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise UserError(f"{shown_path(path)}: not a reference of version {VERSION}; export it again")
    try:
        facts, expected = Facts(**found["facts"]), found["files"][TRIALS_FILE]
    except (KeyError, TypeError):
        raise UserError(f"{shown_path(path)}: lacks some of its facts; export it again") from None
    for name, kind in get_type_hints(Facts).items():
        if not isinstance(getattr(facts, name), kind):
            raise UserError(
                f"{shown_path(path)}: {name} is not of type {getattr(kind, '__name__', kind)}; export it again"
            )
    if facts.name == HERE:
        raise UserError(
            f"{shown_path(path)}: name is '{HERE}', as reports call the own machine; export it under another"
        )
    if not trials.is_file():
        raise UnreadableError(trials, "no such table", "export it again")
    if _sha256(trials) != expected:
        raise UserError(f"{shown_path(trials)}: is not the file that {FACTS_FILE} names; export both again")
    return facts


def write_facts(facts: Facts, folder: Path) -> None:
    """Write the facts beside the table of trials."""
    known = {"version": VERSION, "facts": asdict(facts), "files": {TRIALS_FILE: _sha256(folder / TRIALS_FILE)}}
    with atomic_path(folder / FACTS_FILE) as temporary:
        temporary.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
