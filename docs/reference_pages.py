"""Write the pages of docs/reference/ from the config's keys, the registries and each script's --help.

python docs/reference_pages.py
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from crossover.config.config_keys import ConfigKeys  # noqa: E402
from crossover.config.key_types import json_schema  # noqa: E402
from crossover.config.statuses import FLAGS, STATUSES, Word  # noqa: E402
from crossover.config.study import StudyFile  # noqa: E402
from crossover.report.figure_files import FIGURES  # noqa: E402
from crossover.tables.columns import Measurement  # noqa: E402
from crossover.tables.registry import CAVEATS, CROSSOVER_STATUSES  # noqa: E402
from crossover.tables.run_tables import ROWS_OF, TABLES  # noqa: E402
from crossover.topics.caveats import CAVEATS as CAVEATS_OF_ANSWERS  # noqa: E402
from crossover.topics.gate.table import SUMMARY  # noqa: E402

PAIRS = {
    "device": "an accelerator against a CPU side",
    "precision": "a precision against fp32, on one device",
    "execution": "an execution against eager, on one device",
    "settings": "a precision and execution against the study's baseline, on one device",
    "protocol": "data resident on the device against data from the host, on one device",
    "machine": "the same kind of device on two machines",
    "best": "an accelerator against the CPU, each with its fastest candidate at each size",
    "reference": "a device of a machine measured elsewhere against a device of this machine",
    "bound": "the minimum time that the roofs of an accelerator measured elsewhere allow, against the time on this CPU",
}
"""The kinds of comparison in tables `ratios` and `crossovers`."""


def pages() -> dict[str, str]:
    """The text of each page by file name."""
    return {
        "config.md": _keys_page("Config", "Keys of `config/config.yaml`.", json_schema(ConfigKeys)),
        "study.md": _keys_page("Studies", "Keys of a study's file.", json_schema(StudyFile)),
        "columns.md": _columns_page(),
        "statuses-and-flags.md": _words_page(),
        "figures.md": _figures_page(),
        "commands.md": _commands_page(),
    }


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [list(head), ["---"] * len(list(head)), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines) + "\n"


def _cell(value: object) -> str:
    return re.sub(r"\s+", " ", str(value)).replace("|", "\\|").replace("<", "&lt;")


def _keys_page(title: str, first: str, schema: Mapping[str, Any]) -> str:
    rows = ([f"`{key}`", _allowed(rule), _default(rule), rule.get("description", "")] for key, rule in _keys(schema))
    return f"# {title}\n\n{first}\n\n" + _table(("key", "allowed", "default", "meaning"), rows)


def _keys(schema: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, Mapping[str, Any]]]:
    for key, rule in schema.get("properties", {}).items():
        yield f"{above}{key}", rule
        yield from _keys(rule, f"{above}{key}.")
    for part in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
        if isinstance(part, dict):
            yield from _keys(part, above)


def _default(rule: Mapping[str, Any]) -> str:
    value = rule.get("default", "required")
    return "" if value in ({}, "required") else f"`{yaml.safe_dump(value, default_flow_style=True).splitlines()[0]}`"


def _allowed(rule: Mapping[str, Any]) -> str:
    if "anyOf" in rule:
        return ", or ".join(map(_allowed, rule["anyOf"]))
    if "const" in rule or "enum" in rule:
        return ", ".join(f"`{value}`" for value in rule.get("enum", [rule.get("const")]))
    ends = [f"{word} {_number(rule[key])}" for key, word in ENDS.items() if key in rule]
    items = f" of {_allowed(rule['items'])}" if "enum" in rule.get("items", {}) else ""
    return f"{rule['type']}{items} {' '.join(ends)}".strip()


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) or value >= 1e-4 else f"{value:.15f}".rstrip("0")


ENDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "and below"}


def _columns_page() -> str:
    intro = (
        "# Columns\n\nEach table is a Parquet file in the results folder, with a CSV file beside it, except for the "
        "measurements. An empty value means: not measured, or not known on this machine.\n\n## measurements\n\nOne "
        f"row: {ROWS_OF['measurements']}.\n\n"
    )
    rows = ([f"`{c.name}`", c.metadata["unit"], c.metadata["doc"]] for c in dataclasses.fields(Measurement))
    text = intro + _table(("column", "unit", "holds"), rows)
    for name, columns in TABLES.items():
        rows = ([f"`{column}`", entry.unit, entry.doc] for column, entry in columns.items())
        text += f"\n## {name}\n\nOne row: {ROWS_OF[name]}.\n\n" + _table(("column", "unit", "holds"), rows)
    return text


def _words_page() -> str:
    def words(known: Mapping[str, Word]) -> str:
        return _table(("name", "meaning", "what to do"), ([f"`{n}`", w.meaning, w.remedy] for n, w in known.items()))

    def meanings(known: Mapping[str, str]) -> str:
        return _table(("name", "meaning"), ([f"`{name}`", meaning] for name, meaning in known.items()))

    further = {name: words for name, words in CAVEATS_OF_ANSWERS.items() if name not in CAVEATS | FLAGS}
    return (
        "# Statuses and flags\n\n## How a trial ends\n\n" + words(STATUSES)
        + "\n## Why an `ok` result deserves less trust\n\n" + words(FLAGS)
        + "\n## How the search for a crossover ends\n\n" + meanings(CROSSOVER_STATUSES)
        + "\n## Caveats about a crossover\n\n" + meanings(CAVEATS)
        + "\n## Further caveats about an answer\n\n" + meanings(further)
        + "\n## What is compared\n\n" + meanings(PAIRS)
        + "\n## The ratios that `compare_runs.py` sums up\n\n" + meanings(SUMMARY)
    )  # fmt: skip


def _figures_page() -> str:
    rows = ([f"`{name}`", figure.caption] for name, figure in FIGURES.items())
    return "# Figures\n\nA study's `figures` lists the kinds to draw.\n\n" + _table(("kind", "shows"), rows)


def _commands_page() -> str:
    text = "# Commands\n\nScripts that are called by hand; the workflow's rules call the others.\n"
    for script in sorted((ROOT / "scripts").glob("*.py")):
        if "\ndef main(" in script.read_text(encoding="utf-8"):
            command = [sys.executable, script, "--help"]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env={"COLUMNS": "100"})
            text += f"\n## {script.name}\n\n```\n{done.stdout}```\n"
    return text


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / "docs" / "reference" / name).write_text(text, encoding="utf-8")
