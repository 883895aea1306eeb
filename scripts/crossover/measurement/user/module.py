"""The user's code: import its module, call the function that builds the model, and locate errors in it.

Imports are searched for in this order: Python's standard library, the folder of the user's file, the working directory,
Crossover's own folder, installed packages. A user's `queue.py` therefore shadows no module of Python, and a copy of a
package beside the user's file is preferred to the installed one.
"""

from __future__ import annotations

import argparse
import dis
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from crossover.config.models import LIBRARIES, Model
from crossover.config.signatures import SIGNATURE, WITHOUT_BATCH, Arguments, missing_text
from crossover.errors import ASSERTED, ASSERTION, SHARED_MEMORY_ADVICE, SHARED_MEMORY_FULL, UserError, allowed_names
from crossover.files import relative_path, working_folder
from crossover.home import PACKAGE
from crossover.machine.installed import STANDARD_LIBRARY
from crossover.measurement.step.conditions import changes, read_switches, restore_unset
from crossover.measurement.user.captured import codes_of
from crossover.measurement.user.libraries import BUILDERS
from crossover.measurement.user.loss import kind_of

FOLDERS: list[Path] = []
"""The folder of the user's file, if the model comes from a file, and the working directory."""

GUARD = 'put script code under `if __name__ == "__main__":`'

MEMORIES = (dict, list, set, deque, bytearray, np.ndarray, torch.Tensor, Iterator, type(cache(len)))
"""Types of objects that may keep data or results between calls; the last is that of a function with a cache."""

STATELESS = (ModuleType, staticmethod, classmethod, type(annotations))
"""Types of objects that have attributes, but keep nothing in them."""

WITHOUT_GPU = re.compile("not compiled with CUDA|Found no NVIDIA driver|No CUDA GPUs are available")
"""Torch's messages for the use of a GPU where there is none."""

WORKER = "in DataLoader worker process"
"""Text in the message of an error from a DataLoader's worker, which also contains the worker's traceback."""
WORKER_LINES = re.compile(r'^  File "(.+)", line (\d+)', re.MULTILINE)


def cause_of(error: BaseException) -> str:
    """An error's message in one line, with the remedy if it is known."""
    lines = str(error).strip().splitlines() or [""]
    text = lines[0]
    if WORKER in str(error):  # the message follows the worker's traceback
        kind, _, message = lines[-1].partition(":")
        text = message.strip() if kind.rpartition(".")[2] == type(error).__name__ else lines[-1]
    return "; ".join(filter(None, [text, _remedy(error)]))


def location_of(error: BaseException, model: Model) -> str:
    """Where an error occurred: the last line in the model's file, else in another user file, else the model's name."""
    file = model.file or Path(getattr(sys.modules.get(model.origin), "__file__", None) or model.origin)
    lines = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append((Path(error.filename), error.lineno))
    if WORKER in str(error):
        lines += [(Path(name), int(number)) for name, number in WORKER_LINES.findall(str(error))]
    user_lines = [line for line in lines if line[0] == file] or [line for line in lines if _is_users_file(line[0])]
    return f"{relative_path(user_lines[-1][0])}: line {user_lines[-1][1]}" if user_lines else model.shown


def is_of_user(error: BaseException) -> bool:
    """True if the user's code itself raised an error, rather than code that it calls."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and _is_users_file(Path(frames[-1].filename))


def _is_users_file(file: Path) -> bool:
    is_below = any(map(file.is_relative_to, FOLDERS))
    return is_below and not file.is_relative_to(PACKAGE) and "site-packages" not in file.parts


def _remedy(error: BaseException) -> str | None:
    if isinstance(error, EOFError) or type(error).__name__ == "BdbQuit":
        return "there is no terminal: remove input() and breakpoint()"
    if WITHOUT_GPU.search(str(error)):
        return "build on the CPU; Crossover moves the model to each device, and a function gets it as argument `device`"
    if ASSERTED in str(error):
        return ASSERTION
    if SHARED_MEMORY_FULL.search(str(error)):
        return SHARED_MEMORY_ADVICE
    if isinstance(error, SystemExit):
        return f"no command-line options are available, and the file must not end the program: {GUARD}"
    if isinstance(error, AttributeError):
        return _shadowed(error.obj.__name__) if isinstance(error.obj, ModuleType) else None
    if not isinstance(error, ImportError) or not error.name:
        return None
    return _shadowed(error.name) or (_missing(error.name) if isinstance(error, ModuleNotFoundError) else None)


def _shadowed(name: str) -> str | None:
    """The remedy if another module was imported instead of a user's file of the same name; otherwise None."""
    top = name.partition(".")[0]
    origin = getattr(sys.modules.get(top), "__file__", None)
    for folder in FOLDERS:
        for file in (folder / f"{top}.py", folder / top / "__init__.py"):
            if file.is_file() and (origin is None or not file.samefile(origin)):
                owner = "Python" if top in sys.stdlib_module_names else "an installed package"
                return f"{relative_path(file)} is hidden by the module {top} of {owner}: rename it"
    return None


def _missing(name: str) -> str:
    top = name.partition(".")[0]
    for folder in dict.fromkeys(chain.from_iterable(path.parents for path in FOLDERS)):
        if (folder / f"{top}.py").is_file() or any((folder / top).glob("*.py")):
            return f"{top} is in {folder}: run there, or put that folder into PYTHONPATH"
    return f"install {top} for {sys.executable}"


def _advice_on_package(error: BaseException, model: Model) -> str:
    """Advice to name a file as a module of its package, for a failed relative import; empty for other errors."""
    if model.file is None or "attempted relative import" not in str(error):
        return ""
    file = model.file
    package = file.parent
    while (package.parent / "__init__.py").is_file():
        package = package.parent
    parts = file.relative_to(package.parent).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    where = "" if package.parent == working_folder() else f" from the folder {package.parent}"
    return f"; name it as a module of its package: {module}:{model.name}{where}"


@cache
def function_of(model: Model) -> Callable[[int | str, int], Any]:
    """Import the user's module, and return a function of size and batch size that calls the user's function.

    The user's function gets those of the two that it takes. For a library's model, its builder is called.
    """
    if model.origin in LIBRARIES:
        return partial(BUILDERS[model.origin], model)
    _named(model)
    return lambda size, batch_size: call_function(model, size, batch_size=batch_size)


def call_function(model: Model, size: int | str, **axes: Any) -> Any:
    """Call a user's function with its size and those of `axes` that it takes."""
    function = _named(model)
    given, by_name = _arguments(function, model, {"size": size, **axes})
    with _as_a_library(model):
        return function(*given, **by_name)


def _arguments(
    function: Callable[..., Any], model: Model, values: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments with which to call a model's function."""
    signature = _signature(function)
    if signature is None:
        return (values["size"], values["batch_size"]), {}
    return Arguments.of_signature(signature, model.is_function, model.axes).bound(signature, values)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function; None for a compiled function without one."""
    if _makes_models(function) and vars(nn.Module)["__init__"] is getattr(function, "__init__", None):
        return inspect.Signature()  # torch's own has *args, but takes none
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _makes_models(function: Callable[..., Any]) -> bool:
    return isinstance(function, type) and issubclass(function, nn.Module)


def _named(model: Model) -> Callable[..., Any]:
    module = _module(model)
    if not hasattr(module, model.name):
        names = sorted(name for name, value in vars(module).items() if callable(value) and not name.startswith("_"))
        remedy = _shadowed(module.__name__) or (allowed_names(model.name, names) if names else f"add one: {SIGNATURE}")
        raise UserError(f"{model.shown}: the module has no function {model.name}; {remedy}")
    function: Callable[..., Any] = getattr(module, model.name)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UserError(f"{model.shown} is an async function; allowed: a plain one, {SIGNATURE}")
    if inspect.isgeneratorfunction(function):
        raise UserError(f"{model.shown} is a generator, since it has a yield; allowed: a plain function, {SIGNATURE}")
    if not callable(function) or isinstance(function, nn.Module):
        raise UserError(f"{model.shown} is {kind_of(function)}; allowed: a function, {SIGNATURE}")
    if _makes_models(function) and model.table is None:
        raise UserError(f"{model.shown} {WITHOUT_BATCH}")
    if (signature := _signature(function)) is not None:
        arguments = Arguments.of_signature(signature, model.is_function, model.axes)
        if arguments.missing:
            raise UserError(f"{model.shown}: {missing_text(model.name, signature, arguments)}")
    return function


def positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The arguments of a function that can be passed by position, without `*args`."""
    parameters = inspect.signature(function).parameters.values()
    return [argument for argument in parameters if argument.kind <= argument.POSITIONAL_OR_KEYWORD]


@cache
def _module(model: Model) -> ModuleType:
    """Import the user's module; raises UserError if the import fails or changes a setting of torch.

    Changes of the default dtype are allowed; `model.py` handles them.
    """
    search_in(*model.folders, working_folder())
    before = {name: value for name, value in read_switches().items() if name != "default_dtype"}
    try:
        with _as_a_library(model):
            module = importlib.import_module(model.origin) if model.file is None else _import_file(model.file)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        text = f"{location_of(error, model)}: the import fails: {type(error).__name__}: {cause_of(error)}"
        raise UserError(text + _advice_on_package(error, model)) from error
    restore_unset(before)
    if (reason := changes(before, read_switches())) is not None:
        raise UserError(f"{model.shown}: the import changes a setting: {reason}")
    return module


@contextmanager
def imported_anew() -> Iterator[None]:
    """Import the user's own modules again in the block, so that their caches and other globals are as at the start.

    As at first, `function_of` imports them, before a function is called with the generators seeded.
    """
    own = {name: module for name, module in sys.modules.items() if _is_users_module(module)}
    for name in own:
        del sys.modules[name]
    _forget_imports()
    try:
        yield
    finally:
        for name in [name for name, module in sys.modules.items() if _is_users_module(module)]:
            del sys.modules[name]
        sys.modules.update(own)
        _forget_imports()


def _forget_imports() -> None:
    _module.cache_clear()
    function_of.cache_clear()


def keeps_state() -> bool:
    """True if a global of the user's modules, or an attribute or a default, may remember something between calls."""
    modules = [module for module in sys.modules.values() if _is_users_module(module)]
    own = {module.__name__ for module in modules}
    return any(_may_remember(value, own) for module in modules for value in _named_in(module))


def _may_remember(value: Any, own: set[str]) -> bool:
    """True if an object may change; functions and classes count only if their module is in `own`."""
    if isinstance(value, FunctionType):
        defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        changes = bool(_named_in(value)) or _assigns_globals(value.__code__)
        return value.__module__ in own and (changes or any(isinstance(default, MEMORIES) for default in defaults))
    if isinstance(value, type):
        parts = [part for part in _named_in(value) if not isinstance(part, type)]
        return value.__module__ in own and any(_may_remember(part, own) for part in parts)
    return isinstance(value, MEMORIES) or (hasattr(value, "__dict__") and not isinstance(value, STATELESS))


def _named_in(value: Any) -> list[Any]:
    return [part for name, part in vars(value).items() if not name.startswith("__")]


def _assigns_globals(code: CodeType) -> bool:
    return any(
        instruction.opname == "STORE_GLOBAL" for each in codes_of(code) for instruction in dis.get_instructions(each)
    )


def _is_users_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and module.__name__ != "__main__" and _is_users_file(Path(file))


def _import_file(file: Path) -> ModuleType:
    is_taken = file.stem in sys.stdlib_module_names or file.stem in sys.modules
    spec = importlib.util.spec_from_file_location(f"{file.stem}_of_the_model" if is_taken else file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for pickling its classes, as a data loader's workers do
    spec.loader.exec_module(module)
    return module


def search_in(*folders: Path) -> None:
    """Insert these folders into `sys.path` after the standard library and before installed packages."""
    FOLDERS[:] = dict.fromkeys(folders)
    inserted = [*map(str, FOLDERS), str(PACKAGE.parent)]
    others = [entry for entry in sys.path if entry not in inserted]
    after = max((index for index, entry in enumerate(others, 1) if _is_standard(Path(entry))), default=0)
    sys.path[:] = [*others[:after], *inserted, *others[after:]]


def _is_standard(folder: Path) -> bool:
    return folder in STANDARD_LIBRARY or (folder.name == "lib-dynload" and folder.parent in STANDARD_LIBRARY)


@contextmanager
def _as_a_library(model: Model) -> Iterator[None]:
    """Run the user's code without command-line options, and remove its filters that turn warnings into errors."""

    def refuse(parser: argparse.ArgumentParser, message: str) -> None:
        del parser
        raise SystemExit(f"argparse: {message}")

    sys.argv[:] = [model.origin]
    parser_type: Any = argparse.ArgumentParser
    error, parser_type.error = parser_type.error, refuse
    try:
        yield
    finally:
        parser_type.error = error
    filters: Any = warnings.filters  # for mypy, a sequence that cannot be changed
    filters[:] = [entry for entry in filters if entry[0] != "error"]
