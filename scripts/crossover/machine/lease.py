"""The lease of a particular GPU: never two trials on one, whichever workflow or user started them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from crossover.config.words import is_cpu
from crossover.errors import UserError
from crossover.machine.gpus import Gpus, find_gpus

if TYPE_CHECKING:
    from filelock import FileLock

LEASES = "CROSSOVER_LEASES"
"""The environment variable that names another folder for the locks."""

HANDED_DOWN = "CROSSOVER_GPUS"
"""The environment variable that tells the jobs of this machine which GPUs the main process found."""

TELL_AGAIN_S = 60.0
"""Seconds after which a waiting trial says again what it waits for."""

POLL_S = 0.2
LONGEST_NOTE = 400
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""In a folder that all may write in, a file may be a link to elsewhere, or a pipe that never answers."""


@dataclass(frozen=True)
class Lease:
    """What a trial may use until it gives it back."""

    uuid: str | None
    """Of the GPU or MIG instance; None for a device without one."""
    environment: dict[str, str]
    """Variables with which the measuring process finds this GPU and no other."""
    waited_s: float
    gpus: Gpus
    """All NVIDIA GPUs of the machine, with which this one shares its CPUs."""


@contextmanager
def lease(device: str, environment: Mapping[str, str], *, holder: str, tell: Callable[[str], None]) -> Iterator[Lease]:
    """Hold the first free GPU while the block runs; wait if all are held.

    `holder` is what others read while they wait for this trial; `tell` takes the line that this trial prints while it
    waits. The kernel frees a lock when its process ends, however it ends.

    Nothing is held for the CPU, or if no GPU is visible: then the measuring process says what is missing. Raises
    UserError if the folder cannot hold locks.
    """
    names, gpus = _offered(device, environment)
    if not names:
        yield Lease(None, {}, 0.0, gpus)
        return
    from filelock import FileLock  # not for a CPU trial, which should start quickly

    folder = _make_folder(folder_of_locks(environment))
    started = time.monotonic()
    # A lock that the kernel does not free when its holder is killed would block the GPU for good: no fallback.
    locks = {name: FileLock(_path_of_lock(folder, name), fallback_to_soft=False) for name in names}
    name = _take_one(locks, folder, tell)
    path = _path_of_lock(folder, name)
    try:
        _write_note(path, holder)
        uuid = name if name.startswith(("GPU-", "MIG-")) else None
        yield Lease(uuid, {"CUDA_VISIBLE_DEVICES": uuid} if uuid else {}, time.monotonic() - started, gpus)
    finally:
        _write_note(path, None)
        locks[name].release()


def others_held(uuid: str, environment: Mapping[str, str]) -> int:
    """How many other GPUs or MIG instances are leased on this machine now, by their holders' notes.

    Trying a lock would keep others from it for a moment. A holder in another PID namespace is not seen.
    """
    own = _path_of_lock(folder_of_locks(environment), uuid)
    return sum(_runs(_read_note(path)[0]) for path in own.parent.glob("*.lock") if path != own)


def folder_of_locks(environment: Mapping[str, str]) -> Path:
    """The folder that CROSSOVER_LEASES names, or one for all users of this machine."""
    if named := environment.get(LEASES):
        return Path(named)
    # Not TMPDIR: it may differ between users and between jobs, and then nobody would see the others' locks.
    shared = Path("/tmp")
    return (shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())) / "crossover-leases"


def _make_folder(folder: Path) -> Path:
    """Make the folder of the locks, in which all users may write, unless it exists; raises UserError."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), _for_everyone():
            folder.mkdir()
            folder.chmod(0o1777)
    except OSError as error:
        raise _unfit(folder, _why(error)) from error
    if folder.is_symlink() or not folder.is_dir():  # a link would have every user write where it leads
        raise _unfit(folder, "it is a link, or no folder")
    return folder


def _path_of_lock(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '_')}.lock"


def _take_one(locks: Mapping[str, FileLock], folder: Path, tell: Callable[[str], None]) -> str:
    """Take the first lock that becomes free; returns its name."""
    started = tell_at = time.monotonic()
    while True:
        for name, lock in locks.items():
            if _take(lock, folder):
                return name
        if (now := time.monotonic()) >= tell_at:
            held = "; ".join(f"{name} is held by {_holder_words(_path_of_lock(folder, name))}" for name in locks)
            tell(f"waiting for a GPU, {now - started:.0f} s so far: {held}")
            tell_at = now + TELL_AGAIN_S
        time.sleep(POLL_S)


def _take(lock: FileLock, folder: Path) -> bool:
    """Take a lock if it is free."""
    from filelock import Timeout

    try:
        with _for_everyone():
            lock.acquire(blocking=False)
    except Timeout:
        return False
    except OSError as error:
        raise _unfit(folder, _why(error)) from error
    return True


def _offered(device: str, environment: Mapping[str, str]) -> tuple[list[str], Gpus]:
    """Names of the locks that will do: one per NVIDIA GPU; for other kinds of device one for the whole machine."""
    if is_cpu(device):
        return [], Gpus()
    gpus = _nvidia_gpus(environment) if device == "cuda" else None
    return ([device], Gpus()) if gpus is None else (list(gpus.visible), gpus)


def hand_down_gpus() -> None:
    """Tell the jobs of this machine its GPUs: to open NVML takes each a sixth of a second."""
    if gpus := _nvidia_gpus(os.environ):
        os.environ[HANDED_DOWN] = gpus.to_json()


def _nvidia_gpus(environment: Mapping[str, str]) -> Gpus | None:
    """The NVIDIA GPUs; None on a machine without NVML, such as one with AMD GPUs."""
    if handed_down := environment.get(HANDED_DOWN):
        return Gpus.from_json(handed_down)
    import pynvml as nvml  # not for a CPU trial

    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        return find_gpus(environment, nvml)
    except nvml.NVMLError as error:  # to go on as if there were none would share a GPU with another trial
        raise UserError(
            f"device cuda: the NVIDIA driver cannot list its GPUs ({error}); mend it until `nvidia-smi -L` lists them"
        ) from error
    finally:
        nvml.nvmlShutdown()


@contextmanager
def _for_everyone() -> Iterator[None]:
    """Make files open to all users from the start; a later chmod would refuse a user who comes in between."""
    umask = os.umask(0)
    try:
        yield
    finally:
        os.umask(umask)


def _why(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def _unfit(folder: Path, reason: str) -> UserError:
    return UserError(
        f"lease of a GPU: {folder} cannot hold the locks that all users of this machine share ({reason}); "
        "allowed: a folder on a local drive in which all may write (`chmod 1777`), no link; "
        f"mend it or set {LEASES} to another one"
    )


def _write_note(path: Path, holder: str | None) -> None:
    """Note this process in its lock's file; None wipes the note. A note that cannot be written is left out.

    The file is written in place: where the sticky bit is set, no user may replace another's.
    """
    note = f"{os.getpid()}\n{holder} (pid {os.getpid()}, user {os.getuid()}, since {datetime.now():%Y-%m-%d %H:%M:%S})"
    with suppress(OSError), os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC | _SAFELY), "w", encoding="utf-8") as file:
        file.write("" if holder is None else note)


def _holder_words(path: Path) -> str:
    """Which process holds a lock, in one line, as far as it left a note."""
    pid, words = _read_note(path)
    return words if _runs(pid) else "a process that left no note"


def _read_note(path: Path) -> tuple[int | None, str]:
    """The process that noted itself, and its words for the terminal, whoever wrote them; None if there is no note."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _SAFELY), "rb") as file:
            pid, words = file.read(LONGEST_NOTE).decode("utf-8", errors="replace").split("\n")
            return int(pid), "".join(filter(str.isprintable, words))
    except (OSError, ValueError):
        return None, ""


def _runs(pid: int | None) -> bool:
    """Whether a noted process lives: a holder that was killed wipes nothing."""
    import psutil  # only who waits or measures needs it: a trial should start quickly

    return pid is not None and psutil.pid_exists(pid)
