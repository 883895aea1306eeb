"""Atomic writing, checks whether folders are writable, and checksums of files."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def working_folder() -> Path:
    """The working directory; if it is gone, which Python allows too, the path that it had."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD", "/"))


def relative_path(path: Path | str) -> str:
    """A path relative to the working directory, for messages."""
    return os.path.relpath(path, working_folder())


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same suffix; rename it to `path` if the block succeeds, else delete it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def why_not_writable(folder: Path) -> str | None:
    """The operating system's reason why no file can be created in a folder; None if the folder is writable.

    Permission bits do not show this: root may ignore them, but not write to a read-only file system or to /proc.
    """
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, as `sha256sum` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
