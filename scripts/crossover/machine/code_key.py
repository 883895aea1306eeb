"""The key of the code that makes a result, for Snakemake's re-run, the trial server and the result's row.

Imports are followed from the modules that a kind of job starts with, wherever in a file they stand; nothing is imported
for that. Files count by their content, this library's and the user's own; comments, docstrings and layout do not
count. Installed packages count by their version, and only if the workload imports them.

Of the user's own code, files count too that its texts name, and all that lie beside it where it imports or reads by a
name of which nothing is known: measuring a cell once too often is better than showing an old number as new.
"""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.util
import json
import os
import pkgutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

from crossover.config.models import Model
from crossover.config.workloads import NULL
from crossover.machine.installed import NOT_INSTALLED, installed_with, is_installed, version_of
from crossover.machine.named_files import CODE, DATA, NamedFiles, content_keys, digest_of, expanded
from crossover.machine.sources import ANY, Source, read_source

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

MOST_SOURCES = 300
"""Sources beside a model that are followed where it imports by a name that is computed."""


@dataclass(frozen=True)
class Code:
    """The code that does one kind of job for one workload."""

    files: Mapping[str, Path]
    """By module name; data of the user's own after `data: `."""
    digests: Mapping[str, str]
    """Of the files' content."""
    packages: Mapping[str, str]
    """Versions of Python, torch and the packages that the workload imports."""
    of_model: Collection[str] = ()
    """The modules that only the workload, or the user's own model, brings."""
    here: Mapping[str, object] = field(default_factory=dict)
    """What differs between machines that have the same code: times of large files, environment variables, and what the
    packages of the user's own model need themselves."""

    @property
    def model_key(self) -> str:
        """32 hexadecimal digits of these modules alone, the same on every machine and Python."""
        return _digest_of_values({name: self.digests[name] for name in self.of_model})

    @property
    def measurement_key(self) -> str:
        """32 hexadecimal digits of all other files, the same on every machine and Python."""
        return _digest_of_values({name: self.digests[name] for name in self.digests.keys() - {*self.of_model}})

    @property
    def key(self) -> str:
        """32 hexadecimal digits."""
        return _digest_of_values([self.digests, self.packages, self.here])


def _digest_of_values(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class _Place:
    """Where a module is."""

    file: Path | None
    """None for a folder without `__init__`."""
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
    files = modules.imported_by(SERVER, work_of(kind, workload)[0]).files
    name = f"{MEASUREMENT}.workloads.{workload}" if model is None else OWN_MODEL
    of_workload = modules.imported_by(name, known=files)
    brought, packages = dict(of_workload.files), {"torch", *of_workload.packages}
    here: dict[str, object] = {}
    digests = _digests(files | brought)
    if model is not None:
        own = Modules(model.file.parent if model.file else Path.cwd())
        of_model = _followed(own, model.file or model.place, {*files, *brought})
        packages |= of_model.packages
        data = {f"data: {label}": path for label, path in of_model.data.items()}
        if model.table is not None:
            data["a table"] = Path(model.table.file)
        brought |= of_model.files | data
        digests |= _digests(of_model.files)
        contents, times = content_keys(data)
        digests |= contents
        here = {
            "times": times,
            "variables": {variable: os.environ.get(variable) for variable in sorted(of_model.variables)},
            "installed": installed_with(of_model.packages),
        }
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for package in sorted(packages):  # those of the other files read the host and write the row
        versions |= version_of(package)
    return Code(files | brought, digests, versions, list(brought), here)


def digests_of(*modules: str) -> dict[str, str]:
    """Digests of the files of modules and all that they import, by module name."""
    return _digests(Modules().imported_by(*modules).files)


def _digests(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: _read(files[name]).digest for name in sorted(files)}


def _read(file: Path) -> Source:
    if file.suffix not in (".py", ""):  # compiled code
        return Source(digest_of(file))
    return read_source(file, of_user=not _in_library(file))


def _in_library(file: Path) -> bool:
    return str(file).startswith(f"{LIBRARY}{os.sep}")  # many times as fast as is_relative_to


@dataclass
class Imported:
    """What some modules import."""

    files: dict[str, Path] = field(default_factory=dict)
    """By module name."""
    known: set[str] = field(default_factory=set)
    """Their paths."""
    packages: set[str] = field(default_factory=set)
    """Installed packages, and what is not found."""
    missing: set[str] = field(default_factory=set)
    """Modules of the user's own packages that are not where they should be."""
    data: dict[str, Path] = field(default_factory=dict)
    """Further files of the user's own that count, by a name that is the same wherever the folders lie."""
    variables: set[str] = field(default_factory=set)
    """Environment variables that the user's own code reads."""

    def add(self, name: str, file: Path) -> bool:
        """Add a source unless it is known; another one of the same name has an apostrophe."""
        if str(file) in self.known:
            return False
        self.known.add(str(file))
        while name in self.files:
            name += "'"
        self.files[name] = file
        return True


def _followed(modules: Modules, root: str | Path, known: Collection[str]) -> Imported:
    """All that the user's own code is made of, from a module or file on.

    What it puts on Python's path is seen once its sources are known, so that they are followed anew until nothing more
    is found.
    """
    whole, roots = Imported(), [root]
    named = NamedFiles(dict.fromkeys([*modules.first, Path.cwd()]))
    while True:
        before = (len(whole.files), len(modules.path))
        found = modules.imported_by(*roots, known=known)
        whole.packages, whole.missing = found.packages, found.missing
        for name, file in found.files.items():
            whole.add(name, file)
        _look_around(whole, modules, named)
        roots = [root, *(file for file in whole.files.values() if file.suffix == ".py")]
        if before == (len(whole.files), len(modules.path)):
            return whole


def _look_around(whole: Imported, modules: Modules, named: NamedFiles) -> None:
    """Add what the texts of the sources name: folders on Python's path, sources, data and environment variables."""
    sources = {file: _read(file) for file in whole.files.values()}
    files: list[Path] = []
    whole.variables |= _variables(sources.values())
    for file, source in sources.items():
        for text in source.path:
            for base in dict.fromkeys([file.parent, *named.bases]):
                modules.look_in(base, text)
        for text in (*source.names, *filter(None, map(os.environ.get, whole.variables))):
            files += named.named(text, file.parent)
        for text in source.reads:
            files += named.named(text, file.parent, is_read=True)
        if source.runs_any or source.reads_any:
            suffixes = DATA | CODE if source.runs_any else DATA
            own = _package_folder(file)
            for folder in dict.fromkeys([own, *named.bases]):
                for path in named.below(folder):
                    if path.suffix in suffixes or (folder == own and source.reads_any and path.suffix not in CODE):
                        files.append(path)
    unknown = {name for name in whole.packages if version_of(name) == {name: NOT_INSTALLED}} | whole.missing
    for name in unknown:
        files += _hidden(name.rpartition(".")[2], modules, named)
    for file in dict.fromkeys(files):
        if _in_library(file) or str(file) in whole.known or not os.access(file, os.R_OK):
            continue
        label = _label(file, named.bases)
        if file.suffix == ".py" and len(whole.files) < MOST_SOURCES:
            whole.add(label, file)
            continue
        while whole.data.get(label, file) != file:
            label += "'"
        whole.data[label] = file


def _variables(sources: Collection[Source]) -> set[str]:
    """The environment variables that sources read; where nothing is known of one, all that their texts may name."""
    asked = {variable for source in sources for variable in source.variables}
    known = {variable for variable in asked if ANY not in variable}
    for pattern in asked - known:
        known |= {*fnmatch.filter(os.environ, pattern)} if pattern.strip(ANY) else set()
    if any(not pattern.strip(ANY) for pattern in asked):
        known |= {name for source in sources for name in source.names if name.isidentifier()}
    return known


def _hidden(name: str, modules: Modules, named: NamedFiles) -> Iterator[Path]:
    """Files of a module that no known folder of Python's path holds, anywhere below the user's own folders."""
    for base in named.bases:
        for file in named.below(base):
            parts = file.relative_to(base).parts
            if file.suffix in CODE and name in (*parts[:-1], file.name.partition(".")[0]):
                if name in parts[:-1]:
                    modules.look_in(base, "/".join(parts[: parts.index(name)]))
                else:
                    modules.look_in(file.parent, "")
                yield file


def _package_folder(file: Path) -> Path:
    """The folder of the outermost package that holds a file; its own folder if none does."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _label(file: Path, bases: Iterable[Path]) -> str:
    """A file's path from the first of the user's folders that holds it; its whole path if none does."""
    return next((file.relative_to(base).as_posix() for base in bases if file.is_relative_to(base)), str(file))


class Modules:
    """Finds modules as a measuring process does: in this library, the working directory, then on Python's path."""

    def __init__(self, *first: Path) -> None:
        self.first = list(dict.fromkeys(first))
        """The user's own folders, which come before all others."""
        self.path = [*map(str, self.first), str(LIBRARY), str(Path.cwd()), *filter(None, sys.path)]
        self.places: dict[tuple[str, tuple[str, ...]], _Place | None] = {}
        self.ours: dict[str, bool] = {}

    def look_in(self, base: Path, folder: str) -> None:
        """Look in a folder, or archive, before all others, if it is there and neither known nor installed."""
        path = expanded(base / expanded(Path(folder)))
        there = os.access(path, os.R_OK)
        if ANY not in str(path) and str(path) not in self.path and there and not is_installed(path):
            self.path.insert(0, str(path))
            self.places.clear()
            self.ours.clear()

    def imported_by(self, *roots: str | Path, known: Collection[str] = ()) -> Imported:
        """The files of modules and all that they import, by module name, and the installed packages they import.

        A root may be a file. Modules in `known` are left out.
        """
        found = Imported()
        todo: list[tuple[str, tuple[str, ...]]] = []
        for root in roots:
            if isinstance(root, str):
                todo.append((root, ()))
            elif found.add(root.stem, root):
                todo += self._imports(root, "", ())
        met: set[tuple[str, tuple[str, ...]]] = {(name, ()) for name in known}
        while todo:
            name, start = todo.pop()
            if (name, start) in met:
                continue
            met.add((name, start))
            top, parent = name.partition(".")[0], name.rpartition(".")[0]
            if not start and not self._is_ours(top):
                found.packages |= {top} - sys.stdlib_module_names
                continue
            todo += [(parent, start)] if parent else []
            place = self._place(name, start)
            if place is None:
                found.missing |= {name} - sys.stdlib_module_names
            elif place.file is not None and found.add(name, place.file):
                todo += self._imports(place.file, name if place.folders else parent, start)
        return found

    def _imports(self, file: Path, package: str, start: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The modules that a file of a package imports, each with the folder to start from, empty for Python's path.

        A name taken from a module may be a module too; with `*` all modules of a package count. Above the package, as
        in a file that is run by its path, a relative import starts from the file's folder.
        """
        source = _read(file)
        # The library names a module from its own package where it must not count for every workload.
        by_name = (one for one in source.by_name if not one[0] or not _in_library(file))
        for dots, module, taken in (*source.imports, *by_name):
            above = package.split(".") if package else []
            begin = start if dots else ()
            if dots > len(above):
                begin, above = (str(file.parents[dots - 1]),) if dots <= len(file.parents) else (), []
            else:
                above = above[: len(above) + 1 - dots] if dots else []
            name = ".".join([*above, *([module] if module else [])])
            if name:
                yield name, begin
            if taken and (begin or self._is_ours(name.partition(".")[0])):
                attributes = [*taken, *(self._modules_of(name, begin) if ANY in taken else ())]
                inner = [f"{name}.{attribute}".lstrip(".") for attribute in attributes]
                yield from ((one, begin) for one in inner if self._place(one, begin))

    def _modules_of(self, name: str, start: tuple[str, ...]) -> list[str]:
        place = self._place(name, start) if name else _Place(None, start)
        return [module.name for module in pkgutil.iter_modules(place.folders)] if place else []

    def _place(self, name: str, start: tuple[str, ...] = ()) -> _Place | None:
        """Where a module is; None if there is none, or if it is built into Python."""
        if (name, start) not in self.places:
            parent, _, own_name = name.rpartition(".")
            above = self._place(parent, start) if parent else _Place(None, start or tuple(self.path))
            # By its own name alone: Python's finder would look for the parent among the imported modules.
            spec = PathFinder.find_spec(own_name, above.folders) if above and above.folders else None
            if spec is None and not parent and not start:
                with suppress(ValueError):
                    spec = importlib.util.find_spec(name)  # an editable install has a finder of its own
            self.places[name, start] = None
            if spec is not None:
                origin = Path(spec.origin or "")
                # Of a module in an archive, the archive.
                file = next((path for path in (origin, *origin.parents) if path.is_file()), None)
                self.places[name, start] = _Place(file, tuple(spec.submodule_search_locations or ()))
        return self.places[name, start]

    def _is_ours(self, top: str) -> bool:
        """Whether a top-level module is neither installed nor part of Python."""
        if top not in self.ours:
            place = self._place(top)
            folder = place.found_in if place else None
            self.ours[top] = folder is not None and top != "torch" and not is_installed(folder)
        return self.ours[top]
