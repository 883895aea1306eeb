"""What a workload's module says of itself, read without running it.

Without dependencies, so that the measuring process can import it for free.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from importlib.util import decode_source
from pathlib import Path
from symtable import SymbolTable, symtable
from typing import Any

from crossover.config.words import PLAIN, PROTOCOLS
from crossover.errors import UserError, shown_value

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
    classes: int | None = None
    """How many classes its dataset's labels have; None: the module does not say."""


ALLOWED = {
    "SIZE_NAME": "a text",
    "SIZE_RANGE": "the smallest and the largest size, as (1, 32768)",
    "DATASET": "None, or a key of `datasets` in the config, as 'disc'",
    "PROTOCOLS": "a tuple of resident and as_published, as ('resident',)",
    "VARIANTS": "a tuple of names of letters, digits and _, as ('plain',)",
    "SIZES": "None, or a tuple of sizes within SIZE_RANGE",
    "BATCH_SIZES": "None, or a tuple of whole numbers of at least 1",
    "GRANULARITY": "a whole number of at least 1, no more than the largest size",
    "CLASSES": "None, or a whole number of at least 2",
}
"""What each constant may be: it is named as its field of `Traits`, in capitals."""

FUNCTIONS = {"build_model": "size", "build": "cell, data, arithmetic"}
"""What a module defines, and the arguments that each is called with."""


def read_traits(module: Path, functions: Mapping[str, str] = FUNCTIONS) -> Traits:
    """Read the constants of a workload's module, and look for the functions that it must define.

    Raises UserError naming the file and what is wrong with it: it cannot be read or compiled, a constant is no literal
    or not what is allowed, or something is missing.
    """
    shown = os.path.relpath(module)
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    source = _source(module, shown)
    tree = _parse(source, shown)
    for name, node in _constants(tree):
        lines[name] = node.lineno
        try:
            values[name] = ast.literal_eval(node)
        except (ValueError, TypeError):
            raise UserError(
                f"{shown}: line {node.lineno}: {name} is worked out, but it is read without running the module; "
                f"allowed: a literal, {ALLOWED[name]}"
            ) from None
        if not _is_allowed(name, values[name]):
            raise _refused(shown, lines, name, values[name])
    missing = [f.name.upper() for f in fields(Traits) if f.default is MISSING and f.name.upper() not in values]
    if missing:
        wanted = "; ".join(f"{name}: {ALLOWED[name]}" for name in missing)
        raise UserError(
            f"{shown}: lacks {', '.join(missing)}; add what is missing at the top level ({wanted}); {GUIDE}"
        )
    _check_functions(tree, symtable(decode_source(source), shown, "exec"), functions, shown)
    traits = Traits(**{name.lower(): value for name, value in values.items()})
    low, high = traits.size_range
    if any(not low <= size <= high for size in traits.sizes or ()):
        raise _refused(shown, lines, "SIZES", traits.sizes)
    if high // traits.granularity * traits.granularity < low:
        raise _refused(shown, lines, "GRANULARITY", traits.granularity)
    return traits


def _refused(shown: str, lines: Mapping[str, int], name: str, value: object) -> UserError:
    place = f"{shown}: line {lines[name]}: {name}"
    return UserError(f"{place}: {shown_value(value)} is not allowed; allowed: {ALLOWED[name]}")


def _source(module: Path, shown: str) -> bytes:
    try:
        return module.read_bytes()
    except OSError as error:
        raise UserError(f"{shown}: cannot be read: {error.strerror}; a workload is a module there ({GUIDE})") from None


def _parse(source: bytes, shown: str) -> ast.Module:
    try:
        tree = ast.parse(source)
        compile(tree, shown, "exec")
        return tree
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise UserError(f"{shown}: {line}not Python that can be parsed ({error.msg}); mend the module") from None
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes before Python 3.12, or nested too deeply
        raise UserError(f"{shown}: not Python that can be parsed ({error}); mend the module") from None


def _check_functions(tree: ast.Module, names: SymbolTable, functions: Mapping[str, str], shown: str) -> None:
    """Raise UserError where a function is defined nowhere at the top level, or takes other arguments."""
    defined = {symbol.get_name() for symbol in names.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    everything = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in tree.body)
    for name, arguments in functions.items():
        if name not in defined and not everything:
            raise UserError(f"{shown}: lacks {name}; add a function {name}({arguments}) at the top level; {GUIDE}")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in functions and not node.decorator_list:
            own, count = node.args, functions[node.name].count(",") + 1
            most = len(own.posonlyargs) + len(own.args)
            unset = any(default is None for default in own.kw_defaults)
            if unset or not most - len(own.defaults) <= count <= (count if own.vararg else most):
                raise UserError(
                    f"{shown}: line {node.lineno}: {node.name}({ast.unparse(own)}) is called with other arguments; "
                    f"allowed: {node.name}({functions[node.name]}), whatever their names"
                )


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
        return isinstance(value, str) and bool(value.strip())
    if name == "DATASET":
        return value is None or isinstance(value, str)
    if name == "GRANULARITY":
        return type(value) is int and value >= 1
    if name == "CLASSES":
        return value is None or (type(value) is int and value >= 2)
    if name == "PROTOCOLS":
        return _is_tuple_of(str, value) and set(value) <= set(PROTOCOLS)
    if name == "VARIANTS":
        return _is_tuple_of(str, value) and all(re.fullmatch(r"\w+", item, re.ASCII) for item in value)
    if name == "SIZE_RANGE":
        return _is_tuple_of(int, value) and len(value) == 2 and 1 <= value[0] <= value[1]
    return value is None or (_is_tuple_of(int, value) and min(value) >= 1)


def _is_tuple_of(kind: type, value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(type(item) is kind for item in value)
