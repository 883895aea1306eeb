"""What a workload's module says of itself, read without running it.

Without dependencies, so that the measuring process can import it for free.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from crossover.errors import UserError
from crossover.records import PLAIN

GUIDE = "config/README.md, 'A workload of your own'"


@dataclass(frozen=True)
class Traits:
    """What a workload's module says of itself in literal constants, readable without importing torch."""

    size_name: str
    size_range: tuple[int, int]
    dataset: str | None
    """None: the workload draws its inputs itself."""
    protocols: tuple[str, ...]
    variants: tuple[str, ...] = (PLAIN,)
    sizes: tuple[int, ...] | None = None
    """The only sizes that it can build; None: all of the range."""
    batch_sizes: tuple[int, ...] | None = None
    """The only batch sizes that it can build; None: any."""
    granularity: int = 1
    """It can build multiples of this only."""


ALLOWED = {
    "SIZE_NAME": "a text",
    "SIZE_RANGE": "the smallest and the largest size, as (1, 32768)",
    "DATASET": "None, or a key of `datasets` in the config, as 'disc'",
    "PROTOCOLS": "a tuple of names, as ('resident',)",
    "VARIANTS": "a tuple of names, as ('plain',)",
    "SIZES": "None, or a tuple of whole numbers",
    "BATCH_SIZES": "None, or a tuple of whole numbers",
    "GRANULARITY": "a whole number of at least 1",
}
"""What each constant may be: it is named as its field of `Traits`, in capitals."""


def read_traits(module: Path) -> Traits:
    """Read the constants of a workload's module.

    Raises UserError naming the file and what is wrong with it: it cannot be read or parsed, or a constant is missing,
    no literal, or not what is allowed.
    """
    shown = os.path.relpath(module)
    values: dict[str, Any] = {}
    for name, node in _constants(_parse(module, shown)):
        try:
            values[name] = ast.literal_eval(node)
        except (ValueError, TypeError):
            raise UserError(
                f"{shown}: line {node.lineno}: {name} is worked out, but it is read without running the module; "
                f"allowed: a literal, {ALLOWED[name]}"
            ) from None
        if not _is_allowed(name, values[name]):
            raise UserError(
                f"{shown}: line {node.lineno}: {name}: {values[name]!r} is not allowed; allowed: {ALLOWED[name]}"
            )
    missing = [f.name.upper() for f in fields(Traits) if f.default is MISSING and f.name.upper() not in values]
    if missing:
        wanted = "; ".join(f"{name}: {ALLOWED[name]}" for name in missing)
        raise UserError(
            f"{shown}: lacks {', '.join(missing)}; add what is missing at the top level ({wanted}); {GUIDE}"
        )
    return Traits(**{name.lower(): value for name, value in values.items()})


def _parse(module: Path, shown: str) -> ast.Module:
    try:
        return ast.parse(module.read_bytes())
    except OSError as error:
        raise UserError(f"{shown}: cannot be read: {error.strerror}; a workload is a module there ({GUIDE})") from None
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise UserError(f"{shown}: {line}not Python that can be parsed ({error.msg}); mend the module") from None
    except ValueError as error:  # before Python 3.12: null bytes
        raise UserError(f"{shown}: not Python that can be parsed ({error}); mend the module") from None


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names and values of the assignments at the top level that `Traits` knows."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id in ALLOWED:
                    yield target.id, node.value


def _is_allowed(name: str, value: Any) -> bool:
    if name == "SIZE_NAME":
        return isinstance(value, str)
    if name == "DATASET":
        return value is None or isinstance(value, str)
    if name == "GRANULARITY":
        return type(value) is int and value >= 1
    if name in ("PROTOCOLS", "VARIANTS"):
        return _is_tuple_of(str, value)
    if name == "SIZE_RANGE":
        return _is_tuple_of(int, value) and len(value) == 2
    return value is None or _is_tuple_of(int, value)


def _is_tuple_of(kind: type, value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(type(item) is kind for item in value)
