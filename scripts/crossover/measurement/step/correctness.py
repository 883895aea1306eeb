"""The numerical check: compare a step's result with the same computation in double precision on the CPU.

Both sides start from the same fresh weights and the same batch. For inference, the outputs are compared; for training,
the loss and, as one vector, the gradients of the trainable parameters. If the whole batch would need too much time or
memory, only some rows are compared. Training then runs on these rows alone. Inference runs on the whole batch as timed,
provided that its rows are independent.

The error that rounding can cause depends on the model: in fp32, it is 3e-7 in the gradient of an MLP and up to 6e-2 in
the gradient of a fresh ResNet. An error above a small multiple of one operation's rounding error is therefore compared
with the effect of noise. The noise is added to the results of the reference's operations.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import _engine_run_backward

from crossover.machine.kernel import available_bytes
from crossover.measurement.modules import buffers_of, modules_of, named_buffers_of, parameters_of, set_mode
from crossover.measurement.resident_memory import grown_bytes
from crossover.measurement.step.check_modes import RoundingNoise, SameDraws
from crossover.measurement.step.endings import is_out_of_memory
from crossover.measurement.step.precision import Arithmetic, default_dtype
from crossover.measurement.step.tasks import CheckResult, Errors, GradientTask, InferenceTask, Task
from crossover.measurement.step.trees import map_tensors, tensors_of

ROUNDING = {
    "fp64": 2.0**-49,
    "fp32": 2.0**-20,
    "tf32": 2.0**-10,
    "amp-bf16": 2.0**-7,
    "amp-fp16": 2.0**-10,
    "bf16": 2.0**-7,
    "fp16": 2.0**-10,
}
"""Relative noise that simulates rounding. In fp64 and fp32, where each addition is rounded, it is 16 times the unit
roundoff. In the other precisions, which usually sum in fp32, it is twice the unit roundoff."""

LARGER_NOISE = {"fp64": 8.0, "fp32": 8.0}
"""Factor by which noise is enlarged before an error counts as wrong; 4 in the other precisions. Rounding may change the
sign of a value before a ReLU, and so its gradient. This is rare, but larger noise reveals its effect."""

NOISE_MARGIN = 3.0
"""Noise explains an error of up to this multiple of the noise's effect."""

DRAWS_MAX = 2
"""Maximum number of runs with noise of the same size."""

ERROR_MAX = 0.5

ATTEMPTS = 2
"""Maximum number of attempts, each with fresh weights and the next batch. A result is wrong if all find it wrong."""

REPEAT_TOLERANCE = 1e-9
"""Relative difference allowed between two runs in double precision, whose order of summation may differ."""

WHOLE_BATCH_S = 0.1
"""Maximum duration of the reference for a batch of more than `checked_rows`; above it, only these are compared, if
possible."""

CHECKED_ROWS_S = 1.0
"""Maximum duration of the reference for `checked_rows`; above it, only FEW_ROWS are compared, if possible."""

FEW_ROWS = 8
"""Number of rows that are compared if the reference is slow."""

LONGEST_BATCH_S = 5.0
"""Time limit of the reference for a batch of more than `checked_rows`, if its rows depend on each other."""

NEGLIGIBLE_S = 0.02
"""A reference that takes no longer than this is assumed to fit into memory."""

REFERENCE = Arithmetic(torch.device("cpu"), torch.float64)

REFERENCE_FAILS = (
    "the model cannot be compared: the same step fails on the CPU in double precision, for example since it makes "
    "tensors of a fixed type or device"
)

Values = dict[str, list[torch.Tensor]]


class UncheckedError(Exception):
    """The step cannot be compared with the reference."""


def compare_with_reference(
    task: Task,
    fresh_model: Callable[[], nn.Module],
    precision: str,
    execution: str = "eager",
) -> CheckResult:
    """Compare a task's step with double precision; may leave fresh weights in the task's model."""
    if task.not_comparable is not None:
        return CheckResult(unchecked=f"the workload leaves the check out: {task.not_comparable}")
    answers = []
    try:
        for attempt in range(ATTEMPTS):
            fresh = fresh_model()
            if attempt:
                _vary(fresh)  # since a user's model may be built with the same weights each time
            answers.append(_compare(task, fresh, fresh_model, precision, execution))
            if answers[-1].wrong is answers[-1].unchecked is None:
                return answers[-1]
    except UncheckedError as error:
        return CheckResult(unchecked=str(error))
    except Exception as error:  # from the comparison, since the step itself has run before
        if is_out_of_memory(error):
            return CheckResult(unchecked="memory ran out in the comparison with double precision")
        return CheckResult(unchecked=REFERENCE_FAILS)
    return next((answer for answer in answers if answer.wrong is None), answers[-1])


def _vary(model: nn.Module) -> None:
    """Change each weight by up to 1 %."""
    with torch.no_grad():
        for parameter in parameters_of(model):
            if parameter.is_floating_point():
                parameter.mul_(1 + 0.01 * torch.rand_like(parameter))


def _compare(
    task: Task,
    fresh: nn.Module,
    fresh_model: Callable[[], nn.Module],
    precision: str,
    execution: str,
) -> CheckResult:
    weights_bytes = sum(tensor.numel() * 8 for tensor in parameters_of(fresh))
    if 4 * weights_bytes > available_bytes():
        raise UncheckedError("the weights in double precision do not fit into the host's free memory")
    batch = task.next_inputs()
    reference = _reference(task, fresh, batch)
    draws = nullcontext() if execution == "compile" else SameDraws()  # compiled code ignores the mode

    def run_step(inputs: Any) -> Values:
        # A training on some rows would be compiled anew, so it runs eagerly; `timed_check` checks the compiled step.
        eagerly = execution == "compile" and isinstance(task, GradientTask) and inputs is not batch
        with torch.compiler.set_stance("force_eager") if eagerly else nullcontext():
            return _evaluate(task, task.model, task.arithmetic, inputs, draws)

    def run_reference(inputs: Any, *noise: RoundingNoise, model: nn.Module = reference) -> Values:
        with default_dtype(torch.float64):
            return _evaluate(task, model, REFERENCE, map_tensors(REFERENCE.place, inputs), draws, *noise)

    def check_builds() -> None:
        """Raise UncheckedError if another build of the model computes something else from the same weights."""
        other = fresh_model()
        if _shapes(other) == _shapes(reference):
            _in_double_precision(other)
            _copy_state(reference, other)
            set_mode(other, reference.training)
            with without_dropout(other):
                errors = errors_between(run_reference(part.reference_inputs, model=other), exact)
            if all(error <= REPEAT_TOLERANCE for error in errors.values()):
                return
        raise UncheckedError(
            "built twice from the same seed, the model computes different results with the same weights; keep its "
            "random choices in buffers, or draw them from the generators of torch, NumPy or Python"
        )

    with without_dropout(task.model), without_dropout(reference):
        generator_before = torch.get_rng_state()
        part = _part(task, batch, run_step, run_reference, precision)

        @cache
        def check_repeats() -> None:
            errors = errors_between(run_reference(part.reference_inputs), exact)
            if any(error > REPEAT_TOLERANCE for error in errors.values()):
                raise UncheckedError(
                    "two runs differ in double precision: the model draws unseeded random numbers, or keeps state"
                )

        def noise_effect(share: float, seed: int) -> Errors:
            check_repeats()  # otherwise randomness of the model would count as an effect of noise
            noise = RoundingNoise(share, seed, sums_round=precision in LARGER_NOISE)
            return errors_between(run_reference(part.reference_inputs, noise), exact)

        exact = part.exact or run_reference(part.reference_inputs)
        bypassed = not torch.equal(torch.get_rng_state(), generator_before)
        if bypassed or (getattr(draws, "drew", False) and part.rows is not None):
            raise UncheckedError("the model draws random numbers that the reference cannot draw as well")
        values = part.select(run_step(part.inputs))
        _check_comparable(values, exact)

        def rerun_difference() -> Errors:
            return errors_between(part.select(run_step(part.inputs)), values)

        answer = judge(errors_between(values, exact), noise_effect, rerun_difference, precision)
        if answer.wrong:
            check_builds()
        if answer.wrong and not any(map(_has_fractions, exact["result"])) and "gradient" not in exact:
            finding = answer.wrong.partition(";")[0]
            answer = CheckResult(
                answer.errors, unchecked=f"{finding}; integers may differ where two scores are nearly equal"
            )
        return replace(answer, rows=part.count)


def _reference(task: Task, fresh: nn.Module, batch: Any) -> nn.Module:
    """Copy a fresh model's state to the task's model; returns the fresh model in double precision.

    Raises UncheckedError if the two models do not have the same weights.
    """
    if _shapes(fresh) != _shapes(task.model):  # the first forward pass may make layers
        dtypes = (parameter.dtype for parameter in parameters_of(fresh) if parameter.is_floating_point())
        host = Arithmetic(REFERENCE.device, next(dtypes, torch.get_default_dtype()))
        set_mode(fresh, training=False)
        with torch.no_grad():
            task.forward(fresh, *map_tensors(host.place, batch))
    shapes, others = _shapes(fresh), _shapes(task.model)
    if differing := sorted(name for name in {**shapes, **others} if shapes.get(name) != others.get(name)):
        raise UncheckedError(f"built twice from the same seed, the model has different weights: {differing[0]}")
    _copy_state(fresh, task.model)
    _in_double_precision(fresh)
    set_mode(fresh, task.model.training)
    return fresh


def _shapes(model: nn.Module) -> dict[str, Any]:
    return {name: getattr(value, "shape", ()) for name, value in nn.Module.state_dict(model).items()}


def _copy_state(model: nn.Module, other: nn.Module) -> None:
    nn.Module.load_state_dict(other, nn.Module.state_dict(model))
    buffers = named_buffers_of(other)
    with torch.no_grad():
        for name, buffer in named_buffers_of(model).items():  # includes buffers that are not persistent
            if name in buffers:
                buffers[name].copy_(buffer)


def _in_double_precision(model: nn.Module) -> None:
    """Convert parameters, buffers, and tensors in plain attributes."""
    REFERENCE.place_model(model)
    for module in modules_of(model):
        vars(module).update(
            {name: REFERENCE.place(value) for name, value in vars(module).items() if type(value) is torch.Tensor}
        )


@dataclass(frozen=True)
class Part:
    """The part of a batch that is compared: all of its rows, or some."""

    inputs: Any
    reference_inputs: Any
    exact: Values | None = None
    rows: torch.Tensor | None = None
    """Indices of the rows of the step's outputs that are compared; None: all."""
    count: int | None = None
    """Number of the batch's rows that are compared; None: all."""

    def select(self, values: Values) -> Values:
        return values if self.rows is None else _rows_of(values, self.rows)


def _rows_of(values: Values, rows: torch.Tensor) -> Values:
    return {name: [tensor[rows.to(tensor.device)] for tensor in tensors] for name, tensors in values.items()}


def _part(
    task: Task,
    batch: Any,
    run_step: Callable[[Any], Values],
    run_reference: Callable[[Any], Values],
    precision: str,
) -> Part:
    """Choose the whole batch, or some of its rows if the whole batch takes too much time or memory.

    Raises UncheckedError if neither is possible.
    """
    whole = Part(batch, batch)
    lengths = {len(tensor) for tensor in tensors_of(batch) if tensor.dim()}
    count = max(lengths, default=0)
    most, few = min(count, task.checked_rows), min(FEW_ROWS, task.checked_rows)
    if not task.batched or count <= few:
        return whole
    training = isinstance(task, GradientTask)

    def run(limit: int, longest_s: float) -> tuple[torch.Tensor, Any, Values, float]:
        """Run the reference for `limit` rows: their indices, the rows, the results, and its duration for a row.

        If that exceeds `longest_s`, the reference is run once more, since the first run also loads libraries.
        """
        rows = torch.arange(limit) if training else checked_rows(count, limit)
        subset = map_tensors(lambda tensor: tensor[rows.to(tensor.device)] if tensor.dim() else tensor, batch)
        exact: Values = {}
        for _ in range(2):
            row_s = _seconds(lambda: exact.update(run_reference(subset))) / limit
            if row_s <= longest_s:
                break
        return rows, subset, exact, row_s

    is_quick = True
    try:
        for limit, following, longest_s in ((few, most, CHECKED_ROWS_S), (most, count, WHOLE_BATCH_S)):
            if is_quick and limit < following:
                rows, subset, exact, row_s = run(limit, longest_s / following)
                is_quick = row_s <= longest_s / following
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return whole  # the model may accept only this batch size
    whole_s = row_s * count

    def fits() -> bool:
        if whole_s <= NEGLIGIBLE_S:
            return True
        grown = grown_bytes(lambda: exact.update(run_reference(subset)))
        return count / len(rows) * grown < available_bytes() / 2

    if is_quick and (count == most or fits()):
        return whole
    if training:
        return Part(subset, subset, exact, count=len(rows))
    if lengths == {count} and _rows_are_independent(batch, count, rows, run_step, precision):
        return Part(batch, subset, exact, rows, len(rows))
    if count == most or (whole_s <= LONGEST_BATCH_S and fits()):
        return whole
    raise UncheckedError(
        "the rows of a batch depend on each other, so that all of them must be compared; in double precision that "
        f"would take about {whole_s:.0f} s, or more memory than there is"
    )


def _seconds(run: Callable[[], None]) -> float:
    start_s = time.perf_counter()
    run()
    return time.perf_counter() - start_s


def _rows_are_independent(
    batch: Any, count: int, rows: torch.Tensor, run_step: Callable[[Any], Values], precision: str
) -> bool:
    """True if replacing all other rows of the inputs changes the compared rows of the outputs only by rounding."""
    kept = torch.full((count,), int(rows[0]))  # the first compared row replaces all rows that are not compared
    kept[rows] = rows
    before = run_step(batch)
    if any(tensor.dim() == 0 or len(tensor) != count or tensor.is_sparse for tensor in before["result"]):
        return False
    after = run_step(map_tensors(lambda tensor: tensor[kept.to(tensor.device)], batch))
    errors = errors_between(_rows_of(after, rows), _rows_of(before, rows))
    return all(error <= NOISE_MARGIN * ROUNDING[precision] for error in errors.values())


def _check_comparable(values: Values, exact: Values) -> None:
    tensors = exact["result"]
    if not any(tensor.numel() for tensor in tensors):
        raise UncheckedError("the step returns no numbers to compare")
    stored = (tensor.coalesce().values() if tensor.is_sparse else tensor for tensor in tensors)
    if not any(bool(torch.isfinite(numbers).any()) for numbers in stored):
        raise UncheckedError("the result is not finite in double precision either")
    sizes = [[list(tensor.shape) for tensor in outputs["result"]] for outputs in (values, exact)]
    if sizes[0] != sizes[1]:
        raise UncheckedError(f"the outputs differ in size: {sizes[0]}, in double precision {sizes[1]}")


def judge(
    errors: Errors,
    noise_effect: Callable[[float, int], Errors],
    rerun_difference: Callable[[], Errors],
    precision: str,
) -> CheckResult:
    """The verdict: correct if noise as large as rounding explains the errors, wrong if larger noise does not either.

    It is unchecked if only larger noise explains an error, if an error that noise explains exceeds ERROR_MAX, or if two
    runs of the step differ by more than noise explains.

    `noise_effect(share, seed)` returns the relative change of the exact result under relative noise of `share`.
    `rerun_difference()` returns the relative difference between two runs of the step.
    """
    advice = "leave this precision out if fp32 is right"
    if precision in LARGER_NOISE:
        advice = "find the operation that computes something else"
    for name, error in errors.items():
        if math.isnan(error):
            if precision in LARGER_NOISE:
                advice = (
                    "if steps change data that they keep, such as an array that grows from step to step, let each step "
                    f"start from a copy; otherwise {advice}"
                )
            return CheckResult(errors, wrong=f"the step's {name} is not finite, in double precision it is; {advice}")
    share = ROUNDING[precision]
    limits = _limits(errors, noise_effect, share)
    suspects = [name for name, error in errors.items() if error > min(ERROR_MAX, limits[name])]
    if not suspects:
        return CheckResult(errors)
    if _beyond(errors, limits):
        larger = _limits(errors, noise_effect, share * LARGER_NOISE.get(precision, 4.0))
        limits = {name: max(limit, larger[name]) for name, limit in limits.items()}
    name = next(iter(_beyond(errors, limits)), suspects[0])
    finding = f"the step's {name} is off by {errors[name]:.2g} of its norm, where rounding explains {limits[name]:.2g}"
    if errors[name] <= limits[name]:
        return CheckResult(errors, unchecked=f"{finding}; in {precision} that could still be rounding")
    if (spread := rerun_difference()[name]) > limits[name]:
        return CheckResult(errors, unchecked=f"{finding}, but two runs of the step differ by {spread:.2g}")
    return CheckResult(errors, wrong=f"{finding}; {advice}")


def _limits(errors: Errors, noise_effect: Callable[[float, int], Errors], share: float) -> Errors:
    """The largest errors that noise explains, from DRAWS_MAX runs with noise, or from fewer that explain `errors`."""
    limits = dict.fromkeys(errors, NOISE_MARGIN * share)
    for seed in range(DRAWS_MAX):
        if not _beyond(errors, limits):
            break
        for name, error in noise_effect(share, seed).items():
            limits[name] = math.inf if math.isnan(error) else max(limits[name], NOISE_MARGIN * error)
    return limits


def _beyond(errors: Errors, limits: Errors) -> list[str]:
    return [name for name, error in errors.items() if error > limits[name]]


def checked_rows(rows: int, limit: int) -> torch.Tensor:
    """Indices of evenly spaced rows from first to last, since any tile of a kernel, or the remainder, may be wrong."""
    return torch.linspace(0, rows - 1, min(rows, limit), dtype=torch.float64).round().long()


def _evaluate(
    task: Task,
    model: nn.Module,
    arithmetic: Arithmetic,
    inputs: Any,
    *contexts: AbstractContextManager[Any],
) -> Values:
    """A training's loss and gradients, or an inference's outputs; integer outputs are left out if there are others.

    On overflow the loss scale is halved, as in the step, and the forward pass is repeated, since a compiled graph
    cannot run backward twice.
    """
    training = isinstance(task, GradientTask)
    with_gradients = training or (isinstance(task, InferenceTask) and task.takes_gradients)
    scale = arithmetic.scaler.get_scale() if training and arithmetic.scaler else 1.0
    while True:
        with _same_buffers(model), ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context)
            with torch.set_grad_enabled(with_gradients), arithmetic.autocast():
                results = task.forward(model, *inputs)
            if not training:
                outputs = [comparable(result.detach()) for result in results]
                return {"result": list(filter(_has_fractions, outputs)) or outputs}
            scaled = _gradients(results[0] * scale, model)
        for tensor in tensors_of(inputs):
            tensor.grad = None  # a model may require gradients of its inputs
        if scale <= 1 or all(bool(torch.isfinite(gradient).all()) for gradient in scaled):
            # Even a division by 1 would need memory for a second copy of all gradients.
            gradients = scaled if scale == 1 else [gradient / scale for gradient in scaled]
            return {"result": [results[0].detach()], "gradient": gradients}
        scale /= 2


def _has_fractions(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def comparable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without a nested, quantised or compressed layout; a sparse one stays sparse, by coordinates."""
    if tensor.is_nested:
        tensor = torch.nested.to_padded_tensor(tensor, 0.0)
    if tensor.is_quantized:
        return tensor.dequantize()
    if tensor.layout in (torch.strided, torch.sparse_coo):
        return tensor
    return tensor.to_dense() if tensor.is_mkldnn else tensor.to_sparse()


def on_same_places(tensor: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The values of two tensors in double precision on the host; of sparse ones at all places that either stores."""
    values, others = (comparable(t.detach().to("cpu", _double_of(t))) for t in (tensor, other))
    if not (values.is_sparse and others.is_sparse):
        return _dense(values), _dense(others)
    values, others = values.coalesce(), others.coalesce()
    places = torch.cat([values.indices(), others.indices()], dim=1)

    def at_places(*parts: torch.Tensor) -> torch.Tensor:
        sums = torch.sparse_coo_tensor(places, torch.cat(parts), tensor.shape, check_invariants=False)
        return sums.coalesce().values()

    return (
        at_places(values.values(), torch.zeros_like(others.values())),
        at_places(torch.zeros_like(values.values()), others.values()),
    )


def _double_of(tensor: torch.Tensor) -> torch.dtype:
    return torch.complex128 if tensor.is_complex() else torch.float64


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


@contextmanager
def _same_buffers(model: nn.Module) -> Iterator[None]:
    buffers = buffers_of(model)
    before = [buffer.clone() for buffer in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, values in zip(buffers, before, strict=True):
                buffer.copy_(values)


def _gradients(loss: torch.Tensor, model: nn.Module) -> list[torch.Tensor]:
    """The gradients of a loss for all trainable parameters; zeros for parameters on which the loss does not depend."""
    parameters = [parameter for parameter in parameters_of(model) if parameter.requires_grad]
    before = [parameter.grad for parameter in parameters]  # reentrant checkpoints need gradients in `grad`
    for parameter in parameters:
        parameter.grad = None
    # torch.autograd.backward would suspend SameDraws, but checkpointed layers draw random numbers in the backward pass.
    _engine_run_backward((loss,), (torch.ones_like(loss),), False, False, (), True, True)
    gradients = [torch.zeros_like(p) if p.grad is None else _dense(p.grad) for p in parameters]
    for parameter, gradient in zip(parameters, before, strict=True):
        parameter.grad = gradient
    return gradients


def errors_between(values: Values, exact: Values) -> Errors:
    """The relative error of each kind of value; kinds without a finite exact value are left out."""
    errors = {name: relative_error(tensors, exact[name]) for name, tensors in values.items()}
    return {name: error for name, error in errors.items() if error is not None}


def relative_error(tensors: Iterable[torch.Tensor], exact: Iterable[torch.Tensor]) -> float | None:
    """Euclidean norm of the difference, relative to that of the exact values; 0 or infinity if all of these are 0.

    Non-finite exact values, as at masked positions, are ignored. Returns None if no exact value is finite. Returns NaN
    if the shapes differ, or if a value is not finite where the exact value is.
    """
    difference = norm = 0.0
    count = 0
    for tensor, exact_tensor in zip(tensors, exact, strict=True):
        if tensor.shape != exact_tensor.shape:
            return math.nan
        value, reference = on_same_places(tensor, exact_tensor)
        if not bool((finite := torch.isfinite(reference)).all()):
            value, reference = value[finite], reference[finite]
        difference += float((value - reference).abs().square().sum())
        norm += float(reference.abs().square().sum())
        count += reference.numel()
    if not count:
        return None
    if not math.isfinite(difference):
        return math.nan
    if norm == 0:
        return 0.0 if difference == 0 else math.inf
    return math.sqrt(difference / norm)


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Disable layers' dropout while the block runs, since the two sides of a comparison would draw different numbers.

    Layers in evaluation mode have no dropout. They are not changed, since a change would recompile them.
    """
    training = [module for module in modules_of(model) if module.training]
    # The probability is attribute `p` of dropout layers, `dropout` of attention and recurrent layers.
    names = [(m, "p" if isinstance(m, nn.modules.dropout._DropoutNd) else "dropout") for m in training]
    shares = [(m, name, share) for m, name in names if isinstance(share := getattr(m, name, None), float)]
    for module, name, _ in shares:
        setattr(module, name, 0.0)
    try:
        yield
    finally:
        for module, name, share in shares:
            setattr(module, name, share)
