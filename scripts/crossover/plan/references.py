"""The reference machines, measured elsewhere, that a run is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crossover.config.configuration import Configuration
from crossover.config.words import BASELINE, REFERENCE_FILES, is_cpu
from crossover.errors import UserError, allowed_names
from crossover.tables.references import FACTS_FILE, read_facts


def reference_folders(config: Configuration, devices: Sequence[str], shipped: Path) -> list[Path]:
    """The folders of the references: `auto` takes those of `shipped` if the run has no accelerator.

    Raises UserError for a name that is neither there nor a folder with a reference, and for one that is damaged.
    """
    shipped_folders = sorted(path.parent for path in shipped.glob(f"*/{FACTS_FILE}"))
    if config.reference in ("none", ("none",)):
        return []
    if config.reference == "auto":
        folders = shipped_folders if all(map(is_cpu, devices)) else []
    else:
        names = [config.reference] if isinstance(config.reference, str) else config.reference
        folders = [_folder(name, shipped_folders) for name in names]
    names = [read_facts(folder).name for folder in folders]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(
            f"reference: two are called '{doubled[0]}'; allowed: one; export one of them under another name"
        )
    return folders


def check_both_kinds(devices: Sequence[str]) -> None:
    """Raise UserError unless a run measures what a reference must have: the CPU and an accelerator."""
    if BASELINE not in devices or all(map(is_cpu, devices)):
        measured = ", ".join(devices) or "nothing"
        raise UserError(f"export_reference: the run measures {measured}; allowed: the CPU and an accelerator together")


def _folder(name: str, shipped: Sequence[Path]) -> Path:
    matching = [path for path in shipped if path.name == name] or [Path(name)]
    if not (matching[0] / FACTS_FILE).is_file():
        names = [path.name for path in shipped]
        allowed = allowed_names(name, names) if names else "allowed: auto, none"
        raise UserError(f"reference: '{name}' is unknown; {allowed}, or a folder with {FACTS_FILE}")
    return matching[0]


def reference_files(folders: Sequence[Path]) -> list[str]:
    """The files of references, as inputs of a rule."""
    return [str(folder / name) for folder in folders for name in REFERENCE_FILES]
