"""Hash of the code behind a result, by which Snakemake and the trial server notice changed code.

The source files that a job would import are parsed without importing them. Their syntax trees are hashed, usually
without docstrings. Installed packages enter the hash by version, if the workload imports them.

For a user's model, files named by string literals in its code are hashed too. If the code computes the name of a module
or a file, all files below the code's folder are hashed: a needless measurement is better than an outdated number.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import pkgutil
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

from crossover.config.models import Model
from crossover.files import working_folder
from crossover.home import PACKAGE
from crossover.machine.entry_points import MEASUREMENT, SERVER, WORK
from crossover.machine.installed import NOT_INSTALLED, installed_with, is_installed, version_of
from crossover.machine.named_files import CODE, DATA, UNREADABLE, NamedFiles, content_keys, digest_of
from crossover.machine.sources import Source, looks_like_path, read_source
from crossover.machine.written_files import WrittenFiles

CHOICE = "a choice"

MOST_SOURCES = 300
"""Maximum number of a model's source files whose imports are followed; further `.py` files count as data."""


@dataclass(frozen=True)
class Code:
    """The code of one kind of job for one workload."""

    files: Mapping[str, Path]
    """Files by module name; files that are not imported have a label instead."""
    digests: Mapping[str, str]
    """Digests of these files by the same names, and of `_choice`. See `content_keys` for data files."""
    packages: Mapping[str, str]
    """Versions of Python, torch and the packages that the workload imports."""
    of_model: Collection[str] = ()
    """Names of the digests that belong to the workload alone; for a user's model, those of its files and `_choice`."""
    surroundings: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """Variables and installed packages, which may differ between machines with the same code."""

    @property
    def digests_of_model(self) -> dict[Path, str]:
        """Digests of the model's files, by path."""
        return {self.files[name]: self.digests[name] for name in self.of_model if name in self.files}

    @property
    def model_key(self) -> str:
        return _digest_of_values({name: self.digests[name] for name in self.of_model})

    @property
    def measurement_key(self) -> str:
        return _digest_of_values({name: self.digests[name] for name in self.digests.keys() - {*self.of_model}})

    @property
    def parts(self) -> dict[str, str]:
        """What the code's keys are made of, by a name for messages: a digest or a version each."""
        files: dict[str, str] = {}
        for name in (name for name in self.of_model if name != CHOICE):
            part = f"file {_path_of(name, self.files[name])}"
            while part in files:
                part += "'"
            files[part] = self.digests[name]
        if CHOICE in self.digests:
            files["the function of the model or its arguments"] = self.digests[CHOICE]
        versions = {**self.packages, **self.surroundings.get("installed", {})}
        variables = {
            f"variable {name}": "not set" if value is None else value
            for name, value in self.surroundings.get("variables", {}).items()
        }
        return {
            "code of the measurement": self.measurement_key,
            **files,
            **{f"package {name}": str(version) for name, version in versions.items()},
            **variables,
        }

    @property
    def key(self) -> str:
        return _digest_of_values([self.digests, self.packages, self.surroundings])


def _path_of(name: str, file: Path) -> str:
    """A file's path for messages: 'nets/small.py' of module 'nets.small', 'nets/__init__.py' of package 'nets'."""
    if file.suffix != ".py" or name.rstrip("'").endswith(".py"):
        return name.removeprefix("data: ")
    folders = name.strip(".").replace(".", "/")
    return f"{folders}/__init__.py".lstrip("/") if file.name == "__init__.py" else f"{folders}.py"


def _digest_of_values(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class _Location:
    file: Path | None
    """File of the module; None for a namespace package or a built-in module."""
    folders: tuple[str, ...]
    """Folders of a package's modules; empty if the module is not a package."""


def code_of(
    kind: str,
    workload: str,
    modules: Modules | None = None,
    model: Model | None = None,
    written: Path | None = None,
) -> Code:
    """Return the current code of a kind of job for a workload or a user's model.

    `modules` is a cache, and `written` the record of files that measuring processes have written.
    """
    modules = modules or Modules()
    files = modules.imported_by(SERVER, WORK[kind][0]).files
    user_module = "user.function" if model is not None and model.is_function else "user.model"
    module = f"workloads.{workload}" if model is None else user_module
    of_workload = modules.imported_by(f"{MEASUREMENT}.{module}", skipped=files)
    added, packages = dict(of_workload.files), {"torch", *of_workload.packages}
    names_of_model = list(added)
    surroundings: dict[str, Mapping[str, str | None]] = {}
    digests = _digests(files | added)
    if model is not None:
        beside = Modules(*(model.folders or [working_folder()]))
        root = model.file or model.origin
        written_files = WrittenFiles.read(written, beside.folder_of(root))
        of_model = _used_by(beside, root, {*files, *added}, written_files)
        packages |= of_model.packages
        data = {f"data: {label}": path for label, path in of_model.data.items()}
        if model.table is not None:
            data["with the table"] = Path(model.table.file)
        files_of_model = {_name_within(model.origin, name): path for name, path in of_model.files.items()}
        digests[CHOICE] = _digest_of_values(_choice(model, model.name if files_of_model else model.source))
        names_of_model = [CHOICE, *files_of_model, *data]
        added |= files_of_model | data
        digests |= _digests(files_of_model)
        digests |= content_keys(data)
        for label, path in data.items():
            digests[label] = written_files.before(path, digests[label]) or digests[label]
        surroundings = {
            "variables": {variable: os.environ.get(variable) for variable in sorted(of_model.environment_variables)},
            "installed": installed_with(of_model.packages),
        }
        digests = {name: digest for name, digest in digests.items() if digest != UNREADABLE}
        names_of_model = [name for name in names_of_model if name in digests]
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    # Packages that only the measurement code imports are left out, since they just read the host and write the row.
    for package in sorted(packages):
        versions |= version_of(package)
    return Code(files | added, digests, versions, names_of_model, surroundings)


def _choice(model: Model, source: str) -> list[object]:
    """The function, mode, names of sizes, and columns of the table that a study uses."""
    return [source, model.mode, model.names, model.table and [model.table.targets, model.table.inputs]]


def _name_within(origin: str, name: str) -> str:
    """The name of a module relative to the folder of the model's module, whose own name is no part of the code."""
    package = "" if origin.endswith(".py") else origin.rpartition(".")[0]
    return name.removeprefix(package) or "." if package and f"{name}.".startswith(f"{package}.") else name


def digests_of(*modules: str) -> dict[str, str]:
    """Digests of the files of modules and of all files that they import, by module name, without installed packages."""
    return _digests(Modules().imported_by(*modules).files)


def _digests(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: _read(files[name]).digest for name in sorted(files)}


def _read(file: Path) -> Source:
    with suppress(OSError):
        if file.suffix not in (".py", ""):  # compiled code
            return Source(digest_of(file))
        return read_source(file, of_user=not _in_library(file))
    return Source(UNREADABLE)


def _in_library(file: Path) -> bool:
    return str(file).startswith(f"{PACKAGE}{os.sep}")  # much faster than is_relative_to


@dataclass
class Imported:
    files: dict[str, Path] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    """Modules of the user's packages that were not found."""
    data: dict[str, Path] = field(default_factory=dict)
    """The user's other files by path; see `_label`."""
    environment_variables: set[str] = field(default_factory=set)

    def add(self, name: str, file: Path) -> bool:
        """Add a source file; returns False if it was added before. If the name is taken, an apostrophe is appended."""
        if str(file) in self.paths:
            return False
        self.paths.add(str(file))
        while name in self.files:
            name += "'"
        self.files[name] = file
        return True


def _used_by(modules: Modules, root: str | Path, skipped: Collection[str], written: WrittenFiles) -> Imported:
    used, roots, home = Imported(), [root], modules.folder_of(root)
    own = [home, *(modules.first if isinstance(root, Path) else ())]  # a file may be a link to another folder
    named = NamedFiles([*modules.first, working_folder()], written.is_made)
    while True:
        before = len(used.files)
        imported = modules.imported_by(*roots, skipped=skipped)
        used.packages, used.missing = imported.packages, imported.missing
        for name, file in imported.files.items():
            used.add(name, file)
        _add_named(used, named, home, own)
        roots = [root, *(file for file in used.files.values() if file.suffix == ".py")]
        if before == len(used.files):
            return used


def _add_named(used: Imported, named: NamedFiles, home: Path, own: Sequence[Path]) -> None:
    """Add sources, data files and variables that string literals may name, and files of modules that were not found.

    `home` is the folder of the model. A mere word, which neither looks like a path nor is used as one, names only files
    in the model's `own` folders; what sources among these import and name is not searched.
    """
    used.data.clear()  # all sources are searched again
    sources = {file: _read(file) for file in used.files.values()}
    if any(source.reads_environment for source in sources.values()):
        every_text = {text for source in sources.values() for text in source.texts}
        words = {word for text in every_text for word in (text, *re.findall(r"\$\{?(\w+)", text))}
        used.environment_variables |= set(filter(str.isidentifier, words))
    files, of_words = list[Path](), list[Path]()
    for file, source in sources.items():
        texts = [*source.texts, *filter(None, map(os.environ.get, used.environment_variables))]
        names_path = {text: text in source.paths or looks_like_path(text) for text in texts}
        files_of_source = [path for text in texts if names_path[text] for path in named.named(text, file.parent)]
        files += files_of_source
        of_words += [path for text in texts if not names_path[text] for path in named.named(text, file.parent, own)]
        # A literal that ends like a file's name, but names none, may be part of a computed name: f"weights_{size}.pt".
        names = {path.name for path in files_of_source}
        ends = {text.rpartition("/")[2] for text in source.texts if f".{text.rpartition('.')[2]}" in DATA | CODE}
        if source.computes_names or any(" " not in end and end not in names for end in ends):
            package = _package_folder(file)
            for folder in dict.fromkeys([package, *named.bases]):
                files += [path for path in named.below(folder) if folder == package or path.suffix in DATA | CODE]
    not_installed = {name for name in used.packages if version_of(name) == {name: NOT_INSTALLED}}
    for name in not_installed | used.missing:
        files += _files_of_module(name.rpartition(".")[2], named)
    searched = {*files}
    for file in dict.fromkeys([*files, *of_words]):
        if _in_library(file) or str(file) in used.paths or not os.access(file, os.R_OK):
            continue
        label = _label(file, home)
        if file.suffix == ".py" and file in searched and len(used.files) < MOST_SOURCES:
            used.add(label, file)
            continue
        while used.data.get(label, file) != file:
            label += "'"
        used.data[label] = file


def _label(file: Path, home: Path) -> str:
    """Path of a file without the name of the model's folder `home`: relative to it, or to the working directory."""
    common = Path(os.path.commonpath([file, home]))
    if common == Path(common.anchor):
        return str(file)
    return Path(os.path.relpath(file, common if common == working_folder() else home)).as_posix()


def _files_of_module(name: str, named: NamedFiles) -> Iterator[Path]:
    """Files below the user's folders that may belong to a module that is not on Python's path."""
    for base in named.bases:
        for file in named.below(base):
            *folders, file_name = file.relative_to(base).parts
            if file.suffix in CODE and name in (*folders, file_name.partition(".")[0]):
                yield file


def _package_folder(file: Path) -> Path:
    folder = file.parent
    while (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


class Modules:
    """Finds modules as a measuring process does; `first` are the folders of a user's model."""

    def __init__(self, *first: Path) -> None:
        self.first = first
        self.path = [*map(str, self.first), str(PACKAGE.parent), str(working_folder()), *filter(None, sys.path)]
        self.locations: dict[str, _Location | None] = {}
        self.followed: dict[str, bool] = {}

    def imported_by(self, *roots: str | Path, skipped: Collection[str] = ()) -> Imported:
        """Files of the roots (modules or files) and of everything that they import, and the imported packages."""
        imported = Imported()
        todo: list[str] = []
        for root in roots:
            if isinstance(root, str):
                todo.append(root)
            elif imported.add(root.stem, root):
                todo += self._imports(root, "")
        seen = {*skipped}
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            top, parent = name.partition(".")[0], name.rpartition(".")[0]
            if not self._is_followed(top):
                imported.packages |= {top} - sys.stdlib_module_names
                continue
            todo += [parent] if parent else []
            location = self._locate(name)
            if location is None:
                imported.missing |= {name} - sys.stdlib_module_names
            elif location.file is not None and imported.add(name, location.file):
                todo += self._imports(location.file, name if location.folders else parent)
        return imported

    def folder_of(self, root: str | Path) -> Path:
        """The folder of a file or module; the working directory for a module that is not found."""
        location = self._locate(root) if isinstance(root, str) else _Location(root, ())
        return location.file.parent if location and location.file else working_folder()

    def _imports(self, file: Path, package: str) -> Iterator[str]:
        """Each module that a file of a package imports; the name of the package is empty for a file outside of one.

        A name imported from a package may be a module, and `*` may import all of the package's modules.
        """
        for dots, module, taken in _read(file).imports:
            try:
                name = importlib.util.resolve_name("." * dots + module, package)
            except ImportError:  # it is no part of a package, and its import fails with a better message
                continue
            yield name
            if taken and self._is_followed(name.partition(".")[0]):
                attributes = [*taken, *(self._modules_of(name) if "*" in taken else ())]
                inner = [f"{name}.{attribute}" for attribute in attributes]
                yield from filter(self._locate, inner)

    def _modules_of(self, name: str) -> list[str]:
        location = self._locate(name)
        return [module.name for module in pkgutil.iter_modules(location.folders)] if location else []

    def _locate(self, name: str) -> _Location | None:
        if name not in self.locations:
            parent, _, last_name = name.rpartition(".")
            above = self._locate(parent) if parent else _Location(None, tuple(self.path))
            # The finder gets only the last part: for a dotted name, it may need the parent to be imported.
            spec = PathFinder.find_spec(last_name, above.folders) if above and above.folders else None
            if spec is None and not parent:
                with suppress(ValueError):
                    spec = importlib.util.find_spec(name)  # an editable install may have a finder of its own
            self.locations[name] = None
            if spec is not None:
                origin = Path(spec.origin or "")
                # For a module in an archive, the file is the archive.
                file = next((path for path in (origin, *origin.parents) if path.is_file()), None)
                self.locations[name] = _Location(file, tuple(spec.submodule_search_locations or ()))
        return self.locations[name]

    def _is_followed(self, top: str) -> bool:
        """True for this package, and for a top-level module that is neither installed nor part of Python."""
        if top not in self.followed:
            location = self._locate(top)
            path = (location.folders[0] if location.folders else location.file) if location else None
            self.followed[top] = top == PACKAGE.name or (
                path is not None and top != "torch" and not is_installed(Path(path).parent)
            )
        return self.followed[top]
