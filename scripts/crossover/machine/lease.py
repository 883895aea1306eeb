"""GPU leases: two trials never share a GPU, whichever workflow or user started them."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crossover.config.words import is_cpu
from crossover.errors import UserError
from crossover.machine.gpus import Gpus, find_gpus
from crossover.machine.locks import (
    folder_of_locks,
    holder_words,
    locked,
    make_folder,
    read_note,
    runs,
    write_note,
)

HANDED_DOWN = "CROSSOVER_GPUS"
"""The environment variable that passes the GPUs that the main process found to its jobs."""

TELL_AGAIN_S = 60.0
"""Seconds between two messages of a waiting trial."""

POLL_S = 0.2


@dataclass(frozen=True)
class Lease:
    """A leased GPU."""

    uuid: str | None
    """UUID of the GPU or MIG instance; None for a device without a UUID."""
    environment: dict[str, str]
    """Environment variables that make only this GPU visible to the measuring process."""
    waited_s: float
    gpus: Gpus
    """All NVIDIA GPUs of the machine, which share its CPUs."""


@contextmanager
def lease(device: str, environment: Mapping[str, str], *, holder: str, tell: Callable[[str], None]) -> Iterator[Lease]:
    """Lease the first free GPU while the block runs; wait if all are leased.

    `holder` is shown to others that wait for this trial; `tell` prints what this trial waits for.

    Nothing is leased for the CPU, or if no GPU is visible: then the measuring process reports what is missing. Raises
    UserError if the folder does not support locks.
    """
    names, gpus = _offered(device, environment)
    if not names:
        yield Lease(None, {}, 0.0, gpus)
        return
    folder = make_folder(folder_of_locks(environment))
    started = time.monotonic()
    with ExitStack() as lock:
        name = _take_first_free(lock, names, folder, tell)
        path = _path_of_lock(folder, name)
        write_note(path, holder)
        lock.callback(write_note, path, None)
        uuid = name if name.startswith(("GPU-", "MIG-")) else None
        yield Lease(uuid, {"CUDA_VISIBLE_DEVICES": uuid} if uuid else {}, time.monotonic() - started, gpus)


def others_held(uuid: str, environment: Mapping[str, str]) -> int:
    """Number of other GPUs or MIG instances currently leased on this machine, from their holders' notes.

    Trying a lock would block others for a moment. A holder in another PID namespace is not counted.
    """
    leased = _path_of_lock(folder_of_locks(environment), uuid)
    return sum(runs(read_note(path)[0]) for path in leased.parent.glob("*.lock") if path != leased)


def _path_of_lock(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '_')}.lock"


def _take_first_free(lock: ExitStack, names: Sequence[str], folder: Path, tell: Callable[[str], None]) -> str:
    """Take the first lock that becomes free; returns its name."""
    started = tell_at = time.monotonic()
    while True:
        for name in names:
            with suppress(BlockingIOError):
                lock.enter_context(locked(_path_of_lock(folder, name), fcntl.LOCK_EX))
                return name
        if (now := time.monotonic()) >= tell_at:
            holders = "; ".join(f"{name} is held by {holder_words(_path_of_lock(folder, name))}" for name in names)
            tell(f"waiting for a GPU, {now - started:.0f} s so far: {holders}")
            tell_at = now + TELL_AGAIN_S
        time.sleep(POLL_S)


def _offered(device: str, environment: Mapping[str, str]) -> tuple[list[str], Gpus]:
    """Names of the locks for a device: one per NVIDIA GPU; one per machine for another kind of accelerator."""
    if is_cpu(device):
        return [], Gpus()
    gpus = _nvidia_gpus(environment) if device == "cuda" else None
    return ([device], Gpus()) if gpus is None else (list(gpus.visible), gpus)


def hand_down_gpus() -> None:
    """Pass the GPUs of this machine to its jobs, which then need not open NVML (0.17 s)."""
    if gpus := _nvidia_gpus(os.environ):
        os.environ[HANDED_DOWN] = gpus.to_json()


def _nvidia_gpus(environment: Mapping[str, str]) -> Gpus | None:
    """The NVIDIA GPUs; None on a machine without NVML, such as one with AMD GPUs."""
    if handed_down := environment.get(HANDED_DOWN):
        return Gpus.from_json(handed_down)
    import pynvml as nvml  # imported here, since CPU trials do not need it

    from crossover.machine.nvml import session

    with session(nvml) as is_open:
        try:
            return find_gpus(environment, nvml) if is_open else None
        except nvml.NVMLError as error:  # without the list, two trials might share a GPU
            raise UserError(
                f"device cuda: the NVIDIA driver cannot list its GPUs ({error}); fix it until `nvidia-smi -L` lists "
                "them"
            ) from error
