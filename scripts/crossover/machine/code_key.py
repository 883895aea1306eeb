"""The key of the code that makes a result, for Snakemake's re-run, the trial server and the result's row.

Imports are followed from the modules that a kind of job starts with, wherever in a file they stand; nothing is imported
for that. Files count by their content, this library's and the user's own; comments, docstrings and layout do not
count. Installed packages count by their version, and only if the workload imports them.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from crossover.config.models import Model
from crossover.config.workloads import NULL

LIBRARY = Path(__file__).parents[2]
"""The folder that holds the package, for `sys.path`."""
MEASUREMENT = "crossover.measurement"

WORK = {
    "trial": (f"{MEASUREMENT}.trial", "run_trial"),
    "training": (f"{MEASUREMENT}.training", "run_training"),
    "batch_try": (f"{MEASUREMENT}.search", "run_try"),
    "probe": (f"{MEASUREMENT}.roofs", "run_probe"),
}
"""The module and function that do each kind of job. The measuring process looks them up by name, so that no kind of job
imports what only another one needs."""
NULL_TRIAL = (f"{MEASUREMENT}.null_trial", "run_null_trial")

OWN_MODEL = f"{MEASUREMENT}.own_model"
SERVER = f"{MEASUREMENT}.process.server"
"""A measuring process is its fork, or imports a part of it. The process that leases, starts and watches does not count:
no number depends on it."""

INSTALLED = {"site-packages", "dist-packages"}
STANDARD = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]


@dataclass(frozen=True)
class Code:
    """The code that does one kind of job for one workload."""

    files: Mapping[str, Path]
    """By module name."""
    digests: Mapping[str, str]
    """Of the files' content."""
    packages: Mapping[str, str]
    """Versions of Python, torch and the packages that the workload imports."""
    of_model: Collection[str] = ()
    """The modules that only the workload, or the user's own model, brings."""

    @property
    def model_key(self) -> str:
        """32 hexadecimal digits of these modules alone, the same on every machine and Python."""
        own = {name: self.digests[name] for name in sorted(self.of_model)}
        return hashlib.sha256(json.dumps(own).encode()).hexdigest()[:32]

    @property
    def key(self) -> str:
        """32 hexadecimal digits."""
        return hashlib.sha256(json.dumps([self.digests, self.packages]).encode()).hexdigest()[:32]


Import = tuple[int, str, tuple[str, ...]]
"""An import statement: its leading dots, its module, and the names taken from it."""


@dataclass(frozen=True)
class _Source:
    """The content of a file."""

    digest: str
    imports: tuple[Import, ...] = ()


@dataclass(frozen=True)
class _Place:
    """Where a module is."""

    file: Path | None
    """None for a folder without `__init__`, and for a module in an archive."""
    folders: tuple[str, ...]
    """The folders of a package's own modules; empty for a module."""

    @property
    def found_in(self) -> Path | None:
        """The folder that holds the module or package."""
        return Path(self.folders[0]).parent if self.folders else self.file and self.file.parent


def work_of(kind: str, workload: str) -> tuple[str, str]:
    """The module and function that do a kind of job for a workload."""
    return NULL_TRIAL if (kind, workload) == ("trial", NULL) else WORK[kind]


def code_of(kind: str, workload: str, modules: Modules | None = None, model: Model | None = None) -> Code:
    """The code that does a kind of job for a workload, or for a model of the user's own, as its files are now.

    `modules` may be shared between calls.
    """
    modules = modules or Modules()
    files, _ = modules.imported_by(SERVER, work_of(kind, workload)[0])
    if model is None:
        of_workload, packages = modules.imported_by(f"{MEASUREMENT}.workloads.{workload}", known=files)
    else:
        of_workload, packages = modules.imported_by(OWN_MODEL, known=files)
        own = Modules(*([model.file.parent] if model.file else []))
        of_model, more = own.imported_by(model.file.stem if model.file else model.place, known={*files, *of_workload})
        of_workload, packages = of_workload | of_model, packages | more
        if model.table is not None:
            of_workload["a table"] = Path(model.table.file)
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for package in sorted({"torch", *packages}):  # those of the other files read the host and write the row
        versions |= _versions(package)
    files |= of_workload
    return Code(files, _digests(files), versions, list(of_workload))


def digests_of(*modules: str) -> dict[str, str]:
    """Digests of the files of modules and all that they import, by module name."""
    return _digests(Modules().imported_by(*modules)[0])


def _digests(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: _read(files[name]).digest for name in sorted(files)}


class Modules:
    """Finds modules as a measuring process does: in this library, the working directory, then on Python's path."""

    def __init__(self, *first: Path) -> None:
        self.path = [*map(str, first), str(LIBRARY), str(Path.cwd()), *filter(None, sys.path)]
        self.places: dict[str, _Place | None] = {}
        self.ours: dict[str, bool] = {}

    def imported_by(self, *roots: str, known: Collection[str] = ()) -> tuple[dict[str, Path], set[str]]:
        """The files of modules and all that they import, by module name, and the installed packages they import.

        Modules in `known` are left out.
        """
        todo, met = list(roots), set(known)
        files: dict[str, Path] = {}
        packages: set[str] = set()
        while todo:
            name = todo.pop()
            if name in met:
                continue
            met.add(name)
            top, parent = name.partition(".")[0], name.rpartition(".")[0]
            if not self._is_ours(top):
                packages |= {top} - sys.stdlib_module_names
                continue
            todo += [parent] if parent else []
            place = self._place(name)
            if place is not None and place.file is not None:
                files[name] = place.file
                todo += self._imports(place.file, name if place.folders else parent)
        return files, packages

    def _imports(self, file: Path, package: str) -> Iterator[str]:
        """The modules that a file of a package imports; a name taken from one may be a module too."""
        for dots, module, taken in _read(file).imports:
            above = package.split(".")[: package.count(".") + 2 - dots] if dots else []
            name = ".".join([*above, *([module] if module else [])])
            yield name
            if taken and self._is_ours(name.partition(".")[0]):
                yield from (one for one in (f"{name}.{attribute}" for attribute in taken) if self._place(one))

    def _place(self, name: str) -> _Place | None:
        """Where a module is; None if there is none, or if it is built into Python."""
        if name not in self.places:
            parent, _, own_name = name.rpartition(".")
            above = self._place(parent) if parent else _Place(None, tuple(self.path))
            # By its own name alone: Python's finder would look for the parent among the imported modules.
            spec = PathFinder.find_spec(own_name, above.folders) if above and above.folders else None
            if spec is None and not parent:
                with suppress(ValueError):
                    spec = importlib.util.find_spec(name)  # an editable install has a finder of its own
            self.places[name] = None
            if spec is not None:
                file = Path(spec.origin or "")
                self.places[name] = _Place(
                    file if file.is_file() else None, tuple(spec.submodule_search_locations or ())
                )
        return self.places[name]

    def _is_ours(self, top: str) -> bool:
        """Whether a top-level module is neither installed nor part of Python."""
        if top not in self.ours:
            place = self._place(top)
            folder = place.found_in if place else None
            self.ours[top] = folder is not None and top != "torch" and not _is_installed(folder)
        return self.ours[top]


def _is_installed(folder: Path) -> bool:
    """Whether a folder on Python's path belongs to Python or holds installed packages."""
    return (
        not INSTALLED.isdisjoint(folder.parts)
        or any(map(folder.is_relative_to, STANDARD))
        or any(folder.glob("*.dist-info"))  # as `pip install --target` leaves it
    )


def _read(file: Path) -> _Source:
    found = file.stat()
    return _read_once(file, found.st_size, found.st_mtime_ns)


@cache
def _read_once(file: Path, _size: int, _changed_ns: int) -> _Source:
    """The content of a file, read again when its size or time changes, as Python itself does."""
    if file.suffix not in (".py", ""):  # compiled code, or a table
        with file.open("rb") as stream:
            return _Source(hashlib.file_digest(stream, "sha256").hexdigest())
    text = file.read_bytes()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # the import will fail with a better message
        return _Source(hashlib.sha256(text).hexdigest())
    imports: list[Import] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.Call) and (name := _imported_by_name(node)):
            imports.append((0, name, ()))
        elif isinstance(body := getattr(node, "body", None), list):
            node.body = [statement for statement in body if not _is_text(statement)]  # type: ignore[attr-defined]
    return _Source(hashlib.sha256(_text(tree).encode()).hexdigest(), tuple(dict.fromkeys(imports)))


def _text(node: object) -> str:
    """A syntax tree as a text, without its empty fields, of which each version of Python has others."""
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name != "ctx")
        known = [f"{name}={_text(value)}" for name, value in fields if value is not None and value != []]
        return f"{type(node).__name__}({','.join(known)})"
    return f"[{','.join(map(_text, node))}]" if isinstance(node, list) else repr(node)


def _imported_by_name(call: ast.Call) -> str | None:
    """The module that `import_module("...")` or `__import__("...")` names, if the name is a literal."""
    function = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    if function not in ("import_module", "__import__") or not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    name = call.args[0].value
    return name if isinstance(name, str) and not name.startswith(".") else None


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is only a text, as a docstring is."""
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


@cache
def _versions(package: str) -> dict[str, str]:
    """Versions of the distributions that a package is imported from, by their names."""
    from importlib import metadata  # takes a moment

    try:
        return {package: metadata.version(package)}
    except metadata.PackageNotFoundError:  # its distribution has another name, or is missing
        names = metadata.packages_distributions().get(package, [])
        return {name: metadata.version(name) for name in sorted(set(names))} or {package: "not installed"}
