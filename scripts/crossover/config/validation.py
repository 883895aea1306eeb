"""YAML, read and checked against a JSON schema; each mistake is one line: file, key, what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match

from crossover.errors import UserError, allowed_names, shown_path, shown_text, shown_value


class _Loader(yaml.SafeLoader):
    """The safe loader, which refuses repeated keys."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                problem = f"key {shown_value(name)} is repeated; allowed: each key once"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(name)
        return node


# A profile's null reaches the workflow as Python writes it.
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"None$"), ["N"])


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark; raises UserError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{shown_path(path)}: not a text file in UTF-8") from None
    except OSError as error:
        raise UserError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None


def read_yaml(path: Path) -> Any:
    """Read a YAML file; raises UserError naming the line."""
    return _load(read_text(path), shown_path(path))


def _load(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{where}: {line}not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file that must hold keys and values; raises UserError."""
    values = read_yaml(path)
    if not isinstance(values, dict):
        found = "nothing" if values is None else type(values).__name__
        raise UserError(f"{shown_path(path)}: {found} at the top level; allowed: keys with values, as `trials: 3`")
    return values


Layer = tuple[str, Mapping[str, Any]]
"""Where some values of the config come from, as messages name it, and the values."""


def read_layers(files: Sequence[Path], entries: Sequence[str]) -> list[Layer]:
    """The values of each file, then those of the command line's `key=value` entries; later ones win.

    Snakemake reads them too, but not a text on the command line as the same text in a file. Raises UserError.
    """
    given: dict[str, Any] = {}
    for entry in entries:
        key, _, text = entry.partition("=")
        if key in given:
            raise UserError(f"--config: {key} is given twice; allowed: each key once")
        given[key] = _load(text, f"--config: {key}")
    return [*((shown_path(file), read_mapping(file)) for file in files), ("--config", given)]


def joined(values: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings, joined key by key; of two values of a key the new one."""
    both = {key for key in new if isinstance(new[key], Mapping) and isinstance(values.get(key), Mapping)}
    return {**values, **new, **{key: joined(values[key], new[key]) for key in both}}


class Locator:
    """Finds which layer a value comes from: the last that holds it, or as much of its key as any does."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers

    def __call__(self, key: Sequence[str | int]) -> str:
        for length in range(len(key), 0, -1):
            holding = [where for where, values in self.layers if _holds(values, key[:length])]
            if holding:
                return holding[-1]
        return self.layers[0][0]


def _holds(node: Any, key: Sequence[str | int]) -> bool:
    for part in key:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


LONGEST_TEXT = 2000
"""Most characters of a text in a config or a study."""

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML, and so a page or a figure, cannot hold."""


def _is_number(checker: object, value: object) -> bool:
    return _is_integer(checker, value) or (isinstance(value, float) and math.isfinite(value))


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(_checker: object, value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and not UNPRINTABLE.search(value)


def _matches(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[ValidationError]:
    """The whole text must match."""
    if isinstance(value, str) and not re.fullmatch(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


# JSON Schema takes 32.0 for an integer, but a size of 32.0 would name other files than 32; YAML has infinity; and
# neither a page nor a figure can hold every text.
_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": _matches},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"number": _is_number, "integer": _is_integer, "string": _is_text}
    ),
)


def check(values: Any, schema: Mapping[str, Any], locate: Locator) -> dict[str, Any]:
    """The values, completed with the schema's defaults; raises UserError if the schema does not allow them."""
    error = best_match(_Validator(schema).iter_errors(values))
    if error is not None:
        raise UserError(_one_line(error, locate))
    return _with_defaults(values, schema)


def _with_defaults(values: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    complete = dict(values)
    for key, rule in schema.get("properties", {}).items():
        if key not in complete and "default" in rule:
            complete[key] = rule["default"]
        if isinstance(complete.get(key), Mapping):
            complete[key] = _with_defaults(complete[key], rule)
    return complete


def _one_line(error: ValidationError, locate: Locator) -> str:
    """The rule that a value breaks, with the words of its key in the schema."""
    parent = error.parent
    if isinstance(parent, ValidationError) and not error.relative_path and error.validator in ("const", "enum", "type"):
        error = parent  # every alternative of an anyOf failed: the words of the key name them all
    path: list[str | int] = list(error.absolute_path)
    schema: Any = error.schema
    value: Any = error.instance
    if error.validator == "additionalProperties":
        known = list(schema.get("properties", {}))
        unknown = next(key for key in value if key not in known)
        key = ".".join(map(str, [*path, shown_text(str(unknown))]))
        return f"{locate([*path, unknown])}: {key}: unknown key; {allowed_names(str(unknown), known)}"
    key = ".".join(map(str, path))
    where = f"{locate(path)}: {key}" if key else locate(path)
    words = schema.get("title", schema.get("description"))
    if isinstance(value, str) and error.validator == "type" and "string" in schema["type"]:
        words = f"allowed: at most {LONGEST_TEXT} characters, none of them a control character"
    message = error.message.replace(repr(value), shown_value(value))
    return f"{where}: {message}; {words}" if words else f"{where}: {message}"
