from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from crossover.errors import UserError
from crossover.machine.lease import HANDED_DOWN, Lease, hand_down_gpus, lease, others_held
from crossover.machine.locks import LEASES, locked
from fake_nvml import FakeGpu, FakeNvml

TWO = FakeNvml(FakeGpu("GPU-1"), FakeGpu("GPU-2"))
Leaser = Callable[..., AbstractContextManager[Lease]]


def never(*_: Any) -> None:
    pytest.fail("nothing to wait for")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@pytest.fixture
def leaser(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Leaser:
    """Take leases in a temporary folder; a test that waits unexpectedly fails."""
    monkeypatch.setattr("crossover.machine.lease.time.sleep", never)

    def begin(
        device: str = "cuda", environment: dict[str, str] | None = None, nvml: FakeNvml = TWO, **values: Any
    ) -> Any:
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        return lease(device, {LEASES: str(folder), **(environment or {})}, **({"tell": never} | values))

    return begin


def test_a_lease_makes_only_its_gpu_visible(leaser: Leaser) -> None:
    with leaser() as leased:
        assert leased == Lease(("GPU-1",), {"CUDA_VISIBLE_DEVICES": "GPU-1"}, leased.waited_s, leased.gpus)
        assert leased.gpus.visible == ("GPU-1", "GPU-2")
    assert TWO.opened == 0


def test_gpus_passed_by_the_main_process_are_leased_without_nvml(
    leaser: Leaser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPUs near each GPU are passed, too."""
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(FakeGpu("GPU-1", near=(0, 3)), FakeGpu("GPU-2")))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    monkeypatch.setenv(HANDED_DOWN, "")
    hand_down_gpus()
    with leaser(environment={HANDED_DOWN: os.environ[HANDED_DOWN]}, nvml=FakeNvml(there=False)) as leased:
        assert leased.uuids == ("GPU-2",)
        assert [(gpu.usable, gpu.near) for gpu in leased.gpus.installed] == [(("GPU-1",), {0, 3}), (("GPU-2",), set())]


def test_other_leased_gpus_are_counted(leaser: Leaser, folder: Path) -> None:
    named = {LEASES: str(folder)}
    assert others_held("GPU-1", named) == 0
    with leaser():
        assert others_held("GPU-1", named) == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fcntl.flock", never)  # trying a lock would block other processes
            assert others_held("GPU-2", named) == 1
        with leaser(), leaser("mps"):
            assert others_held("GPU-1", named) == 2
        assert others_held("GPU-1", named) == 0  # its lock file is still there
    assert others_held("GPU-2", named) == 0


@pytest.mark.parametrize(
    ("device", "environment", "nvml"),
    [
        ("cpu", {}, TWO),
        ("cpu-half", {}, TWO),
        ("cuda", {"CUDA_VISIBLE_DEVICES": ""}, TWO),
        ("cuda", {}, FakeNvml()),
    ],
)
def test_without_a_gpu_nothing_is_leased(
    leaser: Leaser, folder: Path, device: str, environment: dict[str, str], nvml: FakeNvml
) -> None:
    with leaser(device, environment, nvml=nvml) as first, leaser(device, environment, nvml=nvml) as second:
        assert [(leased.uuids, leased.environment, leased.waited_s) for leased in (first, second)] == [
            ((), {}, 0.0)
        ] * 2
    assert not folder.exists()


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_accelerators_without_uuids_share_one_lease(
    leaser: Leaser, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    absent = FakeNvml(there=False)
    with ExitStack() as first:
        leased = first.enter_context(leaser(device, nvml=absent))
        assert (leased.uuids, leased.environment) == ((), {})
        waiting = Waiting(first, 0.1)
        monkeypatch.setattr("crossover.machine.lease.time", waiting)
        with leaser(device, nvml=absent, tell=waiting.tell):
            assert waiting.now_s == 1000 + 7 / 64  # the first poll after 0.1 s


def test_a_driver_that_cannot_list_its_gpus_stops_the_trial(leaser: Leaser) -> None:
    broken = FakeNvml(FakeGpu("GPU-1"), counts=False)
    with pytest.raises(UserError, match="driver cannot list its GPUs"), leaser(nvml=broken):
        pass
    assert broken.opened == 0


class Waiting:
    """A clock that advances only by sleeping; at `until_s` the holder releases its lease."""

    def __init__(self, holder: ExitStack, until_s: float) -> None:
        self.now_s = 1000.0
        self.until_s = 1000.0 + until_s
        self.holder = holder
        self.told: list[tuple[float, str]] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.now_s >= self.until_s:
            self.holder.close()

    def tell(self, line: str) -> None:
        self.told.append((self.now_s - 1000.0, line))


def wait(leaser: Leaser, until_s: float) -> Waiting:
    nvml = FakeNvml(FakeGpu("GPU-1"))
    with ExitStack() as first, pytest.MonkeyPatch.context() as patch:
        first.enter_context(leaser(nvml=nvml))
        waiting = Waiting(first, until_s)
        patch.setattr("crossover.machine.lease.time", waiting)
        patch.setattr("crossover.machine.lease.POLL_S", 0.5)
        with leaser(nvml=nvml, tell=waiting.tell) as leased:
            assert leased.uuids == ("GPU-1",)
            assert leased.waited_s == until_s
    return waiting


def test_a_waiting_trial_names_the_holder_after_a_second_and_every_minute(leaser: Leaser) -> None:
    waiting = wait(leaser, 150.0)
    assert [when for when, _ in waiting.told] == [1.0, 61.0, 121.0]
    line = waiting.told[1][1]
    assert line.startswith("waiting for a GPU, 61 s so far: GPU-1 is used by ")
    assert line.endswith(f"(pid {os.getpid()}, user {psutil.Process().username()})")


def test_a_failed_trial_returns_its_gpu(leaser: Leaser) -> None:
    with pytest.raises(ZeroDivisionError), leaser():
        _ = 1 / 0
    with leaser() as leased:
        assert leased.uuids == ("GPU-1",)


def test_all_users_may_take_the_locks(leaser: Leaser, folder: Path) -> None:
    before = os.umask(0o077)
    try:
        with leaser():
            assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
            assert stat.S_IMODE((folder / "GPU-1.lock").stat().st_mode) == 0o666
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)


def link_to_folder(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (link_to_folder, "it is a link"),
        (lambda path: path.write_text(""), "it is a link, or not a folder"),
        (lambda path: (path.mkdir(), (path / "GPU-1.lock").symlink_to(path / "x")), r"Too many levels .*GPU-1\.lock"),
    ],
)
def test_an_unsuitable_folder_for_locks_is_rejected(
    leaser: Leaser, folder: Path, spoil: Callable[[Path], Any], reason: str
) -> None:
    spoil(folder)
    with pytest.raises(UserError, match=reason) as error, leaser():
        pass
    assert str(folder) in str(error.value)
    assert LEASES in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(folder.parent.glob("elsewhere/*"))


THREE = FakeNvml(FakeGpu("GPU-1"), FakeGpu("GPU-2"), FakeGpu("GPU-3"))


def test_several_gpus_are_leased_together_in_their_order(leaser: Leaser) -> None:
    with leaser("cuda", nvml=THREE) as first, leaser("cuda-2", nvml=THREE) as others:
        assert first.uuids == ("GPU-1",)
        assert others.uuids == ("GPU-2", "GPU-3")
        assert others.environment == {"CUDA_VISIBLE_DEVICES": "GPU-2,GPU-3"}


def test_more_gpus_than_are_visible_are_an_error(leaser: Leaser) -> None:
    with pytest.raises(UserError, match="device cuda-4: it needs 4 NVIDIA GPUs, and this process may use 3"):
        leaser("cuda-4", nvml=THREE).__enter__()


def test_a_trial_that_waits_for_several_gpus_holds_none_and_keeps_its_place(
    leaser: Leaser, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as first:
        first.enter_context(leaser("cuda", nvml=THREE))
        second = first.enter_context(leaser("cuda", nvml=THREE))
        assert second.uuids == ("GPU-2",)

        class Watching(Waiting):
            def sleep(self, seconds: float) -> None:
                """While the trial waits, the free GPU is free, and another trial that wants it would queue."""
                with locked(folder / "GPU-3.lock", fcntl.LOCK_EX):
                    pass
                with pytest.raises(BlockingIOError), locked(folder / "GPU-1.queue", fcntl.LOCK_EX):
                    pass
                super().sleep(seconds)

        waiting = Watching(first, 0.1)
        monkeypatch.setattr("crossover.machine.lease.time", waiting)
        with leaser("cuda-2", nvml=THREE, tell=waiting.tell) as leased:
            assert leased.uuids == ("GPU-1", "GPU-2")
            assert leased.waited_s > 0


def test_where_no_nvidia_gpu_is_found_none_is_said_to_be_usable(leaser: Leaser) -> None:
    with pytest.raises(UserError, match="device cuda-2: it needs 2 NVIDIA GPUs, and this process may use none"):
        leaser("cuda-2", nvml=FakeNvml(there=False)).__enter__()
