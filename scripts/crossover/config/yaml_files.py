"""YAML of files and of the command line, read in one way only, with every mistake as one line: file and place."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from crossover.errors import UserError, shown_value

NULL, BOOLEAN, INTEGER, FLOAT, MERGE = (
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "merge")
)


class _Yaml12(yaml.resolver.BaseResolver):
    """What a value without quotes is by YAML 1.2, but for numbers with leading zeros, which are none."""


_Yaml12.add_implicit_resolver(NULL, re.compile(r"(~|null|Null|NULL|None|)$"), None)
_Yaml12.add_implicit_resolver(BOOLEAN, re.compile(r"(true|True|TRUE|false|False|FALSE)$"), None)
_Yaml12.add_implicit_resolver("!leading-zero", re.compile(r"[-+]?0[0-9]+$"), None)
_Yaml12.add_implicit_resolver(INTEGER, re.compile(r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), None)
_Yaml12.add_implicit_resolver(FLOAT, re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), None)
_Yaml12.add_implicit_resolver(FLOAT, re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"), None)
_Yaml12.add_implicit_resolver(MERGE, re.compile(r"<<$"), None)


class _OneReading(yaml.SafeLoader):
    """The safe loader, which reads by YAML 1.1, but refuses what YAML 1.2 reads otherwise and what it drops silently.

    So 2:30 (150), 010 (8), 2020-01-01 (a date), yes and no (booleans), 1_000 (1000) and 1e3 (a text) are refused, and
    so are tags, and a key that is no text or stands twice in a mapping.
    """

    yaml12 = _Yaml12()

    def compose_node(self, parent: Any, index: Any) -> Any:
        node: Any = super().compose_node(parent, index)
        resolve: Any = self.resolve
        resolve_as_12: Any = self.yaml12.resolve
        implicit = (getattr(node, "style", None) is None, True)
        if node.tag != resolve(type(node), node.value, implicit):
            self._refuse(node, f"tag '{node.tag}' is not allowed; write the value without it")
        if node.tag != resolve_as_12(type(node), node.value, implicit):
            self._refuse(
                node,
                f"{shown_value(node.value)} is read in two ways, by YAML 1.1 and 1.2; allowed: a decimal number as 3, "
                "0.5 or 1.0e-3, true, false, null, or a text in quotes",
            )
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if key.tag not in (self.DEFAULT_SCALAR_TAG, MERGE):
                self._refuse(key, f"key {shown_value(key.value)} is no text; put it in quotes")
            if key.value in seen:
                self._refuse(key, f"key {shown_value(key.value)} stands twice; allowed: each key once")
            seen.add(key.value)
        return node

    def _refuse(self, node: Any, problem: str) -> None:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


# A profile's null reaches the workflow as Python writes it.
_OneReading.add_implicit_resolver(NULL, re.compile(r"None$"), ["N"])


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with a byte order mark or without; raises UserError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{shown_path(path)}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{shown_path(path)}: not a text file in UTF-8") from None
    except OSError as error:
        raise UserError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None


def read_yaml(path: Path) -> Any:
    """Read a YAML file; raise UserError naming the line where it is missing, malformed or unclear."""
    return _load(read_text(path), shown_path(path))


def _load(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_OneReading)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{where}: {line}not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None
    except ValueError:  # Python's limit on the digits of a number
        raise UserError(f"{where}: not valid YAML: a number of thousands of digits") from None
    except RecursionError:
        raise UserError(f"{where}: not valid YAML: nested too deeply") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file that must hold keys and values; raises UserError."""
    values = read_yaml(path)
    if not isinstance(values, dict):
        found = "nothing" if values is None else type(values).__name__
        raise UserError(f"{shown_path(path)}: {found} at the top level; allowed: keys with values, as `trials: 3`")
    return values


Layer = tuple[str, Mapping[str, Any]]
"""Values of the config, and where they come from as messages name it."""


def read_layers(files: Sequence[Path], entries: Sequence[str]) -> list[Layer]:
    """The values of each file and of the command line's `key=value` entries, the last one winning; raises UserError.

    Snakemake has read them all, too, but texts on the command line as something else than the same texts in a file.
    """
    given: dict[str, Any] = {}
    for entry in entries:
        key, _, text = entry.partition("=")
        if key in given:
            raise UserError(f"--config: {key} is given twice; allowed: each key once")
        given[key] = _load(text, f"--config: {key}")
    return [*((shown_path(file), read_mapping(file)) for file in files), ("--config", given)]


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """The values of all layers, mappings joined key by key."""
    joined: dict[str, Any] = {}
    for _, values in layers:
        joined = _updated(joined, values)
    return joined


def _updated(values: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    both = {key for key in new if isinstance(new[key], Mapping) and isinstance(values.get(key), Mapping)}
    return {**values, **new, **{key: _updated(values[key], new[key]) for key in both}}


def shown_path(path: Path) -> str:
    """A path as a message shows it: relative to the working directory where it lies below."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
