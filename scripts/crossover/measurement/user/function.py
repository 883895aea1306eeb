"""A user's plain function as a workload: called with a device, it returns the step to time on that device.

Results of a step on an accelerator are compared with those of a step on the CPU. Both steps usually get the same data,
since the generators of Python and NumPy are seeded, and random tensors are drawn on the host.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import active_children
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import nn
from torch.utils._pytree import tree_leaves

from crossover import Step
from crossover.config.models import Model
from crossover.config.studies import Cell
from crossover.config.words import COLD, PLAIN, PROTOCOLS
from crossover.errors import InvalidError, UserError
from crossover.measurement import Tell
from crossover.measurement.step.check_modes import SameDraws
from crossover.measurement.step.conditions import seed_all
from crossover.measurement.step.correctness import comparable, on_same_places
from crossover.measurement.step.precision import Arithmetic
from crossover.measurement.step.tasks import CheckResult, Task
from crossover.measurement.user.loss import kind_of
from crossover.measurement.user.model import as_user_error, call_user, check_parts
from crossover.measurement.user.module import call_function, imported_anew, is_of_user, keeps_state, location_of
from crossover.measurement.user.pending import UNFINISHED, pending_kind
from crossover.measurement.user.repeats import (
    ADVICE,
    CHANCE_S,
    CONFIRMATIONS,
    LEAST_CONFIRMED_S,
    LEAST_S,
    VANISHED,
    Spent,
    differ_by,
    may_compile,
    spent,
    used_up,
    verdict,
    wait_for_threads,
)

RETURNS = "a function without arguments, or a crossover.Step(run=...) without a model"
TOLERANCES = {
    **dict.fromkeys((torch.float64, torch.complex128), 1e-6),
    **dict.fromkeys((torch.float32, torch.complex64), 1e-3),
    **dict.fromkeys((torch.float16, torch.bfloat16), 3e-2),
}
"""Largest relative difference that is allowed between results, by dtype; 0 for other dtypes, such as integers."""


SECOND, LATER = "its second call", "a call after many"


class UserFunction:
    def __init__(self, cell: Cell, tell: Tell) -> None:
        assert cell.model is not None
        self.model = cell.model
        self.cell = cell
        self.tell = tell

    def build(self, _cell: Cell, _data: object, arithmetic: Arithmetic) -> FunctionTask:
        return FunctionTask(self.step_on(arithmetic.device.type), self, arithmetic)

    def step_on(self, device: str) -> Step:
        cell, model = self.cell, self.model
        size = model.argument(cell.size)
        axes = {
            "batch_size": cell.batch_size,
            "device": device,
            "protocol": PROTOCOLS[0] if cell.protocol == COLD else cell.protocol,
        }
        axes |= {"variant": cell.variant} if cell.variant != PLAIN else {}
        sizes = [f"{name}={value}" for name, value in zip(model.axes, (size, cell.batch_size), strict=False)]
        values = sizes or [repr(size)] * model.is_sized
        values += [f"{name}={axes[name]!r}" for name in model.takes if name in axes and name not in model.axes]
        call = f"{model.name}({', '.join(values)})"

        def make() -> Any:
            with SameDraws():
                return call_function(model, size, **axes)

        returned = call_user(model, call, self.tell, make)
        self.tell({"doing": f"a step of {model.shown}: {call}"})
        return checked_step(returned, f"{model.shown}: {call}")


def checked_step(returned: Any, where: str) -> Step:
    """The return value of the user's function as a Step without a model; raises UserError for anything else."""
    if isinstance(returned, nn.Module) or (
        isinstance(returned, tuple) and any(isinstance(part, nn.Module) for part in returned)
    ):
        raise UserError(
            f"{where} returns a model, which Crossover moves to the device itself; remove the argument device, or "
            f"return {RETURNS}"
        )
    step = returned if isinstance(returned, Step) else Step(run=returned)
    if step.model is not None or step.inputs is not None:
        raise UserError(f"{where} returns a Step with a model or inputs; remove the argument device, or leave them out")
    if not callable(step.run) or isinstance(step.run, type):
        raise UserError(f"{where} returns {kind_of(step.run)}; allowed: {RETURNS}")
    check_parts(step, where)
    if unused := [name for name in ("targets", "loss", "optimizer") if getattr(step, name) is not None]:
        raise UserError(f"{where} returns a Step with {', '.join(unused)}, which a step without a model does not use")
    return step


class FunctionTask(Task):
    """Runs the step of a user's plain function and discards its result."""

    is_function = True

    def __init__(self, step: Step, builder: UserFunction, arithmetic: Arithmetic) -> None:
        self.user_step, self.builder = step, builder
        threadpool_limits(torch.get_num_threads())  # limits the BLAS and OpenMP libraries of NumPy and SciPy
        self.waits_for_results: bool | None = None
        """True if the step's results are computed in the background; None before the first step."""
        super().__init__(nn.Module(), arithmetic)
        self.samples = self._count_samples()
        counted = step.samples is not None or "batch_size" in self.builder.model.takes
        self.sample_name = step.unit or ("samples" if counted else "calls")

    def user_line(self, error: BaseException) -> str | None:
        return location_of(error, self.builder.model) if is_of_user(error) else None

    def _count_samples(self) -> int:
        step, model = self.user_step, self.builder.model
        if not callable(step.samples):
            return step.samples or (self.builder.cell.batch_size if "batch_size" in model.takes else 1)
        with as_user_error(model, "the count of its samples fails", is_mistake=True):
            samples = step.samples()
        if type(samples) is not int or samples < 1:
            raise UserError(f"{model.shown}: samples returns {samples!r}; allowed: a whole number of at least 1")
        return samples

    def forward(self, _model: nn.Module, *_inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        raise NotImplementedError("a plain function has no forward pass")

    def run(self, *_inputs: Any) -> None:
        assert self.user_step.run is not None
        try:
            returned = self.user_step.run()
            if self.waits_for_results is not False:
                self._wait_for_results(returned)
        except Exception:
            with as_user_error(self.builder.model):  # entered only here, since it takes as long as a short step
                raise

    def around(self) -> AbstractContextManager[object]:
        return as_user_error(self.builder.model)

    def timed_step(self) -> Callable[[], object]:
        run = self.user_step.run
        return run if run is not None and self.waits_for_results is False else self.step

    def _wait_for_results(self, returned: Any) -> None:
        """Wait for results that are computed in the background, such as JAX's arrays.

        Later steps wait only if the first step returns such results.
        """
        if self.waits_for_results is None and (kind := pending_kind(returned)):
            with suppress(Exception):
                returned.close()  # otherwise Python warns about a coroutine that was never awaited
            raise UserError(f"{self.builder.model.shown}: its step returns {kind}{UNFINISHED}")
        waits = [wait for leaf in tree_leaves(returned) if callable(wait := getattr(leaf, "block_until_ready", None))]
        self.waits_for_results = bool(waits)
        for wait in waits:
            wait()

    def check(self) -> CheckResult:
        """Compare the results of a first step with those of a first step on the CPU.

        The user's function is called anew for each first step, since a later step may depend on earlier ones. For the
        device, it is called twice to check that results are reproducible. Those of a second step and of a step after
        many are compared too: if they differ, it is not known whether later steps do the work of the first.
        """
        model = self.builder.model
        if not model.checked:
            return CheckResult(unchecked="the study says check: false")
        device = self.arithmetic.device.type
        firsts: list[Spent] = []
        laters: list[Spent] = []
        results, changed = self._first_results(device, firsts, laters)
        tolerance = self.user_step.tolerance
        is_repeated = difference(results, self._first_results(device, firsts, laters)[0], tolerance) is None
        if reason := self._unrepeated(device, firsts, laters):
            return CheckResult(unchecked=reason)
        if keeps_state() and not active_children():
            changed_anew, reason = self._compared_anew(device, laters)
            if reason:
                return CheckResult(unchecked=reason)
            changed = changed or changed_anew
        if not results:
            return CheckResult(
                unchecked="the function returns no numbers or arrays to compare, so that nothing shows whether its "
                "work is done; Step(result=...) can return some"
            )
        if not is_repeated:
            return CheckResult(
                unchecked="built twice, the function returns different results; it may draw unseeded random numbers"
            )
        changed = changed or self._changed(results, self.user_step, LATER)
        if device == "cpu":
            return CheckResult(unchecked=changed)
        expected = results_of(self.builder.step_on("cpu"), model)
        if (text := difference(results, expected, tolerance)) is None:
            return CheckResult({"result": max(map(relative_error, results, expected))}, unchecked=changed)
        return CheckResult(
            wrong=f"its results on {device} differ from those on the CPU: {text}; if both have the same data, "
            "Step(tolerance=...) allows more"
        )

    def _first_results(self, device: str, firsts: list[Spent], laters: list[Spent]) -> tuple[list[Result], str | None]:
        """The results of a first step on new data, and how those of the second differ, if they do.

        Adds the times of the first step and of a step after many to the lists.
        """
        assert self.user_step.run is not None
        step = self.builder.step_on(device)
        assert step.run is not None
        results = results_of(replace(step, run=_timed(step.run, firsts)), self.builder.model)
        _timed(self.user_step.run, laters)()
        return results, self._changed(results, step, SECOND)

    def _changed(self, first: list[Result], step: Step, which: str) -> str | None:
        """How the results of the next call of a step differ from those of a first call; None if they do not."""
        text = difference(results_of(step, self.builder.model), first, self.user_step.tolerance)
        return text and (
            f"after its first call it returns other results ({which}: {text}), so the time may be of other work; "
            f"{ADVICE}"
        )

    def _unrepeated(self, device: str, firsts: list[Spent], laters: list[Spent]) -> str | None:
        """Why it is unknown whether each step does the work of the first; raises InvalidError if later ones do not."""
        run, shown = self.user_step.run, self.builder.model.shown
        assert run is not None
        if kind := used_up(run):
            raise InvalidError(f"{shown}: its step reads an iterator ({kind}) that its first call uses up; {ADVICE}")
        return self._judged(firsts, laters, partial(self._first_results, device), LEAST_CONFIRMED_S)

    def _compared_anew(self, device: str, laters: list[Spent]) -> tuple[str | None, str | None]:
        """The same as `_changed` and `_unrepeated` for first calls whose modules have just been imported."""
        compiles = may_compile(self.user_step.run)
        firsts: list[Spent] = []
        reasons: list[str | None] = []
        with suppress(Exception):  # some modules can be imported only once
            first: list[Result] = []
            for seed in range(1 if compiles else 2):  # the less of both times counts, since new code is slower
                with imported_anew():
                    seed_all(seed)  # results differ if the import draws data, which the task's own do not have
                    results, reason = self._first_results(device, firsts, laters)
                is_alike = seed > 0 and difference(results, first, self.user_step.tolerance) is None
                first = results
                reasons += [reason, self._changed(first, self.user_step, LATER) if is_alike else None]

        def again(firsts: list[Spent], laters: list[Spent]) -> None:
            with imported_anew():
                self._first_results(device, firsts, laters)

        changed, complete = next(filter(None, reasons), None), not compiles and len(firsts) == 2
        return changed, self._judged(firsts, laters, again, LEAST_S[VANISHED]) if complete else None

    def _judged(
        self,
        firsts: list[Spent],
        laters: list[Spent],
        again: Callable[[list[Spent], list[Spent]], object],
        least_confirmed_s: float,
    ) -> str | None:
        """The verdict on the times of first and later calls; raises InvalidError if later ones do not do the work.

        Where they may differ by chance, `again` adds further ones, all on one thread.
        """
        if active_children():  # their work, which is no CPU time of this process, cannot be compared
            return None
        compiles, least_s = may_compile(self.user_step.run), LEAST_S[VANISHED]
        is_little = differ_by(firsts, laters, VANISHED, least_confirmed_s, least_s)
        may_be_chance = any(differ_by(firsts, laters, ratio, least, CHANCE_S) for ratio, least in LEAST_S.items())
        if (is_little or may_be_chance) and not compiles:
            firsts, laters = [], []
            with threadpool_limits(1):
                for _ in range(CONFIRMATIONS):
                    again(firsts, laters)
            least_s = least_confirmed_s if is_little else least_s
        wrong, unchecked = verdict(firsts, laters, compiles, least_s)
        if wrong:
            raise InvalidError(f"{self.builder.model.shown}: {wrong}")
        return unchecked


@dataclass(frozen=True)
class Result:
    """An array that a step returned, on the host, and the largest relative difference that its type allows."""

    values: torch.Tensor
    tolerance: float


def _timed(run: Callable[[], Any], times: list[Spent]) -> Callable[[], Any]:
    """A function whose calls add their times to `times`."""

    def timed() -> Any:
        returned: list[Any] = []
        wait_for_threads()
        times.append(spent(lambda: returned.append(run())))
        return returned[0]

    return timed


def results_of(step: Step, model: Model) -> list[Result]:
    """Run one step, each time from the same state of the host's generators, and return its numbers and arrays.

    They are copies in host memory, since a later step may overwrite them.
    """
    assert step.run is not None
    random.seed(1)
    np.random.seed(1)
    torch.default_generator.manual_seed(1)  # not the device's, which would draw other numbers than the host
    returned = step.run()
    if step.result is not None:
        try:
            with as_user_error(model, "its result fails", is_mistake=True):
                returned = step.result()
        except UserError as mistake:
            raise InvalidError(str(mistake)) from mistake
    leaves = tree_leaves(dict(returned) if isinstance(returned, Mapping) else returned)
    return [result for leaf in leaves if (result := _result_of(leaf)) is not None]


def _result_of(value: Any) -> Result | None:
    """The numbers of a value; a sparse array stays sparse."""
    if isinstance(value, torch.Tensor):
        values = comparable(value.detach().cpu())
        return Result(values.clone() if value.device.type == "cpu" else values, TOLERANCES.get(value.dtype, 0.0))
    is_sparse = hasattr(value, "tocoo")
    if (is_sparse or hasattr(value, "__cuda_array_interface__")) and hasattr(value, "get"):  # CuPy
        value = value.get()
    matrix = value.tocoo() if is_sparse and value.ndim < 3 else None
    is_plain = isinstance(value, int | float | complex)
    if matrix is None and not is_plain and not hasattr(value, "__array__"):
        return None
    array = np.asarray(value if matrix is None else matrix.data)
    if array.dtype.kind not in "biufc":
        return None
    dtype = {"g": np.dtype(np.float64), "G": np.dtype(np.complex128)}.get(array.dtype.char, array.dtype)
    tensor = torch.from_numpy(array.astype(dtype.newbyteorder("="), order="C"))
    tolerance = TOLERANCES.get(tensor.dtype, 0.0)
    if is_plain and tolerance and not isinstance(value, np.generic):
        tolerance = TOLERANCES[torch.float32]  # a plain number may come from an array in single precision
    if matrix is not None:
        places = torch.from_numpy(np.stack(matrix.coords).astype(np.int64))
        tensor = torch.sparse_coo_tensor(places, tensor, matrix.shape, check_invariants=False)
    return Result(tensor, tolerance)


def difference(results: list[Result], expected: list[Result], tolerance: float | None) -> str | None:
    """The first difference beyond the tolerance, in words; None if the results agree."""
    if len(results) != len(expected):
        return f"{len(results)} arrays and {len(expected)}"
    for number, (a, b) in enumerate(zip(results, expected, strict=True), 1):
        name = f"array {number} of {len(results)}: " if len(results) > 1 else ""
        if a.values.shape != b.values.shape:
            return f"{name}shape {list(a.values.shape)} and {list(b.values.shape)}"
        allowed = max(a.tolerance, b.tolerance) if tolerance is None else tolerance
        error = relative_error(a, b)
        if error > allowed:
            return f"{name}relative difference {error:.2g}, allowed {allowed:g}"
    return None


def relative_error(result: Result, expected: Result) -> float:
    """Euclidean norm of the difference, relative to that of `expected`.

    It is 0 if all values are equal, where NaN equals NaN. It is infinite if a differing value is not finite, or if
    values differ and the norm of `expected` is 0.
    """
    values, others = result.values, expected.values
    # Dense values are compared without the memory that other comparisons take, several times theirs.
    if values.layout == others.layout == torch.strided and values.dtype == others.dtype and torch.equal(values, others):
        return 0.0
    values, others = on_same_places(values, others)
    same = (values == others) | (values.isnan() & others.isnan())
    if bool(same.all()):
        return 0.0
    differing = (values - others)[~same]
    norm = float(others[others.isfinite()].abs().square().sum().sqrt())
    if not bool(differing.isfinite().all()) or norm == 0:
        return math.inf
    return float(differing.abs().square().sum().sqrt()) / norm
