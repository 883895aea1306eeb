"""YAML read in one way only and checked against a JSON schema; each mistake is one line: file, key, what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.resolver import Resolver

from crossover.errors import UserError, allowed_names, shown_path, shown_text, shown_value

NULL, BOOLEAN, INTEGER, FLOAT, MERGE = (
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "merge")
)


class _Yaml12(yaml.resolver.BaseResolver):
    """The types that YAML 1.2 gives values without quotes; a number with leading zeros is none."""


_Yaml12.add_implicit_resolver(NULL, re.compile(r"(~|null|Null|NULL|None|)$"), None)
_Yaml12.add_implicit_resolver(BOOLEAN, re.compile(r"(true|True|TRUE|false|False|FALSE)$"), None)
_Yaml12.add_implicit_resolver("!leading-zero", re.compile(r"[-+]?0[0-9]+$"), None)
_Yaml12.add_implicit_resolver(INTEGER, re.compile(r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), None)
_Yaml12.add_implicit_resolver(FLOAT, re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), None)
_Yaml12.add_implicit_resolver(FLOAT, re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"), None)
_Yaml12.add_implicit_resolver(MERGE, re.compile(r"<<$"), None)


class _StrictLoader(Composer, CParser, SafeConstructor, Resolver):
    """The safe loader (YAML 1.1), which refuses what YAML 1.2 reads differently, tags, and repeated keys.

    So 2:30 (150), 010 (8), 2020-01-01 (a date), yes and no (booleans), 1_000 (1000) and 1e3 (a text) are errors.
    """

    yaml12 = _Yaml12()

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)  # ten times as fast as Python's
        for part in (Composer, SafeConstructor, Resolver):
            part.__init__(self)

    def compose_node(self, parent: Any, index: Any) -> Any:
        node: Any = super().compose_node(parent, index)
        resolve: Any = self.resolve
        resolve_as_12: Any = self.yaml12.resolve
        implicit = (not getattr(node, "style", None), True)
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
                self._refuse(key, f"key {shown_value(key.value)} is not a text; put it in quotes")
            if key.value in seen:
                self._refuse(key, f"key {shown_value(key.value)} is repeated; allowed: each key once")
            seen.add(key.value)
        return node

    def _refuse(self, node: Any, problem: str) -> None:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


# A profile's null reaches the workflow as Python writes it.
_StrictLoader.add_implicit_resolver(NULL, re.compile(r"None$"), ["N"])


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark; raises UserError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{shown_path(path)}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{shown_path(path)}: not a text file in UTF-8") from None
    except OSError as error:
        raise UserError(f"{shown_path(path)}: cannot be read: {error.strerror}") from None


def read_yaml(path: Path) -> Any:
    """Read a YAML file; raises UserError naming the line."""
    return _load(read_text(path), shown_path(path))


def _load(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_StrictLoader)  # type: ignore[arg-type]
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


TYPE_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping of keys to values",
    "null": "null",
}

BOUND_WORDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}

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


def _has_length(_validator: object, least: int, value: object, _schema: object) -> Iterator[ValidationError]:
    """Blanks around a text do not count."""
    if isinstance(value, str) and len(value.strip()) < least:
        yield ValidationError(f"{value!r} is too short")


# JSON Schema takes 32.0 for an integer, but a size of 32.0 would name other files than 32; YAML has infinity; and
# neither a page nor a figure can hold every text.
_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": _matches, "minLength": _has_length},
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
    parent = error.parent
    if isinstance(parent, ValidationError) and not error.relative_path and error.validator in WHOLE:
        error = parent  # every alternative of an anyOf failed: name them all
    path = list(error.absolute_path)
    schema: Any = error.schema
    value: Any = error.instance
    if error.validator == "additionalProperties":
        known = list(schema.get("properties", {}))
        unknown = next(key for key in value if key not in known)
        key = ".".join(map(str, [*path, shown_text(str(unknown))]))
        return f"{locate([*path, unknown])}: {key}: unknown key; {allowed_names(str(unknown), known)}"
    key = ".".join(map(str, path))
    where = f"{locate(path)}: {key}" if key else locate(path)
    if error.validator == "required":
        missing = next(name for name in schema["required"] if name not in value)
        return f"{where}: key '{missing}' is missing; {schema['properties'][missing]['description']}"
    if error.validator == "uniqueItems":
        return f"{where}: {shown_value(value)} names something twice; allowed: each value once"
    if error.validator in ("minItems", "minProperties") and not value:
        what = "list" if error.validator == "minItems" else "mapping"
        return f"{where}: the {what} is empty; allowed: {_allowed(schema)}"
    allowed = _allowed(schema)
    if isinstance(value, str) and error.validator == "type" and "string" in schema["type"]:
        allowed += f" of at most {LONGEST_TEXT} characters, none of them a control character"
    return f"{where}: {shown_value(value)} is not allowed; allowed: {allowed}"


WHOLE = ("type", "const", "enum", "minimum", "maximum")
"""Rules that one alternative of several breaks as a whole."""


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
    bounds = [f"{sign} {schema[bound]}" for bound, sign in BOUND_WORDS.items() if bound in schema]
    text = " ".join([words, " and ".join(bounds)]).strip()
    if "pattern" in schema:
        text = schema["title"]
    if schema.get("minLength"):
        text += ", not empty"
    if "maxLength" in schema:
        text += f", at most {schema['maxLength']} characters"
    if "items" in schema:
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        count = f"{low}" if low == high else f"{low} or more"
        text += f" of {count} values, each {_allowed(schema['items'])}"
    return text
