"""YAML checked against a JSON schema, with every mistake as one line: file, key, value, what is allowed."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match

from crossover.config.yaml_files import Layer
from crossover.errors import UserError, shown_text, shown_value

TYPE_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping of keys to values",
    "null": "null",
}

LONGEST_TEXT = 2000
"""Characters of a text in a config or a study."""

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML, and so a page or a figure, cannot hold."""


def _is_number(checker: object, value: object) -> bool:
    return _is_integer(checker, value) or (isinstance(value, float) and math.isfinite(value))


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(_checker: object, value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and not UNPRINTABLE.search(value)


def _matches(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[ValidationError]:
    """Of a whole text, though a line break end it."""
    if isinstance(value, str) and not re.fullmatch(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _has_length(_validator: object, least: int, value: object, _schema: object) -> Iterator[ValidationError]:
    """Of a text without the blanks around it."""
    if isinstance(value, str) and len(value.strip()) < least:
        yield ValidationError(f"{value!r} is too short")


# JSON Schema takes 32.0 for an integer, but a size of 32.0 would name other files than 32; YAML knows infinity; and
# neither a page nor a figure can hold every text.
_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": _matches, "minLength": _has_length},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"number": _is_number, "integer": _is_integer, "string": _is_text}
    ),
)


def check(values: Any, schema: Mapping[str, Any], locate: Locator) -> dict[str, Any]:
    """Check values against a schema and complete them with its defaults; raises UserError."""
    error = best_match(_Validator(schema).iter_errors(values))
    if error is not None:
        raise UserError(_one_line(error, locate))
    return with_defaults(values, schema)


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
    """Finds where a value comes from: the last layer that holds it; the first one for what none of them holds."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers

    def __call__(self, key: Sequence[str | int]) -> str:
        holding = [where for where, values in self.layers if _value_at(values, key) is not _NOTHING]
        return holding[-1] if holding else self.layers[0][0]


def _value_at(node: Any, key: Sequence[str | int]) -> Any:
    for part in key:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return node


_NOTHING = object()


def _one_line(error: ValidationError, locate: Locator) -> str:
    parent = error.parent
    if isinstance(parent, ValidationError) and error.validator in ("type", "const", "minimum", "maximum"):
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


def allowed_names(name: str, known: Sequence[str]) -> str:
    """The known names, and the closest one."""
    return f"allowed: {', '.join(known)}{did_you_mean(name, known, 1)}"


def did_you_mean(name: str, known: Sequence[str], most: int) -> str:
    """(did you mean 'a' or 'b'?): the closest names, at most so many; an empty text where none is close."""
    # Two letters of three say nothing: whoever writes gpu means cuda rather than xpu.
    close = difflib.get_close_matches(name, known, n=most, cutoff=0.7 if len(name) < 4 else 0.6)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
