"""What a workload's module says about itself, read without running it or importing torch."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from crossover.config.words import PLAIN
from crossover.errors import UserError

WORKLOADS_FOLDER = Path(__file__).parents[1] / "measurement" / "workloads"
NULL = "null"
"""The workload that does nothing and needs no torch."""

GUIDE = "docs/how-to/configure.md, 'A workload of your own'"

BASE_MB = 4000
"""Memory of any trial: torch and its libraries, a GPU's host side, a batch of images."""
PARAMETER_BYTES = 16
"""A float32 weight and its gradient, and as much again (measured: 7 B per parameter for `higgs_mlp`)."""


@dataclass(frozen=True)
class Traits:
    """The constants of a workload's module; each is named as its field here, in capitals."""

    size_name: str
    size_range: tuple[int, int]
    dataset: str | None
    """None: the workload draws its own inputs."""
    protocols: tuple[str, ...]
    variants: tuple[str, ...] = (PLAIN,)
    sizes: tuple[int, ...] | None = None
    """The only sizes it can build; None: any in the range."""
    batch_sizes: tuple[int, ...] | None = None
    """The only batch sizes it can build; None: any."""
    granularity: int = 1
    """Sizes must be multiples of this."""
    classes: int | None = None
    """Number of classes in the labels; None: the module does not say."""


def known_workloads() -> list[str]:
    """Names of the workloads: the public modules of the workloads' folder."""
    return sorted(path.stem for path in WORKLOADS_FOLDER.glob("[!_]*.py") if "." not in path.stem)


def workload_module(workload: str) -> Path:
    """The module that defines a workload."""
    return WORKLOADS_FOLDER / f"{workload}.py"


@cache
def workload_traits(workload: str) -> Traits:
    """The constants of a workload's module; raises UserError as `read_traits` does."""
    return read_traits(workload_module(workload))


def trains(workload: str) -> bool:
    """Whether a workload trains on resident data with labels."""
    traits = workload_traits(workload)
    return traits.dataset is not None and "resident" in traits.protocols


def check_offered(workload: str, asked: Mapping[str, Any], keys: Mapping[str, str]) -> None:
    """Raise UserError if a workload does not offer a size, batch size, protocol or variant.

    `asked` holds the value of each axis, `keys` the option or the file's key that it came from. A batch size without a
    key is not checked.
    """
    traits = workload_traits(workload)
    low, high = traits.size_range
    size = asked["size"]
    if not low <= size <= high or size not in (traits.sizes or (size,)) or size % traits.granularity:
        multiples = f", multiples of {traits.granularity}" if traits.granularity > 1 else ""
        allowed = f"from {low} to {high}{multiples}" if traits.sizes is None else ", ".join(map(str, traits.sizes))
        raise UserError(
            f"{keys['size']}: {size} is not offered by workload '{workload}'; allowed: {traits.size_name} {allowed}"
        )
    batch_sizes = traits.batch_sizes if "batch_size" in keys else None
    for axis, offered in (("batch_size", batch_sizes), ("protocol", traits.protocols), ("variant", traits.variants)):
        if offered is not None and asked[axis] not in offered:
            raise UserError(
                f"{keys[axis]}: {asked[axis]!r} is not offered by workload '{workload}'; "
                f"allowed: {', '.join(map(str, offered))}"
            )


def memory_mb(workload: str, size: int) -> int:
    """Megabytes of host memory that a trial needs; raises UserError if the module's `parameter_count` fails."""
    try:
        return BASE_MB + math.ceil(PARAMETER_BYTES * _parameter_count(workload)(size) / 1e6)
    except Exception as error:  # a user's own code
        raise UserError(
            f"{os.path.relpath(workload_module(workload))}: parameter_count({size}) fails ({error!r}); "
            "allowed: plain arithmetic, without names of the module, that returns a whole number"
        ) from None


@cache
def _parameter_count(workload: str) -> Callable[[int], int]:
    """The function of that name in a workload's module, on its own; 0 parameters if there is none."""
    tree = ast.parse(workload_module(workload).read_bytes())
    names: dict[str, Any] = {"parameter_count": lambda _size: 0}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "parameter_count":
            exec(compile(ast.Module([node], []), f"{workload}.py", "exec"), names)
    found: Callable[[int], int] = names["parameter_count"]
    return found


def read_traits(module: Path) -> Traits:
    """The constants of a workload's module; raises UserError naming the file."""
    shown = os.path.relpath(module)
    try:
        tree = ast.parse(module.read_bytes())
    except OSError as error:
        raise UserError(f"{shown}: cannot be read: {error.strerror}; a workload is a module there ({GUIDE})") from None
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{shown}: not valid Python ({error}); mend the module") from None
    known = {field.name.upper(): field for field in fields(Traits)}
    values: dict[str, Any] = {}
    for name, node in _assigned(tree):
        if name in known:
            try:
                values[name] = ast.literal_eval(node)
            except (ValueError, TypeError):
                raise UserError(
                    f"{shown}: line {node.lineno}: {name} is computed, but it is read without running the module; "
                    f"allowed: a literal ({GUIDE})"
                ) from None
    missing = [name for name, field in known.items() if field.default is MISSING and name not in values]
    if missing:
        raise UserError(f"{shown}: lacks {', '.join(missing)}; add them at the top level ({GUIDE})")
    return Traits(**{name.lower(): value for name, value in values.items()})


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names and values of the top-level assignments."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node.value) for target in targets if isinstance(target, ast.Name))
