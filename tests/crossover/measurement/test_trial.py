"""Single trials in this process: the columns, statuses and reasons of their rows."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import trials
from crossover.config.models import read_model
from crossover.config.statuses import FLAGS
from crossover.config.studies import Cell
from crossover.errors import InvalidError, UnsupportedError, UserError
from crossover.files import relative_path
from crossover.measurement import cell as prepared
from crossover.measurement import trial
from crossover.measurement.clock import cold
from crossover.measurement.clock.profiling import DeviceProfile
from crossover.measurement.process.jobs import TrialJob
from crossover.measurement.step.execution import Execution
from crossover.measurement.step.tasks import Task
from crossover.measurement.trial import run_trial, step_with_transfers
from crossover.measurement.workloads import build_task
from crossover.tables.columns import Measurement, write_record
from tiny_tasks import TinyInference, TinyTraining, linear

CELL = replace(trials.CELL, batch_size=10)
EFFORT = replace(trials.EFFORT, warmup_min_steps=1, warmup_max_s=0.01, blocks_min=2, timed_max_s=0.005)
CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("own_switches")

Change = Callable[[Task], None]


@pytest.fixture
def job(tmp_path: Path) -> TrialJob:
    path = tmp_path / "data.safetensors"
    save_file({"features": torch.randn(100, 2), "labels": torch.arange(100) % 2}, path)
    return trials.trial_job(path, tmp_path / "row.parquet", cell=CELL, threads=torch.get_num_threads(), effort=EFFORT)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Change the trial's task after it is built, but not the model that the numerical check builds."""

    def change_by(change: Change) -> None:
        def build(*arguments: Any) -> Task:
            task = build_task(*arguments)
            change(task)
            return task

        monkeypatch.setattr(prepared, "build_task", build)

    return change_by


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> None:
        raise error

    return fail


def with_messages(job: TrialJob) -> tuple[Measurement, list[dict[str, Any]]]:
    """A trial's row, and its messages before each pass."""
    messages: list[dict[str, Any]] = []
    row = run_trial(job, lambda message: messages.append(json.loads(json.dumps(message))))
    assert list(messages[0]) == ["begun"]
    return row, messages[1:]


def test_a_good_trial_fills_its_row(job: TrialJob, tmp_path: Path) -> None:
    row = run_trial(replace(job, isolation="server", attempts=2, lease_wait_s=1.5, code_version="f00"))
    assert (row.status, row.reason) == ("ok", None)
    assert set(row.flag_names or [None]) <= set(FLAGS) | {None}
    assert {axis: getattr(row, axis) for axis in asdict(CELL)} == asdict(CELL)
    assert (row.trial, row.seed, row.threads) == (1, 0, job.threads)
    assert (row.isolation, row.attempts, row.lease_wait_s, row.command) == ("server", 2, 1.5, "the command")
    assert row.code_version == "f00"
    assert (row.parameters, row.size_name) == (12 + 40 + 18, "linear layers")
    assert json.loads(row.effort or "") == asdict(EFFORT)
    assert json.loads(row.backend_settings or "")["mkldnn.matmul.fp32_precision"] == "ieee"
    assert row.device_name == row.cpu_model

    assert row.timed_steps == (row.block_steps or 0) * len(row.samples_s or [])
    assert (row.block_steps or 0) % 10 == 0  # whole epochs
    assert 0 < (row.relative_error or 0) < 1e-4
    assert 0 < (row.gradient_error or 0) < 1e-3
    assert (row.parameter_bytes or 0) >= 70 * 4
    assert row.resident_bytes == 100 * 2 * 4 + 100 * 8
    for measured in (row.step_time_s, row.first_step_s, row.load_after):
        assert measured is not None
    spent_s = json.loads(row.spent_s or "")
    passes = ["numerical check", "memory pass", "memory split", "profile", "count of operations", "remedies"]
    assert list(spent_s) == ["import", "context", "build", "first steps", "warm-up and timing", *passes]
    assert (row.timed_s or 0) <= spent_s["warm-up and timing"] <= sum(spent_s.values())
    assert row.recompiles == 0
    assert row.compile_s is row.device_busy_s is row.device_time_s is row.latencies_s is None
    assert row.latencies_cold_s is row.latencies_unsynchronised_s is row.latencies_transfer_s is None
    # Layers of 2x4, 4x8 and 8x2: three products each, but for the gradient of the inputs.
    assert row.flops_per_step == 2 * 10 * (3 * (8 + 32 + 16) - 8)
    assert row.max_abs_error is row.max_relative_error is None
    write_record(row, tmp_path / "row.parquet")


def test_cold_calls_are_timed_one_by_one_with_caches_evicted_before_each(
    job: TrialJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    monkeypatch.setattr(cold, "last_level_cache_bytes", lambda _: 1000)
    monkeypatch.setattr(torch.Tensor, "fill_", lambda tensor, _: written.append(tensor.nbytes))
    monkeypatch.setattr(cold, "IDLE_S", 0.0)
    row = run_trial(replace(job, cell=replace(job.cell, protocol="cold")))
    assert (row.status, row.check, row.block_steps, len(row.samples_s or [])) == ("ok", "passed", 1, cold.CALLS)
    assert len(written) > cold.CALLS
    assert set(written) == {2000}
    assert row.split_step_s is row.device_busy_s is None


SHORT_BATCHES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
def build(size, batch_size):
    rows = TensorDataset(torch.randn(5, 3).double(), torch.zeros(5, 1))
    return nn.Linear(3, 1).double(), DataLoader(rows, batch_size=batch_size)
"""


def own_cell(tmp_path: Path, text: str, protocol: str) -> Cell:
    (tmp_path / "short_batches.py").write_text(text)
    model = read_model(f"{tmp_path / 'short_batches.py'}:build", tmp_path, "here")
    return Cell("s", "model", protocol, 4, "fp32", "eager", 8, "cpu", model=model)


def test_a_check_that_the_study_leaves_out_is_waived(job: TrialJob, tmp_path: Path) -> None:
    text = "from torch import nn, ones\ndef build(size, batch_size):\n    return nn.Linear(3, 1), ones(batch_size, 3)\n"
    cell = own_cell(tmp_path, text, "resident")
    assert cell.model is not None
    row = run_trial(replace(job, cell=replace(cell, model=replace(cell.model, checked=False))))
    assert (row.status, row.check, "not_checked" in row.flag_names) == ("ok", "waived", False)
    assert (str(row.reason).endswith("the study says check: false"), row.relative_error) == (True, None)


GROWING = """
import torch
from torch import nn


class Growing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.head = nn.Linear(4, width), None

    def forward(self, x):
        x = self.first(x)
        if self.head is None:
            self.head = nn.Linear(x.shape[1], 2).to(x)
        return self.head(x)


def build(size, batch_size):
    return Growing(size), torch.randn(batch_size, 4)
"""


def test_parameters_that_the_first_forward_pass_makes_are_counted(job: TrialJob, tmp_path: Path) -> None:
    cell = own_cell(tmp_path, GROWING, "resident")
    assert cell.model is not None
    row = run_trial(replace(job, cell=replace(cell, model=replace(cell.model, mode="infer"))))
    assert (row.status, row.parameters) == ("ok", (4 + 1) * cell.size + (cell.size + 1) * 2)


def test_labels_that_a_loss_changes_in_place_end_the_trial_after_its_first_step(job: TrialJob, tmp_path: Path) -> None:
    text = (
        "import torch\nfrom crossover import Step\ndef loss(output, targets):\n    targets -= 1\n"
        "    return torch.nn.functional.cross_entropy(output, targets)\ndef build(size, batch_size):\n"
        "    labels = torch.ones(batch_size, dtype=torch.long)\n"
        "    return Step(model=torch.nn.Linear(3, 5), inputs=torch.ones(batch_size, 3), targets=labels, loss=loss)\n"
    )
    with pytest.raises(UserError, match="its step changes its targets in place"):
        run_trial(replace(job, cell=own_cell(tmp_path, text, "resident")))


def test_samples_per_step_counts_short_batches(job: TrialJob, tmp_path: Path) -> None:
    """Batches have 4 and 1 samples in turn: two steps have 5, and a remaining step 1 or 4."""
    row = run_trial(replace(job, cell=own_cell(tmp_path, SHORT_BATCHES, "loaded"), trial=2))
    assert row.status == "ok"
    steps = row.timed_steps or 0
    rest = round((row.samples_per_step or 0) * steps) - 5 * (steps // 2)
    assert rest in ((1, 4) if steps % 2 else (0,))
    assert run_trial(replace(job, trial=2)).samples_per_step == CELL.batch_size


def test_the_message_begun_is_sent_before_anything_is_built(job: TrialJob, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[dict[str, Any]] = []
    error = MemoryError("no room")
    monkeypatch.setattr(prepared, "build_task", lambda *_: failing(error)() if messages else pytest.fail("too early"))
    row = run_trial(job, messages.append)
    ((_, facts),) = messages[0].items()
    assert (row.status, row.reason, row.parameters, row.step_time_s) == ("oom", "no room", 70, None)
    assert {name: getattr(row, name) for name in facts} == facts
    assert {"parameters", "threads", "device_name", "backend_settings", "started_at", "load_before"} <= set(facts)
    json.dumps(facts)


@pytest.mark.parametrize("mistakes", [False, True])
def test_latencies_are_timed_after_the_cold_steps(
    monkeypatch: pytest.MonkeyPatch, job: TrialJob, changed: Callable[..., None], tmp_path: Path, mistakes: bool
) -> None:
    """The cold steps are the first steps of the process; on a CPU no other mistake is possible."""
    log: list[str] = []

    def logged(task: Task) -> None:
        end_step = task.end_step
        monkeypatch.setattr(task, "end_step", lambda: (log.append("s"), end_step()))

    changed(logged)
    real = trial.time_steps
    monkeypatch.setattr(trial, "time_steps", lambda *given: (log.append("timing"), real(*given))[1])
    row = run_trial(replace(job, latency_steps=30, latency_mistakes=mistakes))
    assert row.status == "ok"
    assert log.index("timing") == (30 if mistakes else 1)
    latencies_s, cold_s = row.latencies_s or [], row.latencies_cold_s or []
    assert (len(latencies_s), len(cold_s)) == (30, 30 * mistakes)
    assert min(latencies_s) <= (row.latency_p50_low_s or 0) <= (row.latency_p50_s or 0) <= max(latencies_s)
    assert row.latency_p95_s is None  # of 30 steps
    assert not mistakes or row.first_step_s == cold_s[0]
    assert row.latencies_device_s is row.latencies_unsynchronised_s is row.latencies_transfer_s is None
    assert (row.warmup_steps or 0) >= 30 * mistakes
    assert (row.warmup_steps or 0) % 10 == 0  # whole epochs
    write_record(row, tmp_path / "row.parquet")


class FromHost(TinyInference):
    def next_host_inputs(self) -> tuple[torch.Tensor, ...]:
        return (torch.tensor([[5.0]]),)


@pytest.mark.parametrize(
    ("task", "execution", "offered"),
    [
        (FromHost(linear(3.0), torch.ones(1, 1)), "eager", True),
        (FromHost(linear(3.0), torch.ones(1, 1)), "cuda-graph", False),
        (TinyInference(linear(1.0), torch.ones(1, 1)), "eager", False),
        (TinyTraining(linear(1.0), [torch.ones(1, 1)]), "eager", False),
    ],
)
def test_transfers_are_timed_if_the_batch_is_in_host_memory(task: Any, execution: str, offered: bool) -> None:
    step = step_with_transfers(task, execution)
    assert (step is not None) is offered
    if step:
        step()
        assert [tensor.item() for tensor in task.seen] == [15.0]


@pytest.mark.parametrize("changes", [{}, {"latency_steps": 400, "latency_mistakes": True}])
def test_steps_too_slow_for_the_time_limit_give_a_row(job: TrialJob, changes: dict[str, Any]) -> None:
    row = run_trial(replace(job, time_limit_s=1e-9, **changes))
    assert (row.status, row.step_time_s, row.latencies_cold_s, row.first_step_s) == ("timeout", None, None, None)
    assert (row.reason or "").startswith("a step takes")


@pytest.mark.parametrize(
    ("number", "step_s", "split", "busy", "share"),
    [
        (1, 9.0, False, 2.25, 0.75),
        (1, 9.0, False, 27.0, 0.0),
        (1, 0.5, True, 0.25, 0.5),
        (2, 0.5, False, None, None),
        (2, 0.04, True, None, None),
        (3, 0.04, True, None, None),
        (4, 0.04, False, None, None),
    ],
)
def test_the_first_trial_has_all_passes_and_later_trials_remedies_for_short_steps(
    monkeypatch: pytest.MonkeyPatch,
    job: TrialJob,
    number: int,
    step_s: float,
    split: bool,
    busy: float | None,
    share: float | None,
) -> None:
    real = trial.time_steps

    def time_steps(*given: Any) -> tuple[dict[str, Any], list[str]]:
        columns, flags = real(*given)
        return columns | {"step_time_s": step_s}, flags

    monkeypatch.setattr(trial, "time_steps", time_steps)
    monkeypatch.setattr(
        trial, "profile_device", lambda *_: DeviceProfile(busy, busy, 3.0) if busy else pytest.fail("profiled")
    )
    row = run_trial(replace(job, trial=number))
    first = [row.flops_per_step, row.relative_error, row.peak_rss_bytes]
    assert [value is not None for value in first] == [number == 1] * 3
    assert (row.split_step_s is not None) is split
    assert "not_checked" not in (row.flag_names or [])
    assert (row.device_busy_s, row.host_bound_share) == (busy, share)


PASSES = {
    "measure_latencies": ("latencies", "latencies_s"),
    "compare_with_reference": ("numerical check", "relative_error"),
    "measure_memory": ("memory pass", "peak_rss_bytes"),
    "split_memory": ("memory split", "parameter_bytes"),
    "profile_device": ("profile", "device_busy_s"),
    "count_work": ("count of operations", "flops_per_step"),
    "time_remedies": ("remedies", "held_s"),
}
"""Name and one column of each pass after the timing, by the function that does its work."""


UNSUPPORTED = UnsupportedError("an operation")
BUG = RuntimeError("A leaf node was passed to _will_engine_execute_node\nmore")


@pytest.mark.parametrize(
    ("work", "error"),
    [
        *((work, BUG) for work in PASSES),
        ("measure_memory", torch.AcceleratorError("CUDA error: out of memory\nmore")),
        ("compare_with_reference", SystemExit("the model's own exit")),
        ("profile_device", UNSUPPORTED),
    ],
)
def test_an_error_in_a_pass_keeps_the_time_and_the_other_passes(
    monkeypatch: pytest.MonkeyPatch, job: TrialJob, work: str, error: BaseException
) -> None:
    name, missing = PASSES[work]
    monkeypatch.setattr(trial, work, failing(error))
    if work == "measure_memory":
        monkeypatch.setattr(trial, "split_memory", lambda *_: {"parameter_bytes": 4})  # the split needs the peak
    row = run_trial(replace(job, latency_steps=3))
    assert row.status == "ok"
    assert (row.reason or "").startswith(f"{name}: {'an operation' if error is UNSUPPORTED else 'not done, since '}")
    assert error is UNSUPPORTED or str(error).partition("\n")[0] not in (row.reason or "")
    assert "incomplete" in (row.flag_names or [])
    assert ("not_checked" in (row.flag_names or [])) is (name == "numerical check")
    assert row.step_time_s is not None
    for _, column in PASSES.values():
        assert (getattr(row, column) is None) is (column in (missing, "device_busy_s"))  # a CPU has no kernels
    assert name in json.loads(row.spent_s or "")


REFUSING = """
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode


class Refusing(nn.Linear):
    def forward(self, x):
        if _get_current_dispatch_mode() is not None:
            {refusal}
        return super().forward(x)


def build(size, batch_size):
    return Refusing(4, size), torch.randn(batch_size, 4)
"""


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (
            "raise RuntimeError('no modes, please\\nmore')",
            "the user's code fails: {file}: line 10: RuntimeError: no modes, please",
        ),
        ("nn.Bilinear(1, 1, 1)(x, x)", "the step fails while each of its operations is observed"),
    ],
)
def test_an_error_in_a_pass_is_shown_only_if_the_users_code_raises_it(
    job: TrialJob, tmp_path: Path, refusal: str, why: str
) -> None:
    cell = own_cell(tmp_path, REFUSING.format(refusal=refusal), "resident")
    assert cell.model is not None
    row = run_trial(replace(job, cell=replace(cell, model=replace(cell.model, mode="infer"))))
    assert row.status == "ok"
    why = why.format(file=relative_path(tmp_path / "short_batches.py"))
    assert row.reason == f"memory split: not done, since {why}; count of operations: not done, since {why}"


def test_an_invalid_error_in_a_pass_makes_the_row_invalid_and_an_interrupt_ends_the_trial(
    monkeypatch: pytest.MonkeyPatch, job: TrialJob
) -> None:
    monkeypatch.setattr(trial, "measure_memory", failing(InvalidError("cudnn.benchmark changed")))
    row = run_trial(job)
    assert (row.status, row.reason) == ("invalid", "cudnn.benchmark changed")
    assert row.step_time_s is not None
    monkeypatch.setattr(trial, "measure_memory", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run_trial(job)


@pytest.mark.parametrize(("module", "work"), [(trial, "has_finite_weights"), (trial.Surroundings, "columns")])
def test_a_failed_reading_after_the_timing_keeps_the_time(
    monkeypatch: pytest.MonkeyPatch, job: TrialJob, module: Any, work: str
) -> None:
    monkeypatch.setattr(module, work, failing(RuntimeError("the driver is gone")))
    row = run_trial(job)
    assert (row.status, row.step_time_s is not None) == ("ok", True)
    assert ": not done, since " in (row.reason or "")
    assert "the driver is gone" not in (row.reason or "")
    assert "incomplete" in (row.flag_names or [])


def test_the_row_so_far_is_sent_before_each_pass(job: TrialJob) -> None:
    row, messages = with_messages(replace(job, latency_steps=3))
    names = [name for name, _ in PASSES.values()]
    assert [message["passing"] for message in messages] == [names[number:] for number in range(len(names))]
    assert not any(message["transient"] for message in messages)
    rows = [message["row"] for message in messages]
    assert {(so_far["status"], so_far["step_time_s"]) for so_far in rows} == {("ok", row.step_time_s)}
    assert ["latencies_s" in so_far for so_far in rows] == [False, *[True] * 6]
    assert ["relative_error" in so_far for so_far in rows] == [False, False, *[True] * 5]
    assert ["not_checked" in so_far["flag_names"] for so_far in rows] == [True, True, *[False] * 5]
    assert rows[-1]["peak_rss_bytes"] == row.peak_rss_bytes
    assert row.reason is None
    assert not {"not_checked", "incomplete"} & set(row.flag_names or [])


def test_work_of_others_on_the_gpu_makes_the_row_invalid_before_the_passes(
    monkeypatch: pytest.MonkeyPatch, job: TrialJob
) -> None:
    monkeypatch.setattr(trial.Surroundings, "columns", lambda *_: {"foreign_gpu_share": 0.5})
    _, messages = with_messages(job)
    assert {(message["row"]["status"], message["transient"]) for message in messages} == {("invalid", True)}


@pytest.mark.parametrize(("module", "work"), [(prepared, "build_task"), (trial, "time_steps")])
def test_an_unknown_error_before_the_timing_is_raised(
    monkeypatch: pytest.MonkeyPatch, job: TrialJob, module: Any, work: str
) -> None:
    monkeypatch.setattr(module, work, failing(RuntimeError("mat1 and mat2 shapes cannot be multiplied")))
    with pytest.raises(RuntimeError, match="shapes"):
        run_trial(replace(job, latency_steps=3))


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({"precision": "tf32"}, "tf32 needs an NVIDIA GPU"),
        ({"execution": "cuda-graph"}, "cuda-graph needs a CUDA"),
        ({"device": "cpu-5000"}, "cpu-5000 needs 5000 physical cores, and this job may use "),
    ],
)
def test_an_unsupported_cell_gives_a_row(job: TrialJob, axes: dict[str, Any], reason: str) -> None:
    row = run_trial(replace(job, cell=replace(CELL, **axes)))
    assert (row.status, row.step_time_s) == ("unsupported", None)
    assert (row.reason or "").startswith(reason)


@pytest.mark.parametrize(
    ("factor", "reason", "has_error"),
    [(math.inf, "is not finite, in double precision it is", False), (1.5, "where rounding explains", True)],
)
def test_a_wrong_result_is_invalid_in_the_row_sent_before_the_next_pass(
    job: TrialJob, changed: Callable[..., None], tmp_path: Path, factor: float, reason: str, has_error: bool
) -> None:
    changed(lambda task: task.model.register_forward_hook(lambda _module, _inputs, outputs: outputs * factor) and None)
    row, messages = with_messages(job)
    assert (row.status, row.check) == ("invalid", "failed")
    assert reason in (row.reason or "")
    assert (row.relative_error is not None) is has_error
    assert not has_error or (row.relative_error or 0) > 1e-5
    assert (row.step_time_s or 0) > 0
    assert "not_checked" not in (row.flag_names or [])
    assert [message["row"]["status"] for message in messages] == ["ok", *["invalid"] * 5]
    write_record(row, tmp_path / "row.parquet")  # which refuses NaN


def test_a_training_that_diverged_is_flagged(job: TrialJob, changed: Callable[..., None]) -> None:
    def hasten(task: Task) -> None:
        assert task.optimizer is not None
        task.optimizer.param_groups[0]["lr"] = 1e30

    changed(hasten)
    row = run_trial(job)
    assert row.status == "ok"  # with the check's fresh weights the step is correct
    assert "diverged" in (row.flag_names or [])


@pytest.mark.parametrize(
    ("counts", "status", "reason"),
    [
        ([1, 1, 1], "ok", ""),
        ([0, 0, 0], "unsupported", "torch.compile compiled nothing, so the eager step ran"),
        ([1, 3, 3], "invalid", "recompilations while timing (2)"),
    ],
)
def test_a_compiled_cell_must_be_compiled_before_its_timing(
    monkeypatch: pytest.MonkeyPatch, job: TrialJob, counts: list[int], status: str, reason: str
) -> None:
    """`counts` are the numbers of compilations before the timing, after it, and at the end."""
    left = iter(counts)
    counted = {"compile_s": lambda: 2.5, "compilations": lambda: next(left)}
    monkeypatch.setattr(trial, "prepare", lambda task, _: Execution(task.step, task.run, **counted))
    row = run_trial(replace(job, cell=replace(CELL, execution="compile")))
    assert row.status == status
    assert (row.reason or "").startswith(reason)
    assert (row.compile_s, row.recompiles) == (2.5, counts[1] - counts[0])


def test_the_weights_depend_on_seed_and_trial(job: TrialJob, changed: Callable[..., None]) -> None:
    weights: list[float] = []
    changed(lambda task: weights.append(next(task.model.parameters()).sum().item()))
    for number, seed in ((1, 7), (1, 7), (2, 7), (1, 9)):
        run_trial(replace(job, trial=number, seed=seed))
    first, again, other_trial, other_seed = weights
    assert first == again
    assert len({first, other_trial, other_seed}) == 3


def set_benchmark(*_: Any) -> None:
    torch.backends.cudnn.benchmark = True


@pytest.mark.parametrize(
    ("when", "timed"), [("count_parameters", False), ("a step", True), ("measure_latencies", True)]
)
def test_a_changed_setting_is_invalid(
    monkeypatch: pytest.MonkeyPatch, job: TrialJob, changed: Callable[..., None], when: str, timed: bool
) -> None:
    """It changes when the workload is imported, in a step, or in a pass after the timing."""
    if when == "a step":
        changed(lambda task: task.model.register_forward_pre_hook(set_benchmark) and None)
    else:
        real = getattr(trial, when)
        monkeypatch.setattr(trial, when, lambda *given: (set_benchmark(), real(*given))[1])
    if not timed:
        monkeypatch.setattr(trial, "prepare", lambda *_: pytest.fail("a step was prepared"))
    row, messages = with_messages(replace(job, latency_steps=3))
    assert (row.status, row.step_time_s is not None) == ("invalid", timed)
    assert (row.reason or "").startswith("cudnn.benchmark changed from False to True: the workload")
    assert json.loads(row.backend_settings or "")["cudnn.benchmark"] is timed
    assert len(messages) == (when == "measure_latencies")


def test_a_setting_that_a_step_changes_and_restores_is_invalid(job: TrialJob, changed: Callable[..., None]) -> None:
    def change_within_forward(task: Task) -> None:
        forward = task.model.forward

        def between(*inputs: torch.Tensor) -> torch.Tensor:
            torch.backends.mkldnn.enabled = False
            outputs: torch.Tensor = forward(*inputs)
            torch.backends.mkldnn.enabled = True
            return outputs

        task.model.forward = between

    changed(change_within_forward)
    row = run_trial(job)
    assert row.step_time_s is not None
    assert (row.reason or "").startswith("mkldnn.enabled changed from True to False: the workload")


def test_a_model_that_compiles_itself_is_noted(monkeypatch: pytest.MonkeyPatch, job: TrialJob) -> None:
    graphs = itertools.count()
    monkeypatch.setattr(trial, "compiled_graphs", lambda: next(graphs))
    assert (run_trial(job).reason or "").startswith("the model compiles itself")
    monkeypatch.setattr(trial, "compiled_graphs", lambda: 3)  # from earlier work in this process
    assert run_trial(job).reason is None


def test_times_of_operators_add_up_to_at_most_the_devices_work() -> None:
    work = {"products_s": 6.0, "others_s": 2.0, "flops_per_step": 5}
    assert trial.limited_to(4.0, work) == {"products_s": 3.0, "others_s": 1.0}
    assert all(trial.limited_to(*none) == {} for none in ((8.0, work), (None, work), (4.0, {"flops_per_step": 5})))
