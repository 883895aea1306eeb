"""Types of the values in a config or study file, for pydantic's checks and the JSON schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from crossover.config.models import MODES
from crossover.config.studies import LONGEST_S, MOST, MOST_SEED, MOST_THREADS, MOST_TRIALS, PRESETS
from crossover.config.words import AS_WRITTEN, DEVICES, EXECUTIONS, HALF, PRECISIONS, PROTOCOLS, SEVERAL
from crossover.errors import shown_value

T = TypeVar("T")

LONGEST_TEXT = 2000
CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
"""Characters that XML, and so an SVG figure, should not contain."""
MOST_PUBLISHED = 1e15
PROBLEM = "problem"
"""The type of the errors that our own validators raise."""


def problem(message: str) -> PydanticCustomError:
    """A validation error with a complete message, which is shown after file and key."""
    return PydanticCustomError(PROBLEM, "{message}", {"message": message})


@dataclass(frozen=True)
class OneOf:
    """Annotation for a string that is one of these words."""

    words: Sequence[str]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.literal_schema([*self.words])


@dataclass(frozen=True)
class Matching:
    """Annotation for a string that fully matches a regular expression; `title` describes it in messages."""

    pattern: str
    title: str
    longest: int = LONGEST_TEXT

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        whole = rf"\A({self.pattern})\Z"
        string = core_schema.str_schema(strict=True, max_length=self.longest, pattern=whole, regex_engine="python-re")
        return core_schema.custom_error_schema(string, "text", custom_error_message=self.title)

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": "string", "title": self.title}


class EachOnce:
    """Annotation for a list without repeated values."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def check(self, values: tuple[T, ...]) -> tuple[T, ...]:
        if len({(type(value), value) for value in values}) < len(values):
            raise problem(f"{shown_value([*values])} has a repeated value; allowed: each value once")
        return values

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "uniqueItems": True}


def _as_list(values: Any) -> Any:
    if isinstance(values, str) and "," in values:
        raise problem(f"{shown_value(values)} is read as a single value; allowed: one value, or a list, [{values}]")
    return [values] if isinstance(values, str | int) else values


def _one_name(text: str) -> str:
    names = re.split(r"[\s,]+", text)
    if "," in text or (len(names) > 1 and all(name.isdigit() for name in names)):
        raise problem(f"'{text}' is read as a single name; allowed: one name, or a list such as [{','.join(names)}]")
    return text


def _ascending(ends: tuple[float, ...]) -> tuple[float, ...]:
    if ends[0] > ends[1]:
        raise problem(f"[{ends[0]:g}, {ends[1]:g}] is reversed; allowed: lowest, highest")
    return ends


@dataclass(frozen=True)
class PartOf:
    """Annotation for a mapping of the fields of a dataclass or model, all optional; only the given ones are kept."""

    kind: type

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            self.check,
            handler.generate_schema(self.kind),
            serialization=core_schema.plain_serializer_function_ser_schema(dict),
        )

    def check(self, values: Any, handler: Callable[[Any], Any]) -> dict[str, Any]:
        checked = handler(values)
        known = dict(checked) if isinstance(checked, BaseModel) else vars(checked)
        return {name: known[name] for name in values}

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        rule = handler.resolve_ref_schema(handler(schema))
        parts = {
            key: {word: value for word, value in part.items() if word != "default"}
            for key, part in rule["properties"].items()
        }
        return {**rule, "properties": parts}


Set = Annotated[tuple[T, ...], EachOnce()]
Several = Annotated[tuple[T, ...], Field(min_length=1), EachOnce()]
TwoOrMore = Annotated[tuple[T, ...], Field(min_length=2), EachOnce()]
OneOrSeveral = Annotated[Several[T], BeforeValidator(_as_list)]
"""A list as in `Several`, or a single value, such as `devices=cpu` on the command line."""

Text = Annotated[
    str,
    Matching(
        rf"(?=[\s\S]*\S)[^{CONTROL}]+",
        f"a string of 1 to {LONGEST_TEXT} characters, without control characters",
    ),
]
SizeName = Annotated[Text, AfterValidator(_one_name)]
SlurmName = Annotated[str, Matching(r"[\w.:@,+-]+", "a name of letters, digits and . _ : @ , + -")]
NodeClassName = Annotated[str, Matching(r"[A-Za-z0-9][A-Za-z0-9._-]*", "a name of letters, digits, . _ and -", 100)]
Count = Annotated[int, Field(strict=True, ge=1, le=MOST)]
Seed = Annotated[int, Field(strict=True, ge=0, le=MOST_SEED)]
Trials = Annotated[int, Field(strict=True, ge=1, le=MOST_TRIALS)]
Threads = Annotated[int, Field(strict=True, ge=1, le=MOST_THREADS)]
Seconds = Annotated[float, Field(strict=True, gt=0, le=LONGEST_S)]
Minutes = Annotated[float, Field(strict=True, gt=0, le=10_000)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
Price = Annotated[float, Field(strict=True, ge=1e-6, le=MOST)]
Published = Annotated[float, Field(strict=True, gt=0, le=MOST_PUBLISHED)]
Positive = Annotated[float, Field(strict=True, gt=0, le=MOST)]
Range = Annotated[tuple[Published, ...], Field(min_length=2, max_length=2), AfterValidator(_ascending)]
Flag = Annotated[bool, Field(strict=True)]
Device = (
    Annotated[str, OneOf(DEVICES)]
    | Annotated[str, Matching(SEVERAL, "several GPUs, as cuda-2, or several processes on the CPU, as cpu-2x1")]
)
Protocol = Annotated[str, OneOf(PROTOCOLS)]
Precision = Annotated[str, OneOf((*PRECISIONS, AS_WRITTEN))]
Execution = Annotated[str, OneOf(EXECUTIONS)]
Mode = Annotated[str, OneOf(MODES)]
PresetName = Annotated[str, OneOf(tuple(PRESETS))]
CoreCount = Annotated[str, OneOf((HALF,))] | Threads


# Deferred, since validators are needed only for a whole config or study; building all would take twice as long.
KEYS = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
"""Settings of a pydantic dataclass whose fields are the keys of a mapping, which allows no other keys."""


class _Schema(GenerateJsonSchema):
    """JSON schemas without the titles that pydantic derives from names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


@cache
def checker(kind: Any) -> TypeAdapter[Any]:
    """What checks values against a dataclass, whose validators are built once."""
    return TypeAdapter(kind)


@cache
def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON schema of a mapping, with references resolved."""
    schema = checker(kind).json_schema(schema_generator=_Schema)
    definitions = schema.pop("$defs", {})

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(part) for part in node]
        if not isinstance(node, Mapping):
            return node
        whole = {**definitions[node["$ref"].rpartition("/")[2]], **node} if "$ref" in node else node
        names = ("$ref", "title") if whole.get("type") == "object" else ("$ref",)
        return {key: inlined(part) for key, part in whole.items() if key not in names or not isinstance(part, str)}

    complete: dict[str, Any] = inlined(schema)
    return complete
