"""The user's own code: the module that holds the function, the function, and where an error in it comes from.

Modules are found in this order: Python's own, those beside the user's file and in the working folder, this library's,
installed ones. So a `queue.py` of the user's disturbs nobody, and a copy of a package beside the model is preferred.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from crossover.config.models import LIBRARIES, SIGNATURE, Model
from crossover.errors import ASSERTED, ASSERTION, SHARED_MEMORY, UserError, allowed_names
from crossover.machine.code_key import LIBRARY
from crossover.measurement.library_models import BUILDERS
from crossover.measurement.step.conditions import changes, read_switches

PYTHONS = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
"""Folders of Python's own modules."""

FOLDERS: list[Path] = []
"""Where the user's modules are looked for."""

GUARD = 'put what a script does under `if __name__ == "__main__":`'

SETTERS = {
    "fp32_precision": "allow_tf32|matmul_precision|fp32_precision",
    "threads": "set_num_threads",
    "anomaly_detection": "anomaly",
}
"""What a line holds that sets a switch, where that is not the switch's name."""

WORKERS = "in DataLoader worker process"
"""What the first line of an error of a loader's process holds; its traceback there follows as text."""
WORKERS_LINES = re.compile(r'^  File "(.+)", line (\d+)', re.MULTILINE)


def cause_of(error: BaseException) -> str:
    """The first line of what an error says, and what to do about it where that is known."""
    text = _said_by_worker(error) if WORKERS in str(error) else str(error).strip().partition("\n")[0]
    return "; ".join(filter(None, [text, _remedy(error)]))


def _said_by_worker(error: BaseException) -> str:
    """What the error said that a process of a DataLoader passes on, which is the end of its text."""
    said = str(error).strip().splitlines()[-1]
    kind, _, text = said.partition(":")
    return text.strip() if kind.rpartition(".")[2] == type(error).__name__ else said


def place_of(error: BaseException, model: Model) -> str:
    """The last line of the user's own file that an error passed through, or of a file beside it."""
    file = model.file or Path(getattr(sys.modules.get(model.place), "__file__", None) or model.place)
    lines = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append((Path(error.filename), error.lineno))
    if WORKERS in str(error):
        lines += [(Path(name), int(number)) for name, number in WORKERS_LINES.findall(str(error))]
    own = [line for line in lines if line[0] == file] or [line for line in lines if _is_users(line[0])]
    return f"{os.path.relpath(own[-1][0])}: line {own[-1][1]}" if own else model.shown


def _is_users(file: Path) -> bool:
    below = any(map(file.is_relative_to, FOLDERS))
    return below and not file.is_relative_to(LIBRARY) and "site-packages" not in file.parts


def _remedy(error: BaseException) -> str | None:
    """What to do about an error, if it is one that imports and scripts end in."""
    if isinstance(error, EOFError) or type(error).__name__ == "BdbQuit":
        return "nobody can answer here: take input() and breakpoint() out"
    if ASSERTED in str(error):
        return ASSERTION
    if SHARED_MEMORY.search(str(error)):
        return "enlarge /dev/shm, or take num_workers=0"
    if isinstance(error, SystemExit):
        return f"there are no options here, and it must not end the program: {GUARD}"
    if isinstance(error, AttributeError):
        return _shadowed(error.obj.__name__) if isinstance(error.obj, ModuleType) else None
    if not isinstance(error, ImportError):
        return None
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _shadowed(error.name) or _missing(error.name)
    if (error.path or "").endswith((".so", ".pyd")):
        return "it is compiled for another Python or torch: install it anew"
    return _shadowed(error.name) if error.name else None


def _shadowed(name: str) -> str | None:
    """Which file of the user's is not the module of its name, which is Python's or an installed one."""
    top = name.partition(".")[0]
    origin = getattr(sys.modules.get(top), "__file__", None)
    for folder in FOLDERS:
        for file in (folder / f"{top}.py", folder / top / "__init__.py"):
            if file.is_file() and (origin is None or not file.samefile(origin)):
                whose = "Python" if top in sys.stdlib_module_names else "an installed package"
                return f"{os.path.relpath(file)} is hidden by the module {top} of {whose}: rename it"
    return None


def _missing(name: str) -> str:
    """What to do about a module that is not found: it may lie in a folder above the user's."""
    top = name.partition(".")[0]
    for folder in dict.fromkeys(above for one in FOLDERS for above in one.parents):
        if (folder / f"{top}.py").is_file() or any((folder / top).glob("*.py")):
            return f"{top} lies in {folder}: run there, or put that folder into PYTHONPATH"
    return f"install {top} for {sys.executable}"


def _as_module(error: BaseException, model: Model) -> str:
    """How to name a file whose relative imports fail: as a module of its package; empty for another error."""
    if model.file is None or "attempted relative import" not in str(error):
        return ""
    file = model.file
    package = file.parent
    while (package.parent / "__init__.py").is_file():
        package = package.parent
    parts = file.relative_to(package.parent).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    where = "" if package.parent == Path.cwd() else f" from the folder {package.parent}"
    return f"; name it as a module of its package: {module}:{model.name}{where}"


@cache
def function_of(model: Model) -> Callable[[int | str, int], Any]:
    """The user's function, called with as many of size and batch size as it takes."""
    if model.place in LIBRARIES:
        return lambda size, batch_size: BUILDERS[model.place](model, size, batch_size)
    function = _named(model)
    count = _arguments(function)

    def call(*arguments: Any) -> Any:
        with _as_a_library(model):
            return function(*arguments[:count])

    return call


def takes_batch_size(model: Model) -> bool:
    """Whether the function is called with the batch size, or the samples are the table's."""
    return model.place in LIBRARIES or model.table is not None or _arguments(_named(model)) > 1


def _named(model: Model) -> Callable[..., Any]:
    """The user's function; raises UserError if the module has none of that name."""
    module = _module(model)
    if not hasattr(module, model.name):
        known = sorted(name for name, value in vars(module).items() if callable(value) and not name.startswith("_"))
        remedy = _shadowed(module.__name__) or (allowed_names(model.name, known) if known else f"add one: {SIGNATURE}")
        raise UserError(f"{model.shown}: the module has no function {model.name}; {remedy}")
    function: Any = getattr(module, model.name)
    if isinstance(function, nn.Module):
        raise UserError(f"{model.shown} is a model; allowed: a function that builds one, {SIGNATURE}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UserError(f"{model.shown} is an async function; allowed: a plain one, {SIGNATURE}")
    if inspect.isgeneratorfunction(function):
        raise UserError(f"{model.shown} is a generator, since it has a yield; allowed: a plain function, {SIGNATURE}")
    if not callable(function):
        raise UserError(f"{model.shown} is a {type(function).__name__}; allowed: a function, {SIGNATURE}")
    return function  # type: ignore[no-any-return]


def _arguments(function: Callable[..., Any]) -> int:
    """How many of size and batch size a function is called with."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a compiled function may not say
        return 2
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    return min(len(positional(function)), 2)


def positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The arguments that a function takes by their places."""
    parameters = inspect.signature(function).parameters.values()
    return [argument for argument in parameters if argument.kind <= argument.POSITIONAL_OR_KEYWORD]


@cache
def _module(model: Model) -> ModuleType:
    """The user's module; raises UserError if its import fails or sets a switch.

    Torch's default type may be set: it is held for the user's code alone (`own_model`).
    """
    find_beside(*([model.file.parent] if model.file else []), Path.cwd())
    before = {name: value for name, value in read_switches().items() if name != "default_dtype"}
    try:
        with _as_a_library(model):
            module = importlib.import_module(model.place) if model.file is None else _of_file(model.file)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        text = f"{place_of(error, model)}: the import fails: {type(error).__name__}: {cause_of(error)}"
        raise UserError(text + _as_module(error, model)) from error
    if (reason := changes(before, now := read_switches())) is not None:
        raise UserError(f"{_line_that_sets(module, before, now, model)}: the import sets a switch: {reason}")
    return module


def _of_file(file: Path) -> ModuleType:
    """A file's module, under its own name unless that is another module's."""
    taken = file.stem in sys.stdlib_module_names or file.stem in sys.modules
    spec = importlib.util.spec_from_file_location(f"{file.stem}_of_the_model" if taken else file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that classes of it can be pickled, as loaders' workers need
    spec.loader.exec_module(module)
    return module


def find_beside(*folders: Path) -> None:
    """Have modules in these folders found after Python's own and before installed ones."""
    FOLDERS[:] = dict.fromkeys(folders)
    own = [*map(str, FOLDERS), str(LIBRARY)]
    others = [entry for entry in sys.path if entry not in own]
    pythons = [place for place, entry in enumerate(others, 1) if _is_pythons(Path(entry))]
    after = max(pythons, default=0)
    sys.path[:] = [*others[:after], *own, *others[after:]]


def _is_pythons(folder: Path) -> bool:
    return folder in PYTHONS or (folder.name == "lib-dynload" and folder.parent in PYTHONS)


@contextmanager
def _as_a_library(model: Model) -> Iterator[None]:
    """Run the user's code without a command line, and leave warnings as warnings.

    A parser of options would else read those of the measuring process, and print a usage.
    """

    def refuse(parser: argparse.ArgumentParser, message: str) -> None:
        del parser
        raise SystemExit(f"argparse: {message}")

    sys.argv[:] = [model.place]
    error, argparse.ArgumentParser.error = argparse.ArgumentParser.error, refuse  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        argparse.ArgumentParser.error = error  # type: ignore[method-assign]
    warnings.filters[:] = [entry for entry in warnings.filters if entry[0] != "error"]  # type: ignore[index]


def _line_that_sets(module: ModuleType, before: Mapping[str, Any], now: Mapping[str, Any], model: Model) -> str:
    """The first line of a module that sets a switch, as far as its text shows it."""
    names = [name.rpartition(".")[2] for name in before if before[name] != now[name]]
    setter = re.compile("|".join(SETTERS.get(name, name) for name in names))
    file = Path(module.__file__ or "")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    number = next((number for number, line in enumerate(lines, 1) if setter.search(line)), None)
    return f"{os.path.relpath(file)}: line {number}" if number else model.shown
