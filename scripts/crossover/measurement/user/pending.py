"""Objects that stand for work that is not done yet: generators, futures, lazy frames, running threads."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from torch import nn

from crossover.measurement.user.loss import kind_of

COMPLETING = ("collect", "compute", "realize", "materialize", "execute", "fetchall")
"""Methods that do the work of a lazy object, such as a frame of Polars, Spark or Dask."""

CONVERTING = ("to_table", "read_all", "toPandas", "to_pandas")
"""The same for an object without a length, such as a scanner or reader of Arrow; a table has these methods, too."""

FUTURES = (("result", "done"), ("wait", "done"), ("get", "ready"), ("wait", "poll"))
"""Pairs of methods of an object whose work goes on elsewhere: futures, results of a pool, processes."""

UNFINISHED = ", whose work is not done yet; allowed: a step that does its work before it returns"
"""The end of a message about such an object."""

MOST_VALUES = 1000
"""Number of values within containers that are looked at."""


def pending_kind(returned: Any) -> str | None:
    """The kind of an unfinished object that a step returned, such as "a coroutine"; None for a result.

    The object may be in a container. A function in a container is a result, such as a fitted model's.
    """
    if inspect.isroutine(returned) or isinstance(returned, partial):
        return "a function"
    if callable(getattr(type(returned), "rmatvec", None)):  # in a container it is a result, such as an inverse Hessian
        return f"{kind_of(returned)} before its matvec()"
    return next(filter(None, map(_kind_of, islice(_values(returned), MOST_VALUES))), None)


def _values(returned: Any) -> Iterator[Any]:
    if isinstance(returned, Mapping | list | tuple | set | frozenset):
        for value in returned.values() if isinstance(returned, Mapping) else returned:
            yield from _values(value)
    else:
        yield returned


def _kind_of(value: Any) -> str | None:
    if isinstance(value, str | bytes | int | float | complex | nn.Module | type):
        return None
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        return "a coroutine"
    if isinstance(value, Iterator):
        return f"an iterator ({type(value).__name__})"
    # Methods of the type, since a column of a pandas frame is an attribute, too.
    has = {name for name in dir(type(value)) if callable(getattr(type(value), name, None))}
    if any(has.issuperset(names) for names in FUTURES):
        return f"a future ({type(value).__name__})"
    if "is_alive" in has and value.is_alive():
        return f"{kind_of(value)} that still runs"
    if "__dask_graph__" in has and value.__dask_graph__() is None:  # an xarray without Dask
        return None
    is_sized = "__len__" in has or "__array__" in has or hasattr(type(value), "shape")
    names = COMPLETING if is_sized else COMPLETING + CONVERTING
    if completing := next((name for name in names if name in has), None):
        return f"{kind_of(value)} before its {completing}()"
    if "__iter__" in has and not is_sized and not _compares_values(value):
        return f"{kind_of(value)} without a length, which computes its values when it is iterated over"
    return None


def _compares_values(value: Any) -> bool:
    """True for an object with an `__eq__` of its own, which is a result, such as a model of pydantic."""
    return any("__eq__" in vars(kind) for kind in type(value).__mro__ if kind is not object)
