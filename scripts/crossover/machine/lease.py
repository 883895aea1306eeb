"""The lease of a particular GPU: never two trials on one, be they of two workflows or of two users."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover.config.words import is_cpu
from crossover.errors import UserError
from crossover.machine.gpus import Gpus, find_gpus
from crossover.machine.holders import is_held, read_holder, write_holder

LEASES = "CROSSOVER_LEASES"
"""The environment variable that names another folder for the locks."""

TELL_AGAIN_S = 60.0
"""Seconds after which a waiting trial says again for whom it waits."""


@dataclass(frozen=True)
class Lease:
    """What a trial may use until it gives it back."""

    uuid: str | None
    """Of the GPU or MIG instance; None for a device that has no such name."""
    environment: dict[str, str]
    """Variables to set for the process that measures, so that it finds this GPU and no other."""
    waited_s: float
    gpus: Gpus
    """All NVIDIA GPUs of the machine, with which this one shares its CPUs."""


@contextmanager
def lease(
    device: str,
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    holder: str,
    tell: Callable[[str], None],
    nvml: Any = None,
    poll_s: float = 0.2,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Lease]:
    """Hold the first free GPU of a kind of device while the block runs, and wait where all are held.

    `holder` is what others read while they wait for this trial; `tell` takes the line that this trial prints while it
    waits. `nvml` stands in for the module pynvml. The locks lie in `folder`, else where CROSSOVER_LEASES says, else in
    one folder for all users of this machine. The kernel frees a lock when its process ends, however it ends.

    Nothing is held for the CPU, nor where no GPU is visible: then the process that measures says what is missing.
    Raises UserError where the folder cannot hold locks.
    """
    offered, gpus = _offered(device, environment, nvml)
    if not offered:
        yield Lease(None, {}, 0.0, gpus)
        return
    shared = make_folder(folder or folder_of_locks(environment))
    started = clock()
    taken = _take_one([_Seat(name, shared) for name in offered], tell, poll_s, sleep, clock)
    try:
        write_holder(taken.path, holder)
        uuid = taken.name if taken.name.startswith(("GPU-", "MIG-")) else None
        yield Lease(uuid, {"CUDA_VISIBLE_DEVICES": uuid} if uuid else {}, clock() - started, gpus)
    finally:
        write_holder(taken.path, None)
        taken.lock.release()


def others_held(uuid: str, environment: Mapping[str, str]) -> int:
    """How many other GPUs, or instances of GPUs, are leased on this machine just now, as far as their holders say.

    Only the holders' notes are read: to try a lock would keep others from it for a moment.
    """
    own = _path_of_lock(folder_of_locks(environment), uuid)
    return sum(path != own and is_held(path) for path in own.parent.glob("*.lock"))


def folder_of_locks(environment: Mapping[str, str]) -> Path:
    """The folder that CROSSOVER_LEASES names, or one for all users of this machine."""
    return Path(environment.get(LEASES) or _default_folder())


def make_folder(folder: Path) -> Path:
    """Make the folder of the locks, in which all users may write, unless it is there; raises UserError if it cannot."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), _for_everyone():
            folder.mkdir()
            folder.chmod(0o1777)
    except OSError as error:
        raise _unfit(folder, _why(error)) from error
    if folder.is_symlink():  # whoever made it could have every user write where the link leads
        raise _unfit(folder, "it is a link")
    if not folder.is_dir():
        raise _unfit(folder, "it is not a folder")
    return folder


class _Seat:
    """One lock, named as the GPU or the kind of device that it guards."""

    def __init__(self, name: str, folder: Path) -> None:
        from filelock import FileLock  # not for a CPU trial, which should start quickly

        self.name = name
        self.path = _path_of_lock(folder, name)
        # A lock that the kernel does not free when its holder is killed would block the GPU for good: no fallback.
        self.lock = FileLock(self.path, fallback_to_soft=False)

    def take(self) -> bool:
        """Take the lock if it is free."""
        from filelock import Timeout

        try:
            with _for_everyone():
                self.lock.acquire(blocking=False)
        except Timeout:
            return False
        except OSError as error:
            raise _unfit(self.path.parent, _why(error)) from error
        return True


def _path_of_lock(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '_')}.lock"


def _take_one(
    seats: list[_Seat],
    tell: Callable[[str], None],
    poll_s: float,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> _Seat:
    started = clock()
    tell_at = started
    while True:
        for seat in seats:
            if seat.take():
                return seat
        if (now := clock()) >= tell_at:
            held = "; ".join(f"{seat.name} is held by {read_holder(seat.path)}" for seat in seats)
            tell(f"waiting for a GPU, {now - started:.0f} s so far: {held}")
            tell_at = now + TELL_AGAIN_S
        sleep(poll_s)


def _offered(device: str, environment: Mapping[str, str], nvml: Any) -> tuple[list[str], Gpus]:
    """Names of the locks that will do: NVIDIA's GPUs have one each, every other kind of device one for the machine."""
    if is_cpu(device):
        return [], Gpus()
    gpus = _nvidia_gpus(environment, nvml) if device == "cuda" else None
    return ([device], Gpus()) if gpus is None else ([gpu.id for gpu in gpus.visible], gpus)


def _nvidia_gpus(environment: Mapping[str, str], nvml: Any) -> Gpus | None:
    """The NVIDIA GPUs; None on a machine without NVML, such as one with AMD GPUs."""
    if nvml is None:
        import pynvml

        nvml = pynvml
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


def _default_folder() -> Path:
    # Not TMPDIR: it may differ between users and between jobs, and then nobody would see the others' locks.
    shared = Path("/tmp")
    return (shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())) / "crossover-leases"


@contextmanager
def _for_everyone() -> Iterator[None]:
    """Make files open to all users from their first moment; a later chmod would refuse a user who comes between."""
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
