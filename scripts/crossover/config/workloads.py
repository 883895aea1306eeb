"""Read the constants of a workload's module without importing the module or torch."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from inspect import Parameter
from pathlib import Path
from typing import Any

from crossover.config.signatures import find_definition
from crossover.config.source_names import constants
from crossover.config.studies import Cell
from crossover.config.words import COPYING, PLAIN
from crossover.errors import UserError, shown_value
from crossover.files import relative_path

WORKLOADS_FOLDER = Path(__file__).parents[1] / "measurement" / "workloads"
OWN = "model"
"""The workload of a user's model, which has no module here."""

FUNCTIONS = {"build_model": ("build_model(size)", 1), "build": ("build(cell, data, arithmetic)", 3)}
"""The functions that a module must define; for each its signature and its number of arguments."""

BASE_MB = 4000
"""Base host memory of a trial: torch and its libraries, the GPU's runtime, a batch of images."""
PARAMETER_BYTES = 16
"""Host memory per parameter: a float32 weight and its gradient, doubled (measured: 7 B for `higgs_mlp`)."""


def _is_tuple_of(kind: type, value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(type(item) is kind for item in value)


def _is_count(value: Any, least: int = 1) -> bool:
    return type(value) is int and value >= least


def _is_none_or_counts(value: Any) -> bool:
    return value is None or (_is_tuple_of(int, value) and min(value) >= 1)


def constant(allowed: str, is_allowed: Callable[[Any], bool], **default: Any) -> Any:
    """A field with the values that its constant may have, in words and as a check."""
    return field(metadata={"allowed": allowed, "is_allowed": is_allowed}, **default)


@dataclass(frozen=True)
class Traits:
    """The constants of a workload's module; each field is named like its constant, in lower case."""

    size_name: str = constant("a string", lambda value: isinstance(value, str) and bool(value.strip()))
    size_range: tuple[int, int] = constant(
        "the smallest and the largest size, such as (1, 32768)",
        lambda value: _is_tuple_of(int, value) and len(value) == 2 and 1 <= value[0] <= value[1],
    )
    dataset: str | None = constant(
        "None, or a key of `datasets` in the config, such as 'disc'",
        lambda value: value is None or isinstance(value, str),
    )
    """The dataset that the workload reads; None if it draws its own inputs."""
    protocols: tuple[str, ...] = constant(
        "a tuple of resident and as_published, such as ('resident',)",
        lambda value: _is_tuple_of(str, value) and set(value) <= {"resident", "as_published"},
    )
    variants: tuple[str, ...] = constant(
        "a tuple of names of letters, digits and _, such as ('plain',)",
        lambda value: _is_tuple_of(str, value) and all(re.fullmatch(r"\w+", item, re.ASCII) for item in value),
        default=(PLAIN,),
    )
    sizes: tuple[int, ...] | None = constant(
        "None, or a tuple of sizes within SIZE_RANGE", _is_none_or_counts, default=None
    )
    """The only sizes of the workload; None if all sizes in the range are allowed."""
    batch_sizes: tuple[int, ...] | None = constant(
        "None, or a tuple of whole numbers of at least 1", _is_none_or_counts, default=None
    )
    """The only batch sizes of the workload; None if all are allowed."""
    granularity: int = constant("a whole number of at least 1, at most the largest size", _is_count, default=1)
    """Sizes must be multiples of this."""
    preloaded: str | None = constant(
        "None, or a module of the workloads' folder, such as '_llama'",
        lambda value: value is None or (isinstance(value, str) and workload_module(value).is_file()),
        default=None,
    )
    """A module of the workloads' folder that takes seconds to import; the trial server imports it once."""
    classes: int | None = constant(
        "None, or a whole number of at least 2", lambda value: value is None or _is_count(value, 2), default=None
    )


CONSTANTS = {f.name.upper(): f.metadata for f in fields(Traits)}
OWN_TRAITS = Traits("size", (1, 1_000_000_000), None, ("resident", "loaded", *COPYING))


def known_workloads() -> list[str]:
    """Names of the workloads: the public modules of the workloads' folder."""
    return sorted(path.stem for path in WORKLOADS_FOLDER.glob("[!_]*.py") if "." not in path.stem)


def workload_module(workload: str) -> Path:
    """Path of the module that defines a workload."""
    return WORKLOADS_FOLDER / f"{workload}.py"


@cache
def workload_traits(workload: str) -> Traits:
    """The traits of a workload, with the protocols that copy `resident` batches; raises UserError."""
    if workload == OWN:
        return OWN_TRAITS
    traits = read_traits(workload_module(workload))
    copying = COPYING if "resident" in traits.protocols else ()
    return replace(traits, protocols=(*traits.protocols, *copying))


def trains(workload: str) -> bool:
    """Whether a workload has what trainings for quality need: a dataset and the protocol `resident`."""
    traits = workload_traits(workload)
    return traits.dataset is not None and "resident" in traits.protocols


def check_offered(workload: str, values: Mapping[str, Any], keys: Mapping[str, str]) -> None:
    """Raise UserError if a workload does not offer a size, batch size, protocol or variant.

    `keys` are the options or keys that set the values, by axis; a batch size without one is not checked.
    """
    traits = workload_traits(workload)
    low, high = traits.size_range
    size = values["size"]
    if not low <= size <= high or size not in (traits.sizes or (size,)) or size % traits.granularity:
        multiples = f", multiples of {traits.granularity}" if traits.granularity > 1 else ""
        allowed = f"from {low} to {high}{multiples}" if traits.sizes is None else ", ".join(map(str, traits.sizes))
        raise UserError(
            f"{keys['size']}: {size} is not offered by workload '{workload}'; allowed: {traits.size_name} {allowed}"
        )
    batch_sizes = traits.batch_sizes if "batch_size" in keys else None
    variants = None if workload == OWN else traits.variants
    for axis, offered in (("batch_size", batch_sizes), ("protocol", traits.protocols), ("variant", variants)):
        if offered is not None and values[axis] not in offered:
            raise UserError(
                f"{keys[axis]}: {values[axis]!r} is not offered by workload '{workload}'; "
                f"allowed: {', '.join(map(str, offered))}"
            )


def size_words(cell: Cell) -> dict[str, str | None]:
    """The columns `size_name` (what the size counts) and `size_label` (the size's name; None if sizes are numbers)."""
    if cell.model is None:
        return {"size_name": workload_traits(cell.workload).size_name, "size_label": None}
    return {"size_name": cell.model.size_name, "size_label": cell.model.label(cell.size)}


def memory_mb(workload: str, size: int) -> int:
    """Estimated megabytes of host memory of a trial; raises UserError if the module's `parameter_count` fails."""
    try:
        return BASE_MB + math.ceil(PARAMETER_BYTES * _parameter_count(workload)(size) / 1e6)
    except Exception as error:  # a user's own code
        raise UserError(
            f"{relative_path(workload_module(workload))}: parameter_count({size}) fails ({error!r}); "
            "allowed: plain arithmetic, without names of the module, that returns a whole number"
        ) from None


@cache
def _parameter_count(workload: str) -> Callable[[int], int]:
    if workload == OWN:
        return lambda _size: 0
    tree = ast.parse(workload_module(workload).read_bytes())
    names: dict[str, Any] = {"parameter_count": lambda _size: 0}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "parameter_count":
            exec(compile(ast.Module([node], []), f"{workload}.py", "exec"), names)
    count: Callable[[int], int] = names["parameter_count"]
    return count


def read_traits(module: Path) -> Traits:
    """The constants of a workload's module, which must also define FUNCTIONS; raises UserError."""
    read = constants(module, CONSTANTS)
    lines = {name: shown for name, (shown, _) in read.items()}
    values: dict[str, Any] = {name: value for name, (_, value) in read.items()}
    for name, value in values.items():
        if not CONSTANTS[name]["is_allowed"](value):
            raise _refused(lines, name, value)
    missing = [f.name.upper() for f in fields(Traits) if f.default is MISSING and f.name.upper() not in values]
    if missing:
        wanted = "; ".join(f"{name}: {CONSTANTS[name]['allowed']}" for name in missing)
        raise UserError(
            f"{relative_path(module)}: lacks {', '.join(missing)}; add at the top level: {wanted}; see 'A workload of "
            "your own' in docs/how-to/configure.md"
        )
    for name, (signature, most) in FUNCTIONS.items():
        _check_function(module, name, signature, most)
    traits = Traits(**{name.lower(): value for name, value in values.items()})
    low, high = traits.size_range
    if any(not low <= size <= high for size in traits.sizes or ()):
        raise _refused(lines, "SIZES", traits.sizes)
    if high // traits.granularity * traits.granularity < low:
        raise _refused(lines, "GRANULARITY", traits.granularity)
    return traits


def _check_function(module: Path, name: str, wanted: str, most: int) -> None:
    """Raise UserError if a module lacks a function, or if the function needs more than `most` arguments."""
    definition = find_definition(module, name, wanted)
    if definition is None or not definition.is_exact:
        return
    parameters = definition.signature.parameters.values()
    needed = [p.kind for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(needed) > most or Parameter.KEYWORD_ONLY in needed:
        raise UserError(
            f"{relative_path(module)}: line {definition.line}: {name}{definition.signature} needs arguments that "
            f"Crossover does not pass; allowed: {wanted}"
        )


def _refused(lines: Mapping[str, str], name: str, value: object) -> UserError:
    return UserError(f"{lines[name]}: {shown_value(value)} is not allowed; allowed: {CONSTANTS[name]['allowed']}")
