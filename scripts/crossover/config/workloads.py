"""Read the constants of a workload's module without importing the module or torch."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from crossover.config.source_names import constants
from crossover.config.studies import Cell
from crossover.config.words import COLD, COPYING, EACH, PLAIN
from crossover.errors import UserError
from crossover.files import relative_path

WORKLOADS_FOLDER = Path(__file__).parents[1] / "measurement" / "workloads"
OWN = "model"
"""The workload of a user's model, which has no module here."""

BASE_MB = 4000
"""Base host memory of a trial: torch and its libraries, the GPU's runtime, a batch of images."""
PARAMETER_BYTES = 16
"""Host memory per parameter: a float32 weight and its gradient, doubled (measured: 7 B for `higgs_mlp`)."""


@dataclass(frozen=True)
class Traits:
    """The constants of a workload's module; each field is named like its constant, in lower case."""

    size_name: str
    """What the sizes count."""
    size_range: tuple[int, int]
    """The smallest and the largest size."""
    dataset: str | None
    """The dataset that the workload reads, a key of `datasets` in the config; None if it draws its own inputs."""
    protocols: tuple[str, ...]
    variants: tuple[str, ...] = (PLAIN,)
    sizes: tuple[int, ...] | None = None
    """The only sizes of the workload; None if all sizes in the range are allowed."""
    batch_sizes: tuple[int, ...] | None = None
    """The only batch sizes of the workload; None if all are allowed."""
    granularity: int = 1
    """Sizes must be multiples of this."""
    preloaded: str | None = None
    """A module of the workloads' folder that takes seconds to import; the trial server imports it once. By default
    TRANSFORMERS, if the workload's module imports it.
    """
    classes: int | None = None


TRANSFORMERS = "_transformers"
CONSTANTS = [f.name.upper() for f in fields(Traits)]
OWN_TRAITS = Traits("size", (1, 1_000_000_000), None, ("resident", "loaded", *COPYING, EACH, COLD))


def known_workloads() -> list[str]:
    """Names of the workloads: the public modules of the workloads' folder."""
    return sorted(path.stem for path in WORKLOADS_FOLDER.glob("[!_]*.py") if "." not in path.stem)


def workload_module(workload: str) -> Path:
    """Path of the module that defines a workload."""
    return WORKLOADS_FOLDER / f"{workload}.py"


@cache
def workload_traits(workload: str) -> Traits:
    """The traits of a workload, with the protocols that use `resident` batches; raises UserError."""
    if workload == OWN:
        return OWN_TRAITS
    traits = read_traits(workload_module(workload))
    others = (*COPYING, EACH, COLD) if "resident" in traits.protocols else ()
    return replace(traits, protocols=(*traits.protocols, *others))


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
    """The columns `size_name`, `size_label` and `batch_name`."""
    if (model := cell.model) is None:
        return {"size_name": workload_traits(cell.workload).size_name}
    return {"size_name": model.size_name, "size_label": model.label(cell.size), "batch_name": model.batch_name}


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
    """The constants of a workload's module; raises UserError if one is computed or missing."""
    values = {name.lower(): value for name, (_, value) in constants(module, CONSTANTS).items()}
    if missing := [f.name.upper() for f in fields(Traits) if f.default is MISSING and f.name not in values]:
        raise UserError(
            f"{relative_path(module)}: lacks {', '.join(missing)}; add at the top level; see 'A workload of your own' "
            "in docs/how-to/configure.md"
        )
    if f"{module.parent.name}.{TRANSFORMERS} import" in module.read_text(encoding="utf-8"):
        values.setdefault("preloaded", TRANSFORMERS)
    return Traits(**values)
