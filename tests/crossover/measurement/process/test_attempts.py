"""Second attempts, and tries of failed steps on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossover.measurement.process import attempts
from crossover.measurement.process.attempts import measure, run_supervised
from crossover.measurement.process.jobs import Outcome, TrialJob
from crossover.measurement.process.supervision import ChildFailedError
from trials import CELL, read_row, trial_job


def outcome(status: str, reason: str | None, transient: bool = False) -> Outcome:
    return Outcome(status, reason, False, {"parameters": 6, "step_time_s": 0.5}, transient=transient)


HEAT = outcome("invalid", "heat", transient=True)


@pytest.mark.parametrize(
    "ends",
    [
        [HEAT, outcome("ok", None)],
        [HEAT, HEAT],
        [outcome("invalid", "crashed (SIGSEGV)")],
        [outcome("oom", "full")],
    ],
)
def test_only_a_trial_with_a_temporary_cause_is_measured_once_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: list[Outcome]
) -> None:
    made: list[int] = []

    def run(job: TrialJob) -> Outcome:
        made.append(job.attempts)
        return ends[len(made) - 1]

    monkeypatch.setattr(attempts, "run_supervised", run)
    measure(trial_job(tmp_path / "data", tmp_path / "row.parquet"))
    row = read_row(tmp_path / "row.parquet")
    assert made == [1, 2][: len(ends)]
    assert (row["status"], row["reason"]) == (ends[-1].status, ends[-1].reason)
    assert (row["step_time_s"], row["parameters"]) == (0.5, 6)


FFT = "Unsupported dtype BFloat16"
REFUSAL = Outcome("refused", FFT, False, {"parameters": 6}, {"mistake": f"net.py: line 3: {FFT}", "is_lacking": False})
LACKING = replace(REFUSAL, result={**REFUSAL.result, "is_lacking": True})


@pytest.mark.parametrize(
    ("refusal", "tried", "status"),
    [
        (REFUSAL, "ok", "unsupported"),
        (REFUSAL, "unsupported", "unsupported"),
        (REFUSAL, "invalid", None),  # it fails on the CPU too
        (LACKING, "invalid", None),
        (REFUSAL, "oom", "invalid"),
        (LACKING, "timeout", "unsupported"),  # its message is known
    ],
)
def test_a_refused_step_is_tried_on_the_cpu_in_fp32(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refusal: Outcome, tried: str, status: str | None
) -> None:
    jobs: list[Any] = []

    def run(job: Any) -> Outcome:
        jobs.append(job)
        return refusal if len(jobs) == 1 else Outcome(tried, None, False, {})

    monkeypatch.setattr(attempts, "_run", run)
    cell = replace(CELL, device="cuda", precision="bf16", execution="compile")
    job = trial_job(tmp_path / "data", tmp_path / "row.parquet", cell=cell, uuid="GPU-1", time_limit_s=60.0)
    clock = iter([100.0, 117.0]).__next__
    if status is None:
        with pytest.raises(ChildFailedError, match="line 3: Unsupported"):
            run_supervised(job, clock)
    else:
        ended = run_supervised(job, clock)
        assert (ended.status, ended.written, ended.facts, ended.result) == (status, False, {"parameters": 6}, {})
        undecided = f"net.py: line 3: {FFT}; it is not known whether the step runs on the CPU in fp32 ({tried})"
        assert ended.reason == (FFT if status == "unsupported" else undecided)
    plain = jobs[1]
    assert (plain.kind, plain.steps, plain.uuid, plain.time_limit_s) == ("batch_try", 1, None, 43.0)
    assert (plain.cell, plain.threads, plain.dataset) == (CELL, job.threads, job.dataset)
