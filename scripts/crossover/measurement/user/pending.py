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
    completing = next((name for name in COMPLETING if name in has), None)
    return completing and f"{kind_of(value)} before its {completing}()"
