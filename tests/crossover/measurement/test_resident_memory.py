"""The resident memory of a process: the kernel's mark, samples, and steps of known size."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crossover.measurement.resident_memory import measure_host, sample_host

MB = 1_000_000

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """A process that uses 100 KiB, with an older high-water mark of 900 KiB."""
    (tmp_path / "clear_refs").write_text("-")
    write_status(tmp_path, 100, 900)
    return tmp_path


def write_status(process: Path, rss_kib: int, mark_kib: int | None) -> None:
    mark = "" if mark_kib is None else f"VmHWM:\t{mark_kib:8} kB\n"
    (process / "status").write_text(f"Name:\tpython3\nVmPeak:\t  999 kB\n{mark}VmRSS:\t{rss_kib:8} kB\n")


def columns(base_bytes: int, peak_bytes: int, source: str) -> dict[str, Any]:
    return {
        "rss_growth_bytes": peak_bytes - base_bytes,
        "base_rss_bytes": base_bytes,
        "peak_rss_bytes": peak_bytes,
        "memory_source": source,
    }


@pytest.mark.parametrize(
    ("mark_kib", "peak_kib"), [(300, 300), (99, 100)]
)  # never below the base, although the counters lag
def test_the_mark_is_reset_before_and_read_after(process: Path, mark_kib: int, peak_kib: int) -> None:
    written: list[str] = []

    def run() -> None:
        written.append((process / "clear_refs").read_text())
        write_status(process, 90, mark_kib)

    assert measure_host(run, process) == columns(100 * 1024, peak_kib * 1024, "VmHWM")
    assert written == ["5"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda process: (process / "clear_refs").unlink(),
        lambda process: ((process / "clear_refs").unlink(), (process / "clear_refs").mkdir()),  # cannot be written
        lambda process: write_status(process, 100, None),
        lambda process: (process / "status").unlink(),
    ],
)
def test_without_a_mark_the_memory_is_sampled(process: Path, spoil: Callable[[Path], object]) -> None:
    spoil(process)
    assert measure_host(lambda: None, process)["memory_source"] == "sampled RSS"


def test_samples_are_taken_while_the_function_runs() -> None:
    readings = iter([10, 30, 70, 50])
    four = threading.Event()

    def read_rss() -> int:
        reading = next(readings, None)
        if reading is None:
            four.set()
            return 20
        return reading

    measured = sample_host(lambda: four.wait(60) or pytest.fail("no samples"), read_rss)
    assert measured == columns(10, 70, "sampled RSS")
    with pytest.raises(ZeroDivisionError):
        sample_host(lambda: 1 // 0 and None, lambda: 1)
    assert "sampled RSS" not in {thread.name for thread in threading.enumerate()}


TRAINING = """
import json, torch
from torch import nn
from crossover.measurement.memory.memory_pass import Subject, measure_memory, split_memory

def measure(model, rows):
    torch.set_num_threads(1)
    data = torch.randn(rows, model[0].in_features)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    def step():
        model(data).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    for _ in range(2):
        step()
    peak = measure_memory(step, torch.device("cpu"))
    return peak | split_memory(Subject(step, model, optimizer, (data,)), torch.device("cpu"), peak)

gradients = measure(nn.Sequential(nn.Linear(2500, 5000)), 1)
activations = measure(nn.Sequential(nn.Linear(8, 500), nn.ReLU(), nn.Linear(500, 8)), 12500)
print(json.dumps([gradients, activations]))
"""


@linux
def test_gradients_of_50_mb_and_activations_of_25_mb_are_found(in_fresh_process: Callable[..., Any]) -> None:
    """The second peak consists of the ReLU's output, an activation, and two gradients of its size, which are not."""
    tolerance = 3 * MB  # tensors are too large for the heap, which would have gaps
    gradients, activations = in_fresh_process(TRAINING)
    parameter_bytes = (2500 * 5000 + 5000) * 4
    assert gradients["memory_source"] == "VmHWM"
    assert gradients["parameter_bytes"] == gradients["gradient_bytes"] == parameter_bytes
    assert gradients["rss_growth_bytes"] == pytest.approx(parameter_bytes, abs=tolerance)
    assert gradients["other_bytes"] < tolerance
    assert activations["activation_bytes"] == 25 * MB
    assert activations["rss_growth_bytes"] == pytest.approx(75 * MB, abs=tolerance)
    assert activations["other_bytes"] == pytest.approx(50 * MB, abs=tolerance)
