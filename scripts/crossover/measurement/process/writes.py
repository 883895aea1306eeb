"""Note the files that the user's code writes while it is measured."""

from __future__ import annotations

import builtins
import functools
import io
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crossover.machine.named_files import digest_or_none
from crossover.measurement import Tell

CLOCK_STEP_NS = 100_000_000
"""How much a file's time may be behind the clock."""

MODES = frozenset("wax+")


@contextmanager
def noted_writes(*folders: Path) -> Iterator[dict[Path, str | None]]:
    """Note the files below some folders to which the block writes, with their digests before; None for no file.

    Notes what is opened by `open`, renamed by `os`, or written by `torch.save` or `sqlite3`; each costs time only when
    it is called.
    """
    import torch  # imported here, since a trial's parent imports this module

    noted: dict[Path, str | None] = {}

    def note(name: Any) -> None:
        with suppress(TypeError, ValueError, OSError):
            path = Path(os.path.normpath(Path.cwd() / os.fsdecode(name)))
            if path not in noted and any(map(path.is_relative_to, folders)):
                noted[path] = digest_or_none(path)

    def opening(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def opened(file: Any, mode: Any = "r", *arguments: Any, **options: Any) -> Any:
            if not isinstance(file, int) and not MODES.isdisjoint(mode):
                note(file)
            return function(file, mode, *arguments, **options)

        return opened

    def naming(function: Callable[..., Any], index: int = 1, keys: Collection[str] = ("f", "dst")) -> Any:
        """Wrap a function that writes the file given by the argument with this index, or one of these names."""

        @functools.wraps(function)
        def named(*arguments: Any, **options: Any) -> Any:
            for name in [*arguments[index : index + 1], *(options[key] for key in keys if key in options)]:
                note(name)
            return function(*arguments, **options)

        return named

    wrappers: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
        (builtins, "open", opening),
        (io, "open", opening),
        (os, "rename", naming),
        (os, "replace", naming),
        (torch, "save", naming),
        (sqlite3, "connect", functools.partial(naming, index=0, keys=("database",))),
    )
    functions = [getattr(owner, name) for owner, name, _ in wrappers]
    for (owner, name, wrap), function in zip(wrappers, functions, strict=True):
        setattr(owner, name, wrap(function))
    try:
        yield noted
    finally:
        for (owner, name, _), function in zip(wrappers, functions, strict=True):
            setattr(owner, name, function)


def noting_builds(noted: dict[Path, str | None], digests: Callable[[], Mapping[Path, str]], tell: Tell) -> Tell:
    """`tell`, but also adds to `noted` those of the model's files that change or appear while the model is built.

    Compiled code and other processes may write these without `open`. What changes outside of a build, which is short,
    may be written by anybody. `digests` are those of the model's files now.
    """
    before: Mapping[Path, str] | None = None
    began_ns = 0

    def told(message: dict[str, Any]) -> None:
        nonlocal before, began_ns
        builds = "builds" in message
        if builds and before is None:
            before, began_ns = digests(), time.time_ns()
        elif before is not None and not builds:
            for path, digest in digests().items():
                # The model may have changed the working directory, and thereby the files that its code names.
                if before.get(path) != digest and _changed_ns(path) >= began_ns - CLOCK_STEP_NS:
                    noted.setdefault(path, before.get(path))
            before = None
        tell(message)

    return told


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return 0
