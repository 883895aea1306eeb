"""scripts/check_side_by_side.py with trials that only lease a pretended GPU."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import check_side_by_side as check
from crossover.errors import UserError
from fake_nvml import FakeGpu, FakeNvml

GPUS = ["GPU-0", "GPU-1", "GPU-2"]


class Machine:
    """Trials take the first free GPU of their list and count the others at work; those of a pool overlap."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taken: list[str] = []
        self.measured: list[tuple[int, str]] = []
        self.meeting = threading.Barrier(1)

    def pool(self, count: int) -> ThreadPoolExecutor:
        self.meeting = threading.Barrier(count, timeout=60)
        return ThreadPoolExecutor(count)

    def measure_trial(self, _options: list[str], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        visible = environment["CUDA_VISIBLE_DEVICES"].split(",") if environment else GPUS
        with self.lock:
            gpu = next(gpu for gpu in visible if gpu not in self.taken)
            self.taken.append(gpu)
        self.meeting.wait()
        beside = len(self.taken) - 1
        self.meeting.wait()
        with self.lock:
            self.taken.remove(gpu)
            self.measured.append((beside, gpu))
        times = {"leased_beside": beside, "step_time_s": 1.0 + beside / 10}
        return {"workload": "disc_mlp", "size": 10, "device_uuid": gpu, **times}


def test_each_gpu_measures_alone_and_beside_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(check, "measure_trial", machine.measure_trial)
    monkeypatch.setattr(check, "ThreadPoolExecutor", machine.pool)
    monkeypatch.setattr(check, "gpus_here", lambda most: GPUS[:most])
    output = tmp_path / "side_by_side.csv"
    monkeypatch.setattr(check, "CELLS", check.CELLS[:1])
    check.main(["--gpus=3", "--pairs=3", "--seed=3", f"--output={output}"])
    alone = [gpu for beside, gpu in machine.measured if beside == 0]
    assert alone == ["GPU-0", *GPUS]  # the first of all counts in no pair
    assert sorted(gpu for beside, gpu in machine.measured if beside == 2) == sorted(GPUS * 3)
    table = pd.read_csv(output)
    assert table["cell"].tolist() == ["disc_mlp 10", "all"]
    assert table["ratio"].tolist() == pytest.approx([1.2, 1.2])
    pairs = pd.read_csv(tmp_path / "side_by_side.pairs.csv")
    assert pairs["gpu"].tolist() == GPUS
    assert pairs["options"].str.endswith("--seed=3").all()


def test_as_many_gpus_are_used_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "pynvml", FakeNvml(*map(FakeGpu, GPUS)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0,1")
    assert [check.gpus_here(most) for most in (2, None)] == [["GPU-2", "GPU-0"], ["GPU-2", "GPU-0", "GPU-1"]]
    with pytest.raises(UserError, match="two NVIDIA GPUs or more; 1 may be used"):
        check.gpus_here(1)
    monkeypatch.setattr(check, "pynvml", FakeNvml(there=False))
    with pytest.raises(UserError, match="two NVIDIA GPUs or more; 0 may be used"):
        check.gpus_here(None)
