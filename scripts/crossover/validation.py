"""YAML checked against a JSON schema, with every mistake as one line: file, key, value, what is allowed."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match

from crossover.errors import UserError

TYPE_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping of keys to values",
    "null": "null",
}


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, but for a key that stands twice in a mapping, of which PyYAML silently takes the last."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if name in seen:
                problem = f"key '{key.value}' stands twice; allowed: each key once"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(name)
        return node


def read_yaml(path: Path) -> Any:
    """Read a YAML file; raise UserError naming the line where it is missing or malformed, or names a key twice."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except FileNotFoundError:
        raise UserError(f"{shown_path(path)}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{shown_path(path)}: not a text file in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{shown_path(path)}: {where}not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{shown_path(path)}: not valid YAML: {' '.join(str(error).split())}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file that must hold keys and values; raises UserError."""
    values = read_yaml(path)
    if not isinstance(values, dict):
        found = "nothing" if values is None else type(values).__name__
        raise UserError(f"{shown_path(path)}: {found} at the top level; allowed: keys with values, as `trials: 3`")
    return values


def _is_number(_checker: object, value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# JSON Schema takes 32.0 for an integer, but a size of 32.0 would name other files than 32; and YAML knows infinity.
_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many({"number": _is_number, "integer": _is_integer}),
)


def check(values: Any, schema: Mapping[str, Any], locate: Locator) -> dict[str, Any]:
    """Check values against a schema and complete them with its defaults; raises UserError."""
    error = best_match(_Validator(schema).iter_errors(values))
    if error is not None:
        raise UserError(_one_line(error, locate))
    return with_defaults(values, schema)


def as_typed(value: Any, schema: Mapping[str, Any]) -> Any:
    """Read texts as YAML where the schema wants no text: `--config` hands over numbers and booleans as texts."""
    if isinstance(value, Mapping):
        rules = schema.get("properties", {})
        return {key: as_typed(part, rules.get(key, {})) for key, part in value.items()}
    if isinstance(value, str) and {"anyOf", "type"} & schema.keys() and "string" not in schema.get("type", ()):
        with suppress(yaml.YAMLError):
            return yaml.safe_load(value)
    return value


def with_defaults(values: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Fill missing keys with the schema's defaults, all the way down."""
    complete = dict(values)
    for key, rule in schema.get("properties", {}).items():
        if key not in complete and "default" in rule:
            complete[key] = rule["default"]
        if isinstance(complete.get(key), Mapping):
            complete[key] = with_defaults(complete[key], rule)
    return complete


class Locator:
    """Finds the file that a value of the merged config comes from: the last one that holds it."""

    def __init__(self, files: Sequence[Path], merged: Any) -> None:
        self.files = files
        self.merged = merged

    def __call__(self, key: Sequence[str | int]) -> str:
        value = repr(_value_at(self.merged, key))
        for file in reversed(self.files):
            if repr(_value_at(read_yaml(file), key)) == value:
                return shown_path(file)
        return "--config" if len(self.files) > 1 or key else shown_path(self.files[0])


def _value_at(node: Any, key: Sequence[str | int]) -> Any:
    for part in key:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return node


_NOTHING = object()


def shown_path(path: Path) -> str:
    """A path as a message shows it: relative to the working directory where it lies below."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _one_line(error: ValidationError, locate: Locator) -> str:
    parent = error.parent
    if isinstance(parent, ValidationError) and error.validator in ("type", "const", "minimum"):
        error = parent  # every alternative of an anyOf failed: name them all
    path = list(error.absolute_path)
    schema: Any = error.schema
    value: Any = error.instance
    if error.validator == "additionalProperties":
        known = list(schema.get("properties", {}))
        unknown = next(key for key in value if key not in known)
        key = ".".join(map(str, [*path, unknown]))
        return f"{locate([*path, unknown])}: {key}: unknown key; {allowed_names(str(unknown), known)}"
    key = ".".join(map(str, path))
    where = f"{locate(path)}: {key}" if key else locate(path)
    if error.validator == "required":
        missing = next(name for name in schema["required"] if name not in value)
        return f"{where}: key '{missing}' is missing; {schema['properties'][missing]['description']}"
    if error.validator == "uniqueItems":
        return f"{where}: {value!r} names something twice; allowed: each value once"
    if error.validator == "minItems" and not value:
        return f"{where}: the list is empty; allowed: {_allowed(schema)}"
    return f"{where}: {value!r} is not allowed; allowed: {_allowed(schema)}"


def _allowed(schema: Mapping[str, Any]) -> str:
    """What a schema allows, in words."""
    if "anyOf" in schema:
        return ", or ".join(_allowed(option) for option in schema["anyOf"])
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    names = schema.get("type", "object")
    words = " or ".join(TYPE_WORDS[name] for name in ([names] if isinstance(names, str) else names))
    bounds = [
        f"{sign} {schema[bound]}"
        for bound, sign in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if bound in schema
    ]
    text = " ".join([words, " and ".join(bounds)]).strip()
    if "pattern" in schema:
        text += f" that matches {schema['pattern']}"
    if schema.get("minLength"):
        text += ", not empty"
    if "items" in schema:
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        count = f"{low}" if low == high else f"{low} or more"
        text += f" of {count} values, each {_allowed(schema['items'])}"
    return text


def allowed_names(name: str, known: Sequence[str]) -> str:
    """The known names, and the closest one."""
    return f"allowed: {', '.join(known)}{did_you_mean(name, known, 1)}"


def did_you_mean(name: str, known: Sequence[str], most: int) -> str:
    """(did you mean 'a' or 'b'?): the closest names, at most so many; an empty text where none is close."""
    close = difflib.get_close_matches(name, known, n=most)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
