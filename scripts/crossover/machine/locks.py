"""Locks by which trials on this host wait for each other, in a folder that all users share.

The kernel releases a lock when the process that holds it ends, for whatever reason.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crossover.errors import UserError
from crossover.machine.kernel import read_kernel

LEASES = "CROSSOVER_LEASES"

HELD: set[int] = set()
"""Descriptors of locks. A forked child closes its copies, which would keep the locks held after the parent ends."""

QUIET_S = 1.0
"""A trial says that it waits only after this time, since a finished trial keeps its locks until its process is gone."""
QUICK_POLL_S = 1 / 64

PRIVATE = 0o600
SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags for opening files in a world-writable folder: do not follow a link, and do not wait for a pipe."""


def folder_of_locks(environment: Mapping[str, str]) -> Path:
    """The folder given in CROSSOVER_LEASES, or the default folder for all users of this machine."""
    if named := environment.get(LEASES):
        return Path(named)
    # TMPDIR may differ between users and jobs, which would then not see each other's locks.
    shared = Path("/tmp")
    return (shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())) / "crossover-leases"


def make_folder(folder: Path) -> Path:
    """Create the folder of the locks, writable by all users, unless it exists; raises UserError if it is unfit."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), open_to_all():
            folder.mkdir()
            folder.chmod(0o1777)
    except OSError as error:
        raise unfit(folder, error) from error
    if folder.is_symlink() or not folder.is_dir():  # a link would make every user write to its target
        raise unfit(folder, "it is a link, or not a folder")
    return folder


@contextmanager
def open_to_all() -> Iterator[None]:
    """Set the umask to 0 while the block runs, so that a new file is open to all users from the start."""
    umask = os.umask(0)
    try:
        yield
    finally:
        os.umask(umask)


@contextmanager
def locked(path: Path, how: int, busy: Callable[[], None] | None = None, mode: int = 0o666) -> Iterator[None]:
    """Hold a lock on a file (`fcntl.LOCK_EX` or `LOCK_SH`) while the block runs.

    If another process holds a conflicting lock, waits, and calls `busy` after QUIET_S; without `busy`, raises
    BlockingIOError. Raises UserError if the file cannot be locked. A new file has this `mode`; no other user can lock a
    file that is PRIVATE.
    """
    descriptor = _opened(path, mode)
    if mode == PRIVATE and os.fstat(descriptor).st_uid != os.geteuid():
        os.close(descriptor)
        raise unfit(path.parent, f"{path.name} belongs to another user")
    HELD.add(descriptor)
    try:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if busy is None:
                raise
            if not _is_soon_free(descriptor, how):
                busy()
                fcntl.flock(descriptor, how)
        except OSError as error:  # a file system without locks, such as some network and container mounts
            raise unfit(path.parent, error) from error
        yield
    finally:
        HELD.discard(descriptor)
        os.close(descriptor)


def _is_soon_free(descriptor: int, how: int) -> bool:
    for _ in range(round(QUIET_S / QUICK_POLL_S)):
        time.sleep(QUICK_POLL_S)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            return True
    return False


def _opened(path: Path, mode: int) -> int:
    try:
        with open_to_all():
            try:
                return os.open(path, os.O_RDWR | SAFELY | os.O_CREAT, mode)
            except PermissionError:  # the kernel may refuse O_CREAT for another user's file (fs.protected_regular)
                return os.open(path, os.O_RDWR | SAFELY)
    except OSError as error:
        raise unfit(path.parent, error) from error


def unfit(folder: Path, reason: OSError | str) -> UserError:
    return UserError(
        f"{folder} cannot be used for the locks by which trials on this machine wait for each other ({reason}); "
        "allowed: a folder on a local drive in which all users may write (`chmod 1777`), not a link; "
        f"fix it or set {LEASES} to another folder"
    )


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock, by the kernel's list, which all users can read."""

    pid: int
    is_exclusive: bool
    description: str
    running_s: float
    """Time since the process started; 0 if unknown."""


def holders_of(path: Path, root: Path = Path("/")) -> list[Holder]:
    """The processes that hold a lock on a file."""
    return [_holder(*lock) for lock in locks_on(path, root)]


def locks_on(path: Path, root: Path = Path("/")) -> list[tuple[int, bool, int]]:
    """The locks held on a file, which need not be readable: process id, whether exclusive, and the file's owner.

    Empty outside Linux. Source: man 5 proc_locks. A line is `1: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0
    EOF`; `->` marks one that waits. A process of another PID namespace is missing or has no valid id.
    """
    try:
        state = path.stat()
    except OSError:
        return []
    of_file = f"{os.major(state.st_dev):02x}:{os.minor(state.st_dev):02x}:{state.st_ino}"
    lines = [line.split() for line in (read_kernel(root / "proc/locks") or "").splitlines()]
    held = [line for line in lines if line[1:2] == ["FLOCK"] and of_file in line]
    return [(int(line[4]), line[3] == "WRITE", state.st_uid) for line in held]


def _holder(pid: int, is_exclusive: bool, owner: int) -> Holder:
    import psutil  # imported here, so that a trial starts quickly

    try:
        process = psutil.Process(pid)
        user, running_s = process.username(), time.time() - process.create_time()
        name = next((Path(word).name for word in process.cmdline() if word.endswith(".py")), process.name())
    except (psutil.Error, ValueError):
        name, user, running_s = "a process", str(owner), 0.0
    return Holder(pid, is_exclusive, f"{name} (pid {pid}, user {user})", running_s)


def describe(holders: Iterable[Holder]) -> str:
    return " and ".join(holder.description for holder in holders) or "a process that the kernel does not list"


def _close_in_child() -> None:
    for descriptor in HELD:
        os.close(descriptor)
    HELD.clear()


os.register_at_fork(after_in_child=_close_in_child)
