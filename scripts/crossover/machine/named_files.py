"""Files named by string literals in a model's code: data files, and sources that are run by their path.

At most 32 MiB of data files are hashed. Other data files are represented by their size and samples of their content.

The files that a trial opens are not observed instead. An audit hook misses what is opened outside of Python
(safetensors, Parquet, `torch.jit.load`), by a data loader's workers or other processes, and files that appear later. It
also cannot be removed, and made `id()` 4 times and `copy.deepcopy` up to 2.4 times as slow, also in timed steps.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

INSTALLED = {"site-packages", "dist-packages"}
LEFT_OUT = INSTALLED | {"__pycache__", "node_modules"}

CODE = {".py", ".pyx", ".pyi", ".so", ".pyd", ".pyc", ".zip", ".egg"}
NATIVE = {".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".metal"}
"""Suffixes of native sources, which may include files beside them."""
DATA = {
    *(".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".txt", ".csv", ".tsv", ".xml", ".parquet"),
    *(".arrow", ".feather", ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".npy", ".npz", ".pkl", ".pickle"),
    *(".joblib", ".h5", ".hdf5", ".onnx", ".mat", ".model", ".vocab", ".png", ".jpg", ".jpeg", ".dat", ".db"),
    *(".sqlite", ".zip"),
}

MOST_READ_BYTES = 32 * 2**20
"""Maximum size of a data file that is read as a whole, to keep a dry-run short."""
SAMPLES = 64
SAMPLE_BYTES = 2**16
"""Number and size of the samples of a larger file, spread evenly over the file."""
MOST_LISTED = 10_000
"""Number of files and folders after which listing a folder stops."""

UNREADABLE = "unreadable"
"""The digest of a file that cannot be read, or has vanished since it was listed; such a file is no part of a key."""

MOST_ABOVE = 2
"""Number of folders above a source's folder that are searched for the files that the source names."""

RESULTS = "plan.json"
"""A file that marks a results folder, whose files are not listed."""


class NamedFiles:
    def __init__(self, folders: Iterable[Path], is_left_out: Callable[[Path], bool] = lambda _path: False) -> None:
        self.is_left_out = is_left_out
        self.bases = list(dict.fromkeys(folders))
        """Folders to search for relative names, besides the source's folder and MOST_ABOVE folders above it."""
        self.entries: dict[Path, set[str]] = {}
        self.listed: dict[Path, list[Path]] = {}

    def named(self, text: str, beside: Path, within: Sequence[Path] = ()) -> Iterator[Path]:
        """The files that a literal in a source in folder `beside` may name: one file, or all files below a folder.

        If `within` is given, only those in these folders.
        """
        for path in self._paths(text, beside):
            if within and not any(map(path.is_relative_to, within)):
                continue
            if path.parts[1:2] in (("dev",), ("proc",), ("sys",)):  # the kernel's files, whose content keeps changing
                continue
            if self.is_left_out(path):
                continue
            if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for a long name or a folder without access
                yield path
                if path.suffix in NATIVE:
                    names = sorted(self._entries(path.parent))
                    yield from (path.with_name(name) for name in names if Path(name).suffix in NATIVE)
            elif self._counts_whole(path, beside):
                yield from self.below(path)

    def below(self, folder: Path) -> list[Path]:
        """Files below a folder (see MOST_LISTED), without hidden files, installed packages and results."""
        if folder not in self.listed:
            self.listed[folder] = [path for path in _files_below(folder) if not self.is_left_out(path)]
        return self.listed[folder]

    def _paths(self, text: str, beside: Path) -> Iterator[Path]:
        if text.startswith(("/", "~")):
            yield Path(os.path.normpath(os.path.expanduser(text)))  # noqa: PTH111 - Path raises for an unknown user
            return
        relative = os.path.normpath(text)
        for base in dict.fromkeys([beside, *list(beside.parents)[:MOST_ABOVE], *self.bases]):
            if relative.startswith("..") or relative.partition("/")[0] in self._entries(base):
                yield Path(os.path.normpath(base / relative))

    def _counts_whole(self, folder: Path, beside: Path) -> bool:
        """False for a hidden folder, a top-level one such as /usr, and one that contains the source or a base."""
        around = {path for base in (beside, *self.bases) for path in (base, *base.parents)}
        hidden = any(part.startswith(".") for part in folder.parts if part not in beside.parts)
        return folder not in around and len(folder.parts) > 2 and not hidden and os.path.isdir(folder)  # noqa: PTH112

    def _entries(self, folder: Path) -> set[str]:
        if folder not in self.entries:
            try:
                self.entries[folder] = {path.name for path in folder.iterdir()} | {"."}
            except OSError:
                self.entries[folder] = set()
        return self.entries[folder]


def _files_below(folder: Path) -> Iterator[Path]:
    count, seen = 0, set()
    for path, folders, files in os.walk(folder, followlinks=True):
        count += 1
        if count >= MOST_LISTED:
            return
        real = os.path.realpath(path)
        if real in seen or {RESULTS, "pyvenv.cfg"} & {*files}:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in LEFT_OUT)
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(path, name)
                count += 1


def content_keys(files: Mapping[str, Path]) -> dict[str, str]:
    """Digests of data files by label; times of files do not count."""
    return {label: digest_or_none(files[label]) or UNREADABLE for label in sorted(files)}


def digest_of(file: Path) -> str:
    """Digest of a file's content, cached until its size or time changes."""
    state = file.stat()
    return _digest(file, state.st_size, state.st_mtime_ns)


@cache
def _digest(path: Path, _size: int, _changed_ns: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_or_none(file: Path) -> str | None:
    """Digest of a data file, the same whichever other files there are; None if it is unreadable, as a dangling link."""
    try:
        state = file.stat()
        return digest_of(file) if state.st_size <= MOST_READ_BYTES else _samples(file, state.st_size, state.st_mtime_ns)
    except OSError:
        return None


@cache
def _samples(file: Path, size: int, _changed_ns: int) -> str:
    """Digest of a file's size and of SAMPLES parts of its content."""
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        for number in range(SAMPLES):
            stream.seek(max(0, size - SAMPLE_BYTES) * number // (SAMPLES - 1))
            digest.update(stream.read(SAMPLE_BYTES))
    return digest.hexdigest()
