"""A training step of one rank: its part of the batch, and gradients averaged over the ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_map

from crossover.config.words import EACH, EXECUTIONS, PROTOCOLS, is_cpu, runs_on_ranks
from crossover.errors import UnsupportedError
from crossover.measurement.cell import OpenCell
from crossover.measurement.host.surroundings import Surroundings
from crossover.measurement.memory.memory_pass import measure_memory
from crossover.measurement.modules import parameters_of, tensors_in
from crossover.measurement.ranks.group import COMMUNICATION, Group
from crossover.measurement.remedies import has_rows
from crossover.measurement.step.correctness import ROUNDING, relative_error, without_dropout
from crossover.measurement.step.endings import first_line
from crossover.measurement.step.tasks import Task, TrainingTask
from crossover.measurement.step.trees import map_tensors, tensors_of
from crossover.text import listed

SEEDS = 1_000_003
"""Distance between the seeds of ranks that each take a batch of their own."""

MARGIN = 8
"""Maximum difference of averaged gradients from the mean of the parts' gradients, as a multiple of ROUNDING."""


def build_part(cell: OpenCell, group: Group, tell: Callable[[dict[str, Any]], None]) -> TrainingTask:
    """The task of one rank, without averaging; raises UnsupportedError if its step cannot be shared."""
    job = cell.job
    if not runs_on_ranks(job.cell.protocol, job.cell.execution):
        raise UnsupportedError(
            f"{job.cell.device} runs in protocol {PROTOCOLS[0]} or {EACH} and execution {EXECUTIONS[0]} only"
        )
    is_each = job.cell.protocol == EACH
    seed = getattr(job, "seed", 0) + getattr(job, "trial", 0) + SEEDS * group.rank * is_each
    task = cell.build(cell.data(), cell.arithmetic(), seed, tell)
    batch = task.next_inputs()
    if is_cpu(job.cell.device) and job.rank_cpus is None:
        raise UnsupportedError(f"{job.cell.device} needs more cores than this job may use")
    if reason := why_not_shared(task, batch, group.size, is_each):
        raise UnsupportedError(f"{job.cell.device} {reason}")
    assert isinstance(task, TrainingTask)
    return task if is_each else _with_part(task, group)


def why_not_shared(task: Task, batch: Any, ranks: int, is_each: bool) -> str | None:
    if not isinstance(task, TrainingTask):
        advice = "return a model with a loss" if task.is_function else "use mode: train"
        return f"averages the gradients of a training, and this step trains nothing; {advice}"
    if getattr(getattr(task, "user_step", None), "run", None) is not None:
        return "cannot average gradients within a step of your own (`run`); return the loss instead"
    if not task.batched or not has_rows(batch):
        return "needs batches of tensors with a row for each sample"
    rows = rows_in(batch)
    if rows < ranks and not is_each:
        return f"shares out a batch of at least {ranks} samples, and this one has {rows}; use larger batch_sizes"
    return None


def rows_in(batch: Any) -> int:
    return len(tensors_of(batch)[0])


def _with_part(task: TrainingTask, group: Group) -> TrainingTask:
    """The task with a rank's rows of each batch; ranks get equal numbers of rows, or numbers that differ by one."""
    part, next_inputs = copy.copy(task), task.next_inputs
    known: list[Any] = [None, None]

    def next_part() -> Any:
        batch = next_inputs()
        if batch is not known[0]:
            known[:] = batch, map_tensors(rows_of_rank, batch)
        return known[1]

    def rows_of_rank(tensor: torch.Tensor) -> torch.Tensor:
        first, end = (len(tensor) * rank // group.size for rank in (group.rank, group.rank + 1))
        return tensor[first:end]

    vars(part)["next_inputs"] = next_part
    return part


def join(group: Group, cell: OpenCell, part: TrainingTask, surroundings: Surroundings) -> Callable[[], None]:
    """Connect the ranks and return the step that averages gradients; the group's functions are then set.

    Raises UnsupportedError for a model that DistributedDataParallel refuses.
    """
    target = cell.target
    group.connect(target.device, cell.job.time_limit_s)
    try:
        model = DistributedDataParallel(part.model)
    except (RuntimeError, ValueError, TypeError) as error:
        if COMMUNICATION.search(str(error)):
            raise
        raise UnsupportedError(f"{cell.job.cell.device} cannot train this model: {first_line(error)}") from error
    averaging = copy.copy(part)
    averaging.model = model
    step = averaging.plain_step()

    def unsynced() -> None:
        with model.no_sync():
            step()

    def gradients() -> Any:
        """Add the averaged gradients of the next batch to the model; returns this rank's part on the host."""
        for tensor in tensors_in(part.model):
            distributed.broadcast(tensor.detach(), 0)
        batch = part.next_inputs()
        with without_dropout(part.model):
            part.model.zero_grad(set_to_none=True)
            averaging.add_gradients(*batch)
        return map_tensors(lambda tensor: tensor.detach().cpu(), batch)

    def memory() -> dict[str, Any]:
        part.arithmetic.run_until_updated(step)
        return measure_memory(step, target.device, target.uuid)

    def read_surroundings(timed_s: float, timed_steps: int) -> dict[str, Any]:
        surroundings.read_under_load()
        return surroundings.columns(timed_s, timed_steps)

    group.steps = [step, unsynced]
    group.functions = {
        "gradients": gradients,
        "memory": memory,
        "counts": surroundings.counts,
        "rows": lambda: rows_in(part.next_inputs()),
        "surroundings": read_surroundings,
    }
    return step


def check_gradients(group: Group, part: TrainingTask, precision: str) -> tuple[float, str | None, str | None]:
    """Compare averaged gradients with those of one device; returns a relative error, why it is wrong, and a note.

    The averaged gradients must be the mean of those that one device computes on the parts, up to rounding. The error is
    relative to one device's gradients on the whole batch. It is no mistake if that is large, since the loss may not be
    a mean over samples, and batch normalisation takes the statistics of a part; a note then says so.
    """
    batches = [part.place(batch) for batch in group.call("gradients")]
    averaged = _gradients(part)

    def alone(*parts: Any) -> list[torch.Tensor]:
        part.model.zero_grad(set_to_none=True)
        with without_dropout(part.model):
            for batch in parts:
                part.add_gradients(*batch, parts=len(parts))
        return _gradients(part)

    of_parts, again = alone(*batches), alone(*batches)
    whole = tree_map(lambda *rows: torch.cat(rows) if isinstance(rows[0], torch.Tensor) else rows[0], *batches)
    of_whole = alone(whole)
    part.model.zero_grad(set_to_none=True)
    rounding = MARGIN * ROUNDING[precision]
    error, noise = relative_error(averaged, of_parts) or 0.0, relative_error(again, of_parts) or 0.0
    of_batch = relative_error(averaged, of_whole) or 0.0
    wrong = note = None
    if not error <= max(rounding, 3 * noise):
        wrong = f"gradients averaged over {group.size} processes differ from one device's by {error:.2g}"
    elif not of_batch <= rounding**0.5:
        rows = sorted({*map(rows_in, batches)})
        uneven = (
            f"parts of {listed([str(number) for number in rows])} samples weigh the same, " if len(rows) > 1 else ""
        )
        note = (
            f"averaged over {group.size} parts, gradients differ from those of the whole batch by {of_batch:.2g}: "
            f"{uneven}the loss is no mean over samples, or a layer uses statistics of the batch"
        )
    return of_batch, wrong, note


def _gradients(task: TrainingTask) -> list[torch.Tensor]:
    return [p.grad.detach().double().cpu() for p in parameters_of(task.model) if p.grad is not None]
