"""Leases of GPUs, so that trials never share a GPU, even across workflows and users."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crossover.config.words import is_cpu, ranks_of_side, unit_of_side
from crossover.errors import UserError
from crossover.machine.gpus import Gpus, find_gpus
from crossover.machine.locks import (
    QUICK_POLL_S,
    QUIET_S,
    describe,
    folder_of_locks,
    holders_of,
    locked,
    locks_on,
    make_folder,
)

HANDED_DOWN = "CROSSOVER_GPUS"

TELL_AGAIN_S = 60.0

POLL_S = 0.2


@dataclass(frozen=True)
class Lease:
    """The result of `lease`; `uuids` and `environment` are empty if nothing was leased."""

    uuids: tuple[str, ...]
    """UUIDs of the leased NVIDIA GPUs or MIG instances; empty for other accelerators."""
    environment: dict[str, str]
    """Environment variables that make only these GPUs visible to the measuring process."""
    waited_s: float
    gpus: Gpus
    """The machine's NVIDIA GPUs, among which its CPUs are divided; empty for devices other than cuda."""


@contextmanager
def lease(device: str, environment: Mapping[str, str], tell: Callable[[str], None]) -> Iterator[Lease]:
    """Lease the first free GPU, or several for a side such as cuda-2, while the block runs; wait if need be.

    `tell` receives lines while this trial waits. Nothing is leased for the CPU, or if no GPU is visible; in that case
    the measuring process reports the missing GPU. Raises UserError if the folder of locks cannot be used, if the NVIDIA
    driver cannot list its GPUs, or if fewer are visible than needed.
    """
    names, gpus = _offered(device, environment)
    if not names:
        yield Lease((), {}, 0.0, gpus)
        return
    number, usable = ranks_of_side(device), len(gpus.visible)
    if number > max(1, usable):
        raise UserError(
            f"device {device}: it needs {number} NVIDIA GPUs, and this process may use {usable or 'none'}; leave it out"
        )
    folder = make_folder(folder_of_locks(environment))
    started = time.monotonic()
    with ExitStack() as locks:
        # Later trials wait in the queue, so that those on one GPU cannot starve one that waits for several.
        queue = folder / f"{names[0].replace('/', '_')}.queue"
        with locked(queue, fcntl.LOCK_EX, lambda: tell("waiting for a GPU, behind another trial that waits")):
            taken = _take_first_free(locks, number, names, folder, tell)
        uuids = tuple(name for name in taken if name.startswith(("GPU-", "MIG-")))
        yield Lease(uuids, {"CUDA_VISIBLE_DEVICES": ",".join(uuids)} if uuids else {}, time.monotonic() - started, gpus)


def others_held(uuid: str, environment: Mapping[str, str]) -> int:
    """Number of other GPUs or MIG instances that are leased on this machine, by the kernel's list of locks.

    The locks themselves are not tested, since that would block other trials for a moment.
    """
    leased = _path_of_lock(folder_of_locks(environment), uuid)
    return sum(bool(locks_on(path)) for path in leased.parent.glob("*.lock") if path != leased)


def _path_of_lock(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '_')}.lock"


def _take_first_free(
    locks: ExitStack, number: int, names: Sequence[str], folder: Path, tell: Callable[[str], None]
) -> list[str]:
    """Lock `number` of the names at once, in their order; until so many are free, hold none."""
    started = time.monotonic()
    tell_at = started + QUIET_S
    while True:
        with ExitStack() as held:
            taken: list[str] = []
            for name in names:
                with suppress(BlockingIOError):
                    held.enter_context(locked(_path_of_lock(folder, name), fcntl.LOCK_EX))
                    taken.append(name)
                if len(taken) == number:
                    locks.enter_context(held.pop_all())
                    return taken
        if (now := time.monotonic()) >= tell_at:
            holders = "; ".join(
                f"{name} is used by {describe(holders_of(_path_of_lock(folder, name)))}" for name in names
            )
            tell(f"waiting for a GPU, {now - started:.0f} s so far: {holders}")
            tell_at = now + TELL_AGAIN_S
        time.sleep(QUICK_POLL_S if now < started + QUIET_S else POLL_S)


def _offered(device: str, environment: Mapping[str, str]) -> tuple[list[str], Gpus]:
    """Names to lock for a device (UUIDs of the visible NVIDIA GPUs, or the device's name), and the NVIDIA GPUs."""
    if is_cpu(device):
        return [], Gpus()
    device = unit_of_side(device)
    gpus = _nvidia_gpus(environment) if device == "cuda" else None
    return ([device], Gpus()) if gpus is None else (list(gpus.visible), gpus)


def hand_down_gpus() -> None:
    """Pass the list of GPUs to the jobs on this machine, which saves each the 0.17 s of opening NVML."""
    if gpus := _nvidia_gpus(os.environ):
        os.environ[HANDED_DOWN] = gpus.to_json()


def _nvidia_gpus(environment: Mapping[str, str]) -> Gpus | None:
    """The NVIDIA GPUs; None without NVML, as on a machine with AMD GPUs."""
    if handed_down := environment.get(HANDED_DOWN):
        return Gpus.from_json(handed_down)
    import pynvml as nvml  # not needed for CPU trials

    from crossover.machine.nvml import session

    with session(nvml) as is_open:
        try:
            return find_gpus(environment, nvml) if is_open else None
        except nvml.NVMLError as error:  # without the list, two trials might share a GPU
            raise UserError(
                f"device cuda: the NVIDIA driver cannot list its GPUs ({error}); fix it until `nvidia-smi -L` works"
            ) from error
