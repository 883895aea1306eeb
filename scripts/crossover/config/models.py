"""The user's models and functions, as named in a study or on a command line, read without running them.

my_net.py:build         a function or class in a file, relative to the study's file or to the working directory
package.module:build    a function in a module on Python's path
torchvision:resnet18, timm:resnet18, transformers:BertConfig   a model of a library, with random weights

The data of a model may come from a table: a CSV or Parquet file with columns of inputs and targets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import PathFinder
from pathlib import Path

from crossover.config.signatures import (
    BATCH_NAMES,
    DEVICE,
    FUNCTION_ARGUMENTS,
    Arguments,
    find_definition,
    missing_text,
)
from crossover.config.source_names import constants, module_file
from crossover.errors import UserError, shown_value
from crossover.files import relative_path
from crossover.text import UNITS_OF

LIBRARIES = {"torchvision": "pixels on each side", "timm": "pixels on each side", "transformers": "layers"}
"""Libraries of named models, and what the sizes of their models count."""
MODES = ("train", "infer")

FORMS = "FILE.py:FUNCTION, MODULE:FUNCTION, torchvision:NAME, timm:NAME or transformers:CONFIG"
DEFAULT_BATCH_SIZE = 32
DEFAULT_SIZES = (16, 64, 256, 1024)
DEFAULT_BATCH_SIZES = (1, 8, 64, 512)
"""Batch sizes of a model whose only axis is the batch size."""


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
    size_name: str = f"{UNITS_OF}size"
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
    axes: tuple[str, ...] = ()
    """The arguments of a function that take its two sizes, if the study names them with `axes`."""
    signature: str = field(default="", compare=False)
    """The function with its arguments, for messages; empty if these are only known once the file is imported."""
    passed: tuple[str, ...] = field(default=("size", "batch_size"), compare=False)
    """Those of size and batch size that an argument takes, in the order of the arguments."""
    uses_size: bool = field(default=True, compare=False)
    """False if the function never reads its argument for the size, or one of `axes`."""
    makes_only_model: bool = field(default=False, compare=False)
    """Whether it is a class of models, which needs `table` for its batches."""
    own_batch: int | None = field(default=None, compare=False)
    """The rows of the batch that the function builds, if they are known and the same at each size."""

    @property
    def is_function(self) -> bool:
        return bool(self.takes)

    @property
    def is_sized(self) -> bool:
        """Whether an argument takes the size."""
        return "size" in self.passed

    @property
    def takes_batch_size(self) -> bool:
        """Whether an argument takes the batch size."""
        return "batch_size" in self.passed

    @property
    def batched(self) -> bool:
        """Whether the step has a batch size."""
        return not self.is_function or "batch_size" in self.takes

    @property
    def batch_name(self) -> str | None:
        """What the second size counts, in place of the samples of a batch; None for a batch size."""
        return _words_of(self.axes[1]) if self.axes and self.axes[1] not in BATCH_NAMES else None

    @property
    def file(self) -> Path | None:
        """Path of the file; None for a module on Python's path or a library."""
        return Path(self.origin) if self.origin.endswith(".py") else None

    @property
    def folders(self) -> list[Path]:
        """Folders from which the file imports: that of the file itself, as in a script, and that of a link to it."""
        return list(dict.fromkeys([self.file.resolve().parent, self.file.parent])) if self.file else []

    @property
    def source(self) -> str:
        """Origin and name, as in the config."""
        return f"{self.origin}:{self.name}"

    @property
    def shown(self) -> str:
        """Origin and name for messages, rows and options, with the file relative to the working directory."""
        return f"{relative_path(self.origin)}:{self.name}" if self.file else self.source

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


def read_model(text: str, folder: Path, where: str, axes: tuple[str, ...] = ()) -> Model:
    """The model that a string names, with relative paths from `folder` or the working directory; raises UserError.

    `axes` are the arguments for its two sizes, if it is a function for which a study names them.
    """
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
        source = module_file(origin)
        return _model_of(origin, name, source, axes) if source else Model(origin, name)
    file = find_file(origin, [folder, Path()], f"{where}: there is", "the model's file")
    return _model_of(str(file), name, file, axes)


def _model_of(origin: str, name: str, file: Path, axes: tuple[str, ...]) -> Model:
    """The model that a function in a file builds, or the function itself if it has an argument `device`."""
    definition = find_definition(file, name)
    if definition is None:
        return Model(origin, name, size_name=_size_name(file, None))
    makes_models = definition.makes_models
    arguments = Arguments.of_signature(definition.signature, False if makes_models else None, axes)
    given = [axis for axis in arguments.of if axis != "batch_size" or arguments.of[axis] in BATCH_NAMES]
    takes = tuple(axis for axis in FUNCTION_ARGUMENTS if axis in given) if DEVICE in given else ()
    is_users = "site-packages" not in definition.file.parts
    where = f"{relative_path(definition.file)}: line {definition.line}" if is_users else relative_path(file)
    if definition.is_exact and arguments.missing:
        raise UserError(f"{where}: {missing_text(name, definition.signature, arguments, is_users)}")
    model = Model(
        origin,
        name,
        "infer" if takes else "train",
        _size_name(file, arguments),
        takes=takes,
        axes=axes,
        makes_only_model=makes_models,
    )
    if not definition.is_exact:
        return model
    return replace(
        model,
        signature=f"{name}{definition.signature}",
        passed=arguments.passed(definition.signature),
        uses_size=not {*(axes or [arguments.of.get("size")])} & definition.unused,
        own_batch=definition.own_batch,
    )


def declared_sizes(model: Model) -> tuple[int, ...] | tuple[str] | None:
    """The sizes that a model declares: SIZES of its file, or its name as the only size; or None. Raises UserError."""
    if model.origin in LIBRARIES:
        return (model.name,)
    if not model.is_sized:
        return (model.title,)
    file = model.file or module_file(model.origin)
    constant = None if file is None else constants(file, ("SIZES",)).get("SIZES")
    if constant is None:
        return None
    shown, sizes = constant
    if not isinstance(sizes, list | tuple) or not sizes or not all(type(size) is int and size > 0 for size in sizes):
        raise UserError(f"{shown}: {shown_value(sizes)} is not allowed; allowed: whole numbers, such as [64, 256]")
    return tuple(sizes)


UNITS_OF_TABLES = ("s", "B")
"""Names that would make a size a time or an amount of memory."""


def _size_name(file: Path, arguments: Arguments | None) -> str:
    """What the sizes count: the file's SIZE_NAME, or else words from the name of the argument for the size."""
    constant = constants(file, ("SIZE_NAME",)).get("SIZE_NAME")
    if constant is not None:
        shown, name = constant
        if not isinstance(name, str) or not name.strip():
            raise UserError(f'{shown}: {shown_value(name)} is not allowed; allowed: a string, such as "neurons"')
        return name
    return _words_of("size" if arguments is None else arguments.of.get("size", "size"))


def _words_of(argument: str) -> str:
    """What a size counts, from the name of its argument: 'experts' from `n_experts`, 'units of width', 'n'."""
    size = re.sub(r"^(n|num|number_of)_", "", argument).replace("_", " ")
    is_name = size.endswith("s") or len(size) == 1
    return size if is_name and size not in UNITS_OF_TABLES else f"{UNITS_OF}{size}"


def find_file(name: str, folders: Sequence[Path], missing: str, wanted: str) -> Path:
    """The file in the first folder that has it; raises UserError, whose message begins with `missing`."""
    paths = [folder / name for folder in folders]
    file = next(filter(os.path.isfile, paths), None)
    if file is None:
        raise UserError(f"{missing} no file {' or '.join(dict.fromkeys(map(relative_path, paths)))}; give {wanted}")
    # Not the file that a link leads to, which has another `__file__`.
    return Path(os.path.normpath(file.absolute()))
