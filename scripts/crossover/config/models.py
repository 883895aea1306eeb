"""The user's models and functions, as named in a study or on a command line, read without running them.

my_net.py:build         a function in a file, relative to the study's file or to the working directory
package.module:build    a function in a module on Python's path
torchvision:resnet18, timm:resnet18, transformers:BertConfig   a model of a library, with random weights

The data of a model may come from a table: a CSV or Parquet file with columns of inputs and targets.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from itertools import chain
from pathlib import Path
from typing import Any

from crossover.errors import UserError, allowed_names, shown_value

LIBRARIES = {"torchvision": "pixels on each side", "timm": "pixels on each side", "transformers": "layers"}
"""Libraries of named models, and what the sizes of their models count."""
MODES = ("train", "infer")

FORMS = "FILE.py:FUNCTION, MODULE:FUNCTION, torchvision:NAME, timm:NAME or transformers:CONFIG"
SIGNATURE = "build(size, batch_size), or fewer of these arguments"
MOST_ARGUMENTS = 2
DEVICE = "device"
FUNCTION_ARGUMENTS = ("batch_size", DEVICE, "variant", "protocol")
"""Arguments that a function with an argument `device` may have besides its size; they are passed by keyword."""
FUNCTION_SIGNATURE = "build(size, device), also with batch_size, variant or protocol"

DEFAULT_BATCH_SIZE = 32
DEFAULT_SIZES = (16, 64, 256, 1024)


@dataclass(frozen=True)
class Table:
    """The user's table of samples, one per row."""

    file: str
    """Absolute path of a CSV or Parquet file."""
    targets: str
    """The column to predict."""
    inputs: tuple[str, ...] = ()
    """The columns to predict from; empty for all except the targets and index columns."""


@dataclass(frozen=True)
class Model:
    """The user's own model, or a plain function."""

    origin: str
    """The file (an absolute path), the module or the library."""
    name: str
    """The function, or the name of the library's model."""
    mode: str = "train"
    size_name: str = "units of size"
    """What the sizes count."""
    names: tuple[str, ...] = ()
    """Names of sizes 1, 2, ...; empty if sizes are numbers."""
    checked: bool = True
    """Whether results are compared with double precision."""
    may_refuse: bool = False
    """Whether a size that the function rejects gives status `unsupported` instead of an error; True for default sizes.
    """
    table: Table | None = None
    """The table with the data, if the function returns only the model."""
    takes: tuple[str, ...] = ()
    """The FUNCTION_ARGUMENTS that a function with an argument `device` has; empty for one that builds a model."""

    @property
    def is_function(self) -> bool:
        return bool(self.takes)

    @property
    def batched(self) -> bool:
        """Whether the step has a batch size."""
        return not self.is_function or "batch_size" in self.takes

    @property
    def file(self) -> Path | None:
        """Path of the file; None for a module on Python's path or a library."""
        return Path(self.origin) if self.origin.endswith(".py") else None

    @property
    def source(self) -> str:
        """Origin and name, as in the config."""
        return f"{self.origin}:{self.name}"

    @property
    def shown(self) -> str:
        """Origin and name for messages, rows and options, with the file relative to the working directory."""
        return f"{os.path.relpath(self.origin)}:{self.name}" if self.file else self.source

    @property
    def title(self) -> str:
        """A short name of word characters."""
        stem = self.file.stem if self.file else self.origin.rpartition(".")[2]
        name = self.name if self.origin in LIBRARIES else stem
        return re.sub(r"\W+", "_", name)

    def argument(self, size: int) -> int | str:
        return self.label(size) or size

    def label(self, size: int) -> str | None:
        """The name of a size; None if sizes are numbers."""
        return self.names[size - 1] if self.names else None


def read_model(text: str, folder: Path, where: str) -> Model:
    """The model that a string names, with relative paths from `folder` or the working directory; raises UserError."""
    origin, colon, name = text.rpartition(":")
    if not colon or not origin or not re.fullmatch(r"[\w.-]+", name):
        raise UserError(f"{where}: {shown_value(text)} names no model; allowed: {FORMS}")
    if not origin.endswith(".py"):
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", origin):
            raise UserError(
                f"{where}: {shown_value(text)}: '{origin}' is neither a .py file nor a module; allowed: {FORMS}"
            )
        if origin in LIBRARIES:
            if PathFinder.find_spec(origin) is None:
                raise UserError(f"{where}: {origin} is not installed; install the version for your torch with pip")
            return Model(origin, name, size_name=LIBRARIES[origin])
        module_file = _module_file(origin)
        return _model_of(origin, name, module_file) if module_file else Model(origin, name)
    file = find_file(origin, [folder, Path()], f"{where}: there is", "the model's file")
    return _model_of(str(file), name, file)


def _model_of(origin: str, name: str, file: Path) -> Model:
    """The model that a function in a file builds, or the function itself if it has an argument `device`."""
    function = find_function(file, name, SIGNATURE, MOST_ARGUMENTS)
    names = [] if function is None else [a.arg for a in [*function.args.args, *function.args.kwonlyargs]]
    takes = tuple(argument for argument in FUNCTION_ARGUMENTS if argument in names)
    if function is None or DEVICE not in takes:
        return Model(origin, name, size_name=_size_name(file, function))
    shown = f"{os.path.relpath(file)}: line {function.lineno}: {name}({ast.unparse(function.args)})"
    if names[0] in FUNCTION_ARGUMENTS:
        raise UserError(f"{shown}: its first argument is not a size; allowed: {FUNCTION_SIGNATURE}")
    optional = names[len(function.args.args) - len(function.args.defaults) :]
    if others := [argument for argument in names[1:] if argument not in (*takes, *optional)]:
        raise UserError(
            f"{shown} needs {', '.join(others)}, which Crossover does not pass; allowed: {FUNCTION_SIGNATURE}"
        )
    return Model(origin, name, "infer", _size_name(file, function), takes=takes)


def _module_file(module: str) -> Path | None:
    """The source file of a module in the working directory or on Python's path, found without importing it."""
    folders = [str(Path.cwd()), *sys.path]
    origin = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return None
        folders, origin = list(spec.submodule_search_locations or ()), spec.origin
    return Path(origin) if origin and origin.endswith(".py") else None


def declared_sizes(model: Model) -> tuple[int, ...] | tuple[str] | None:
    """The sizes that a model declares: SIZES of its file, or its name as the only size; or None. Raises UserError."""
    if model.origin in LIBRARIES:
        return (model.name,)
    file = model.file or _module_file(model.origin)
    if file is None:
        return None
    constant = _constant(file, "SIZES")
    if constant is None:
        function = find_function(file, model.name, SIGNATURE, MOST_ARGUMENTS)
        return (model.title,) if function is not None and not _arguments(function) else None
    shown, sizes = constant
    if not isinstance(sizes, list | tuple) or not sizes or not all(type(size) is int and size > 0 for size in sizes):
        raise UserError(f"{shown}: {shown_value(sizes)} is not allowed; allowed: whole numbers, such as [64, 256]")
    return tuple(sizes)


def _size_name(file: Path, function: ast.FunctionDef | None) -> str:
    """What the sizes count: the file's SIZE_NAME, or else words from the name of the function's first argument."""
    constant = _constant(file, "SIZE_NAME")
    if constant is not None:
        shown, name = constant
        if not isinstance(name, str) or not name.strip():
            raise UserError(f'{shown}: {shown_value(name)} is not allowed; allowed: a string, such as "neurons"')
        return name
    first = next(iter(_arguments(function)), "size") if function is not None else "size"
    first = re.sub(r"^(n|num|number_of)_", "", first).replace("_", " ")
    return first if first.endswith("s") or len(first) == 1 else f"units of {first}"


def _constant(file: Path, name: str) -> tuple[str, Any] | None:
    """Where a constant is assigned, for messages, and its literal value; None if the file does not assign it."""
    for node in parsed(file).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            shown = f"{os.path.relpath(file)}: line {node.lineno}: {name}"
            try:
                return shown, ast.literal_eval(node.value)
            except ValueError:
                raise UserError(f"{shown} is computed, but read without running the file; write a literal") from None
    return None


def find_file(name: str, folders: Sequence[Path], missing: str, wanted: str) -> Path:
    """The file in the first folder that has it; raises UserError, whose message begins with `missing`."""
    paths = dict.fromkeys(os.path.relpath(folder / name) for folder in folders)
    file = next(filter(os.path.isfile, paths), None)
    if file is None:
        raise UserError(f"{missing} no file {' or '.join(paths)}; give {wanted}")
    return Path(file).resolve()


def _arguments(function: ast.FunctionDef) -> Sequence[str]:
    """The names of the arguments that take the size and the batch size."""
    return _positional(function.args)[:MOST_ARGUMENTS] or ["size"] * bool(function.args.vararg)


def _positional(arguments: ast.arguments) -> list[str]:
    return [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]


def find_function(file: Path, name: str, signature: str, most: int) -> ast.FunctionDef | None:
    """The definition of a function in a file; None if the name is bound otherwise, such as by an import.

    Raises UserError if the name is missing, or if a function without decorators needs more than `most` arguments.
    """
    tree, shown = parsed(file), os.path.relpath(file)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        bound = set(chain.from_iterable(map(_binds, ast.walk(tree))))  # including definitions within `if` and `try`
        if name in bound or "*" in bound:
            return None
        hint = allowed_names(name, sorted(functions)) if functions else f"add one: {signature}"
        raise UserError(f"{shown}: there is no function {name}; {hint}")
    function = functions[name]
    arguments = function.args
    names = _positional(arguments)
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    only_by_name = {keyword.arg for keyword, default in keywords if default is None}
    by_name = FUNCTION_ARGUMENTS if DEVICE in {*names, *only_by_name} else ()
    needed = [argument for argument in names[: len(names) - len(arguments.defaults)] if argument not in by_name]
    if not function.decorator_list and (len(needed) > most or not only_by_name <= {*by_name}):
        raise UserError(
            f"{shown}: line {function.lineno}: {name}({ast.unparse(arguments)}) needs arguments that Crossover does "
            f"not pass; allowed: {signature}"
        )
    return function


def _binds(node: ast.AST) -> list[str]:
    if isinstance(node, ast.alias):
        return [node.asname or node.name]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a Python file; raises UserError."""
    shown = os.path.relpath(file)
    try:
        return ast.parse(file.read_bytes())
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise UserError(f"{shown}: {line}not valid Python ({error.msg}); fix the file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{shown}: cannot be read ({error}); give a Python file") from None
