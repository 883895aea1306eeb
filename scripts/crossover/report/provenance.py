"""Everything that is needed to doubt a number: what ran, on what, from which files, and how to run it again."""

from __future__ import annotations

import json
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from crossover.machine.checkout import ROOT, Checkout, find_checkout
from crossover.plan.invocation import Invocation
from crossover.report.citation import citation
from crossover.report.machine_facts import machine_facts
from crossover.report.page_files import file_facts

PACKAGES = (
    *("snakemake", "pandas", "numpy", "scipy", "pyarrow", "scikit-learn", "matplotlib", "seaborn", "jinja2"),
    *("pyyaml", "torch"),
)
"""What made the tables, the figures and the page, and the torch that a job of theirs would use."""


def provenance(
    tables: Sequence[pd.DataFrame],
    config: Mapping[str, Any],
    studies: Mapping[str, Mapping[str, Any]],
    invocation: Invocation | None,
    files: Mapping[str, Sequence[Path]],
    page: Path,
    made_at: str,
    runs: Sequence[Mapping[str, Any]] = (),
    partial: str | None = None,
) -> dict[str, Any]:
    """Plain values, as results/provenance.json has them and as the page shows them.

    `tables` are those of trials and of trainings, `config` and `studies` what the files said, completed with defaults,
    `files` the files to take checksums of, by what they are, `runs` what `read_provenances` gives where runs were
    merged, `partial` how much has finished of a run of which that is not all.
    """
    checkout = find_checkout() if invocation is None else invocation.checkout
    found = {
        "made_at": made_at,
        "run": invocation and {"command": invocation.command, "folder": invocation.folder},
        "code": asdict(checkout) | {"code_version": checkout.code_version},
        "measured_by": _counts(tables, ["code_version", "crossover_version"]),
        "analysed_with": {"Python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
        "machines": machine_facts(tables),
        "settings": _counts(tables, ["device", "precision", "backend_settings"]),
        "effort": _counts(tables, ["study", "effort"]),
        "files": [fact for kind, paths in files.items() for fact in file_facts(kind, paths, page)],
        "config": config,
        "studies": studies,
        "sources": _sources(studies),
        "example": _example(tables),
        "citation": citation(ROOT / "CITATION.cff"),
        "partial": partial,
        "runs": runs,
    }
    # Tuples and numpy's numbers become what JSON and YAML hold.
    plain: dict[str, Any] = json.loads(json.dumps(found, default=_plain, allow_nan=False))
    return plain | {"rerun": rerun(checkout, invocation)}


class _ConfigDumper(yaml.SafeDumper):
    """Writes a list of plain values in one line: the sizes of a study, not one below the other."""


def _list_node(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.SequenceNode:
    plain = not any(isinstance(one, list | dict) for one in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=plain)


_ConfigDumper.add_representer(list, _list_node)


def as_yaml(values: Any) -> str:
    """Plain values as a file of the config has them."""
    return yaml.dump(values, Dumper=_ConfigDumper, sort_keys=False, allow_unicode=True, width=110)


def rerun(checkout: Checkout, invocation: Invocation | None) -> list[str]:
    """The commands that make this report from nothing, as far as they are known."""
    commands = []
    if checkout.commit:
        # A folder of this machine is no place that a reader could clone.
        remote = checkout.remote if checkout.remote and re.search("://|@", checkout.remote) else None
        commands += [f"git clone {shlex.quote(remote)} crossover", "cd crossover"] if remote else []
        commands.append(f"git checkout {checkout.commit}")
    return [*commands, "pip install -r requirements.txt", *([invocation.command] if invocation else [])]


def _counts(tables: Sequence[pd.DataFrame], columns: list[str]) -> list[dict[str, Any]]:
    """How many rows have each combination of values; null stands for what a row does not say.

    A table that lacks one of the columns does not count.
    """
    own = [table[columns].astype(object) for table in tables if set(columns) <= set(table.columns)]
    rows = pd.concat(own) if own else pd.DataFrame(columns=columns)
    sizes = rows.groupby(columns, sort=False, dropna=False).size()
    keys = [key if isinstance(key, tuple) else (key,) for key in sizes.index]
    return [
        {name: None if pd.isna(value) else value for name, value in zip(columns, key, strict=True)}
        | {"rows": int(count)}
        for key, count in zip(keys, sizes, strict=True)
    ]


def _sources(studies: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What the studies compare with, each once."""
    named = [(spec.get("published") or {}).get("source") for spec in studies.values()]
    named += [claim.get("source") for spec in studies.values() for claim in spec.get("claims") or ()]
    return [str(source) for source in dict.fromkeys(named) if source and source != "ours"]


def _example(tables: Sequence[pd.DataFrame]) -> str | None:
    """The command of one trial."""
    commands = [command for table in tables if "command" in table for command in table["command"].dropna().head(1)]
    return str(commands[0]) if commands else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
