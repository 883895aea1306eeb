"""The locks by which trials on this host wait for each other, in one folder for all users.

The kernel frees a lock when its process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from crossover.errors import UserError

LEASES = "CROSSOVER_LEASES"
"""The environment variable that names another folder for the locks."""

HELD: set[int] = set()
"""Descriptors of locks; a forked child closes its copies, or it would keep the lock after its parent."""

LONGEST_NOTE = 400
SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""In a folder that everybody may write to, a file may be a link to elsewhere, or a pipe that never answers."""


def folder_of_locks(environment: Mapping[str, str]) -> Path:
    """The folder that CROSSOVER_LEASES names, or one for all users of this machine."""
    if named := environment.get(LEASES):
        return Path(named)
    # Not TMPDIR: it may differ between users and between jobs, and then nobody would see the others' locks.
    shared = Path("/tmp")
    return (shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())) / "crossover-leases"


def make_folder(folder: Path) -> Path:
    """Make the folder of the locks, in which all users may write, unless it exists; raises UserError."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), open_to_all():
            folder.mkdir()
            folder.chmod(0o1777)
    except OSError as error:
        raise unfit(folder, why(error)) from error
    if folder.is_symlink() or not folder.is_dir():  # a link would have every user write where it leads
        raise unfit(folder, "it is a link, or no folder")
    return folder


@contextmanager
def open_to_all() -> Iterator[None]:
    """Make files open to all users from the start; a later chmod would refuse a user who comes in between."""
    umask = os.umask(0)
    try:
        yield
    finally:
        os.umask(umask)


@contextmanager
def locked(path: Path, how: int, busy: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a file's lock, `fcntl.LOCK_EX` or `LOCK_SH`, while the block runs.

    If another process holds it, calls `busy` and waits; without `busy` raises BlockingIOError. Raises UserError if the
    file cannot be locked.
    """
    descriptor = _opened(path)
    HELD.add(descriptor)
    try:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if busy is None:
                raise
            busy()
            fcntl.flock(descriptor, how)
        except OSError as error:  # a file system without locks, as some network and container mounts
            raise unfit(path.parent, why(error)) from error
        yield
    finally:
        HELD.discard(descriptor)
        os.close(descriptor)


def _opened(path: Path) -> int:
    """A file that all users may lock, made if it is missing; raises UserError if it cannot be opened."""
    try:
        with open_to_all():
            try:
                return os.open(path, os.O_RDWR | SAFELY | os.O_CREAT, 0o666)
            except PermissionError:  # the kernel may refuse O_CREAT for another user's file (fs.protected_regular)
                return os.open(path, os.O_RDWR | SAFELY)
    except OSError as error:
        raise unfit(path.parent, why(error)) from error


def why(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def unfit(folder: Path, reason: str) -> UserError:
    return UserError(
        f"{folder} cannot hold the locks by which trials on this machine wait for each other ({reason}); "
        "allowed: a folder on a local drive in which all may write (`chmod 1777`), no link; "
        f"fix it or set {LEASES} to another one"
    )


def write_note(path: Path, holder: str | None) -> None:
    """Note this process in its lock's file; None wipes the note. A note that cannot be written is left out.

    The file is written in place: where the sticky bit is set, no user may replace another's.
    """
    note = f"{os.getpid()}\n{holder} (pid {os.getpid()}, user {os.getuid()}, since {datetime.now():%Y-%m-%d %H:%M:%S})"
    with suppress(OSError), os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC | SAFELY), "w", encoding="utf-8") as file:
        file.write("" if holder is None else note)


def holder_words(path: Path, unknown: str = "a process that left no note") -> str:
    """Which process holds a lock, in one line; `unknown` if it left no note."""
    pid, words = read_note(path)
    return words if runs(pid) else unknown


def read_note(path: Path) -> tuple[int | None, str]:
    """The id and the description of the process in a note; None and an empty text without a note."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | SAFELY), "rb") as file:
            pid, words = file.read(LONGEST_NOTE).decode("utf-8", errors="replace").split("\n")
            return int(pid), "".join(filter(str.isprintable, words))
    except (OSError, ValueError):
        return None, ""


def runs(pid: int | None) -> bool:
    """Whether a noted process still runs: a killed process leaves its note."""
    import psutil  # only who waits or measures needs it: a trial should start quickly

    return pid is not None and psutil.pid_exists(pid)


def _close_in_child() -> None:
    for descriptor in HELD:
        os.close(descriptor)
    HELD.clear()


os.register_at_fork(after_in_child=_close_in_child)
