"""The user's own code: the module that holds the function, the function, and where an error in it comes from."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from crossover.config.models import LIBRARIES, SIGNATURE, Model
from crossover.errors import UserError
from crossover.measurement.library_models import BUILDERS


def first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def place_of(error: BaseException, model: Model) -> str:
    """The last line of the user's own file that an error passed through."""
    file = model.file or Path(getattr(sys.modules.get(model.place), "__file__", None) or model.place)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file]
    return f"{os.path.relpath(file)}: line {own[-1].lineno}" if own else model.shown


@cache
def function_of(model: Model) -> Callable[[int | str, int], Any]:
    """The user's function, called with as many of size and batch size as it takes."""
    if model.place in LIBRARIES:
        return lambda size, batch_size: BUILDERS[model.place](model, size, batch_size)
    function = _named(model)
    count = _arguments(function)
    return lambda *arguments: function(*arguments[:count])


def takes_batch_size(model: Model) -> bool:
    """Whether the function is called with the batch size, or the samples are the table's."""
    return model.place in LIBRARIES or model.table is not None or _arguments(_named(model)) > 1


def _named(model: Model) -> Callable[..., Any]:
    function: Callable[..., Any] | None = getattr(_module(model), model.name, None)
    if not callable(function):
        raise UserError(f"{model.shown}: the module has no function {model.name}; add one: {SIGNATURE}")
    return function


def _arguments(function: Callable[..., Any]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    return min(sum(parameter.kind in kinds for parameter in parameters), 2)


@cache
def _module(model: Model) -> ModuleType:
    """The user's module, with the folder of its file on Python's path, for its neighbours."""
    try:
        if model.file is None:
            sys.path.insert(0, str(Path.cwd()))
            return importlib.import_module(model.place)
        sys.path.insert(0, str(model.file.parent))
        spec = importlib.util.spec_from_file_location(model.file.stem, model.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[model.file.stem] = module  # so that classes of it can be pickled, as loaders' workers need
        spec.loader.exec_module(module)
        return module
    except Exception as error:
        raise UserError(
            f"{place_of(error, model)}: the import fails: {type(error).__name__}: {first_line(error)}"
        ) from error
