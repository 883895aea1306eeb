"""Models of a user's own, as a study or a command line names them, read without running them.

my_net.py:build         a function of a file, relative to the study's file or to the working directory
package.module:build    a function of a module on Python's path
torchvision:resnet18, timm:resnet18, transformers:BertConfig   a model of a library, with random weights
"""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from pathlib import Path

from crossover.errors import UserError, allowed_names, shown_value

LIBRARIES = ("torchvision", "timm", "transformers")
"""Packages whose models have names of their own."""
MODES = ("train", "infer")

FORMS = "FILE.py:FUNCTION, MODULE:FUNCTION, torchvision:NAME, timm:NAME or transformers:CONFIG"
SIGNATURE = "build(size, batch_size), or fewer of these arguments"
MOST_ARGUMENTS = 2

DEFAULT_SIZES = (16, 64, 256, 1024)
"""Sizes of a model whose user names none."""


@dataclass(frozen=True)
class Model:
    """A model of a user's own."""

    place: str
    """The file (an absolute path), the module or the library."""
    name: str
    """The function, or the library's model."""
    mode: str = "train"
    names: tuple[str, ...] = ()
    """What sizes 1, 2, ... stand for, where sizes are names."""
    checked: bool = True
    """Whether its answers are compared with double precision."""

    @property
    def file(self) -> Path | None:
        """Its file; None for a module on Python's path and for a library."""
        return Path(self.place) if self.place.endswith(".py") else None

    @property
    def source(self) -> str:
        """It as a command line names it."""
        return f"{self.place}:{self.name}"

    @property
    def title(self) -> str:
        """A short name, as a study's file may be called."""
        stem = self.file.stem if self.file else self.place.rpartition(".")[2]
        name = self.name if self.place in LIBRARIES else stem
        return re.sub(r"\W+", "_", name)

    def argument(self, size: int) -> int | str:
        """What the function is called with at a size."""
        return self.names[size - 1] if self.names else size


def read_model(text: str, folder: Path, where: str) -> Model:
    """The model that a text names; a relative file is looked for in `folder`, then in the working directory.

    Raises UserError, which begins with `where`, if the text has no such form, or if a file does not define a function
    that can be called.
    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not re.fullmatch(r"[\w.-]+", name):
        raise UserError(f"{where}: {shown_value(text)} names no model; allowed: {FORMS}")
    if not place.endswith(".py"):
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", place):
            raise UserError(
                f"{where}: {shown_value(text)}: '{place}' is neither a file .py nor a module; allowed: {FORMS}"
            )
        return Model(place, name)
    tried = dict.fromkeys([(folder / place).absolute(), Path.cwd() / place])
    file = next((path for path in tried if path.is_file()), None)
    if file is None:
        raise UserError(f"{where}: there is no file {' or '.join(map(os.path.relpath, tried))}; give the model's file")
    _function(file, name)
    return Model(str(file.resolve()), name)


def named_sizes(model: Model) -> tuple[int, ...]:
    """The sizes that a model's file states as SIZES; else DEFAULT_SIZES, or 1 if its function takes no size."""
    if model.file is None:
        return (1,)
    if not model.file.is_file():
        return DEFAULT_SIZES
    tree = _parsed(model.file)
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "SIZES" for t in node.targets):
            shown = f"{os.path.relpath(model.file)}: line {node.lineno}: SIZES"
            try:
                sizes = ast.literal_eval(node.value)
            except ValueError:
                raise UserError(f"{shown} is computed, but it is read without running the file; write it out") from None
            if not isinstance(sizes, list | tuple) or not all(type(size) is int and size > 0 for size in sizes):
                raise UserError(f"{shown}: {shown_value(sizes)} is not allowed; allowed: whole numbers, as [64, 256]")
            return tuple(sizes)
    function = _function(model.file, model.name)
    return (1,) if function is not None and most_arguments(function) == 0 else DEFAULT_SIZES


def most_arguments(function: ast.FunctionDef) -> int:
    """With how many arguments a function may be called, at most as many as MOST_ARGUMENTS."""
    own = function.args
    return MOST_ARGUMENTS if own.vararg else min(len(own.posonlyargs) + len(own.args), MOST_ARGUMENTS)


def _function(file: Path, name: str) -> ast.FunctionDef | None:
    """A file's function; None if the name is made otherwise. Raises UserError if it cannot be called as it must."""
    tree, shown = _parsed(file), os.path.relpath(file)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    others = (
        {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        | {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        | {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    )
    if name not in functions:
        if name in others or "*" in others:
            return None
        known = sorted(functions)
        raise UserError(
            f"{shown}: there is no function {name}; "
            + (allowed_names(name, known) if known else f"add one: {SIGNATURE}")
        )
    function = functions[name]
    own = function.args
    needed = len(own.posonlyargs) + len(own.args) - len(own.defaults)
    if not function.decorator_list and (needed > MOST_ARGUMENTS or None in own.kw_defaults):
        raise UserError(
            f"{shown}: line {function.lineno}: {name}({ast.unparse(own)}) needs other arguments than it is given; "
            f"allowed: {SIGNATURE}"
        )
    return function


def _parsed(file: Path) -> ast.Module:
    shown = os.path.relpath(file)
    try:
        return ast.parse(file.read_bytes())
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise UserError(f"{shown}: {line}not valid Python ({error.msg}); mend the file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{shown}: cannot be read ({error}); give a Python file") from None
