from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crossover.measurement.memory.memory_host import HostPeak, measure_host, sample_host

MB = 1_000_000


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """A process of 100 KiB whose mark, 900 KiB, is from earlier."""
    (tmp_path / "clear_refs").write_text("-")
    write_status(tmp_path, 100, 900)
    return tmp_path


def write_status(process: Path, rss_kib: int, mark_kib: int | None) -> None:
    mark = "" if mark_kib is None else f"VmHWM:\t{mark_kib:8} kB\n"
    (process / "status").write_text(f"Name:\tpython3\nVmPeak:\t  999 kB\n{mark}VmRSS:\t{rss_kib:8} kB\n")


def test_the_mark_is_reset_before_and_read_after(process: Path) -> None:
    seen: list[str] = []

    def run() -> None:
        seen.append((process / "clear_refs").read_text())
        write_status(process, 120, 300)

    assert measure_host(run, process) == HostPeak(100 * 1024, 300 * 1024, "VmHWM")
    assert seen == ["5"]


def test_the_peak_is_never_under_the_base(process: Path) -> None:
    assert measure_host(lambda: write_status(process, 90, 99), process).peak_bytes == 100 * 1024


def test_without_a_mark_to_reset_the_memory_is_sampled(process: Path) -> None:
    (process / "clear_refs").unlink()
    assert measure_host(lambda: None, process).source == "sampled RSS"
    assert not (process / "clear_refs").exists()


def test_a_mark_that_cannot_be_reset_is_not_read(process: Path) -> None:
    (process / "clear_refs").unlink()
    (process / "clear_refs").mkdir()  # to open it for writing fails, for root too
    assert measure_host(lambda: None, process).source == "sampled RSS"


def test_without_a_mark_to_read_the_memory_is_sampled(process: Path, tmp_path: Path) -> None:
    write_status(process, 100, None)
    assert measure_host(lambda: None, process).source == "sampled RSS"
    assert measure_host(lambda: None, tmp_path / "nowhere").source == "sampled RSS"


def test_samples_are_taken_while_the_function_runs() -> None:
    readings = iter([10, 30, 70, 50])
    four = threading.Event()

    def read_rss() -> int:
        reading = next(readings, None)
        if reading is None:
            four.set()
            return 20
        return reading

    assert sample_host(lambda: four.wait(60) or pytest.fail("no samples"), read_rss) == HostPeak(10, 70, "sampled RSS")


def test_sampling_ends_when_the_function_fails() -> None:
    def run() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        sample_host(run, lambda: 1)
    assert "sampled RSS" not in {thread.name for thread in threading.enumerate()}


@pytest.fixture
def in_fresh_process(root: Path) -> Callable[..., dict[str, Any]]:
    """Runs code in a process of its own; the code ends by calling `tell` with what the test wants to know."""

    def run(code: str, **environment: str) -> dict[str, Any]:
        lines = ["import json, sys", f"sys.path.insert(0, {str(root / 'scripts')!r})"]
        tell = "def tell(**facts): print(json.dumps(facts))"
        program = "\n".join([*lines, tell, code])
        command, variables = [sys.executable, "-c", program], {**os.environ, **environment}
        ended = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
        told: dict[str, Any] = json.loads(ended.stdout)
        return told

    return run


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

TRAINING = """
import torch
from torch import nn
from crossover.measurement.memory.memory_pass import measure_memory
from crossover.measurement.memory.memory_split import Subject

def measure(model, rows, **options):
    torch.set_num_threads(1)
    data = torch.randn(rows, model[0].in_features)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    def step():
        model(data).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    for _ in range(2):
        step()
    tell(**measure_memory(Subject(step, model, (optimizer,), (data,), step), torch.device("cpu")))
"""


# Tensors outside the heap, so that freed ones are gone at once; and the heap as it is, with the gaps that it leaves.
heaps = pytest.mark.parametrize(
    ("environment", "tolerance"),
    [({"MALLOC_MMAP_THRESHOLD_": "65536"}, 3 * MB), ({}, 20 * MB)],
    ids=["without the heap", "with the heap"],
)


@linux
@heaps
def test_gradients_of_200_mb_show(
    in_fresh_process: Callable[..., dict[str, Any]], environment: dict[str, str], tolerance: int
) -> None:
    """Of one row, nothing else is large."""
    told = in_fresh_process(TRAINING + "measure(nn.Sequential(nn.Linear(5000, 10000)), 1)", **environment)
    parameter_bytes = (5000 * 10000 + 10000) * 4
    assert told["memory_source"] == "VmHWM"
    assert told["parameter_bytes"] == told["gradient_bytes"] == parameter_bytes
    assert told["peak_rss_bytes"] - told["base_rss_bytes"] == pytest.approx(parameter_bytes, abs=tolerance)
    assert told["other_bytes"] < tolerance


@linux
@heaps
def test_activations_of_100_mb_show(
    in_fresh_process: Callable[..., dict[str, Any]], environment: dict[str, str], tolerance: int
) -> None:
    """At the peak there are the ReLU's output, which is kept, and two gradients of its size, which are not."""
    model = "nn.Sequential(nn.Linear(8, 500), nn.ReLU(), nn.Linear(500, 8))"
    told = in_fresh_process(TRAINING + f"measure({model}, 50000)", **environment)
    assert told["activation_bytes"] == 100 * MB
    assert told["peak_rss_bytes"] - told["base_rss_bytes"] == pytest.approx(300 * MB, abs=tolerance)
    assert told["other_bytes"] == pytest.approx(200 * MB, abs=tolerance)


@linux
def test_the_figure_of_a_large_parent_does_not_leak_in(in_fresh_process: Callable[..., dict[str, Any]]) -> None:
    """ru_maxrss, which a process inherits, tells the parent's."""
    ballast = bytearray(b"x" * 700 * MB)
    told = in_fresh_process(
        "import resource\n"
        "from crossover.measurement.memory.memory_host import measure_host\n"
        "peak = measure_host(lambda: bytearray(b'x' * 50_000_000))\n"
        "inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "tell(base=peak.base_bytes, peak=peak.peak_bytes, inherited=inherited)\n"
    )
    assert len(ballast) == 700 * MB
    assert told["inherited"] > 700 * MB
    assert told["peak"] - told["base"] == pytest.approx(100 * MB, abs=10 * MB)  # the bytes and their copy
    assert told["base"] < 200 * MB


@linux
def test_memory_that_the_heap_kept_shows_again(in_fresh_process: Callable[..., dict[str, Any]]) -> None:
    """200 MB in blocks of the heap, freed under blocks that stay: without trimming the second run needs nothing."""
    told = in_fresh_process(
        "from crossover.measurement.memory import memory_host\n"
        "blocks = [bytearray(b'x' * 50_000) for _ in range(4100)]\n"
        "del blocks[:4000]\n"
        "def run():\n"
        "    [bytearray(b'x' * 50_000) for _ in range(4000)]\n"
        "trim = memory_host.trim_heap\n"
        "memory_host.trim_heap = lambda: None\n"
        "kept = memory_host.measure_host(run)\n"
        "memory_host.trim_heap = trim\n"
        "trimmed = memory_host.measure_host(run)\n"
        "tell(kept=kept.peak_bytes - kept.base_bytes, trimmed=trimmed.peak_bytes - trimmed.base_bytes)\n"
    )
    assert told["kept"] < 100 * MB
    assert told["trimmed"] == pytest.approx(200 * MB, abs=10 * MB)
