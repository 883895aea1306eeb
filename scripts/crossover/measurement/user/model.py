"""A user's model as a workload: the Step that the user's function returns, and the training or inference task."""

from __future__ import annotations

import copy
import random
import re
import sys
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial, wraps
from itertools import chain
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, Dataset

from crossover import Step
from crossover.config.models import Model, Table
from crossover.config.signatures import RETURNS
from crossover.config.studies import Cell
from crossover.config.words import COPYING
from crossover.errors import InvalidError, UnsupportedError, UserError
from crossover.machine.kernel import available_bytes
from crossover.measurement import Tell, ignore
from crossover.measurement.modules import call_own_to, modules_of, parameters_of, set_mode, tensors_in
from crossover.measurement.step.conditions import read_switches, restore_unset
from crossover.measurement.step.endings import early_end, is_lacking
from crossover.measurement.step.precision import PURE, Arithmetic, default_dtype
from crossover.measurement.step.tasks import CheckResult, InferenceTask, Task, TrainingTask, parameter_count
from crossover.measurement.step.trees import Change, change_tensors, map_plain, map_tensors, same_values, tensors_of
from crossover.measurement.user.batches import (
    COUNT_THEM,
    Batch,
    batches_of,
    host_reader,
    is_list_of_dicts,
    sample_counter,
)
from crossover.measurement.user.captured import captured
from crossover.measurement.user.loss import ClassLabels, default_loss, kind_of, loss_without_changes, outputs_of
from crossover.measurement.user.module import (
    GUARD,
    cause_of,
    function_of,
    is_of_user,
    location_of,
    positional,
)
from crossover.measurement.user.pending import UNFINISHED, pending_kind
from crossover.measurement.user.repeats import dwindled, remembered
from crossover.measurement.user.table import TableSamples, samples_of

OPTIMIZER = "an optimizer of the model's parameters, or a function that makes one from them"
LOSS = "_crossover_loss"
"""Attribute of a fresh model with the loss that was built with it."""
LEARNING_RATE = 1e-3
"""Learning rate of the default optimizer; small, so that weights stay finite over many steps on the same batch."""


class UserModel:
    def __init__(self, cell: Cell, tell: Tell = ignore) -> None:
        assert cell.model is not None
        self.model = cell.model
        self.cell = cell
        self.tell = tell

    def build_model(self, _size: int) -> nn.Module:
        """The model on the host, with the dtypes that the user's function gave it."""
        step = self._user_step()
        module = module_of(step, self.model.mode)
        vars(module)[LOSS] = step.loss  # not as a module of its own
        return module

    def build(self, cell: Cell, _data: object, arithmetic: Arithmetic) -> Task:
        step = self._user_step()
        self.tell({"known": {"parameters": parameter_count(step.model, self.model.mode)}})
        task_type = UserTraining if self.model.mode == "train" else UserInference
        task = task_type(step, self.model, cell, arithmetic)
        task.build_fresh = lambda: task_type(self._user_step(), self.model, cell, arithmetic)
        self.tell({"doing": f"a step of {self.model.shown}"})
        if not self.model.checked:
            task.not_comparable = "the study says check: false"
        dtype = _default_dtypes[self.model]
        if dtype is arithmetic.dtype and dtype is not torch.get_default_dtype():
            torch.set_default_dtype(dtype)
            task.switches = {"default_dtype": str(dtype)}
        return task

    def _user_step(self) -> Step:
        size = self.model.argument(self.cell.size)
        values = {"size": repr(size), "batch_size": str(self.cell.batch_size)}
        call = f"{self.model.name}({', '.join(values[name] for name in self.model.passed)})"
        # A default dtype set by the user's code ends with the call; `build` sets it again if the task has that dtype.
        with default_dtype(_default_dtypes.get(self.model, torch.get_default_dtype())):
            try:
                returned = call_user(self.model, call, self.tell, lambda: self._call(size))
            finally:
                _default_dtypes[self.model] = torch.get_default_dtype()
        where = f"{self.model.shown}: {call}"
        step = _as_step(returned, where) if self.model.table is None else _on_table(returned, self.model.table, where)
        step = _with_fresh_weights(step, where)
        tensors = _tensors_in(step)
        # A model that is trained without parameters may make its layers in its first forward pass.
        if any(map(is_lazy, tensors)) or (self.model.mode == "train" and step.run is None and not tensors):
            self._make_parameters(step)
        if any(tensor.is_meta for tensor in _tensors_in(step)):
            raise UserError(f"{where} returns a model on the meta device, without values; build it on the CPU")
        return step

    def _call(self, size: int | str) -> Any:
        """Call the user's function, each time with the generators in the state of the first call.

        Random choices that the model keeps outside of its weights are then the same in each model built.
        """
        function = function_of(self.model)  # its import may draw numbers too
        states = _generator_states.setdefault(
            self.model, (random.getstate(), np.random.get_state(), torch.get_rng_state())
        )
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        return function(size, self.cell.batch_size)

    def _make_parameters(self, step: Step) -> None:
        with as_user_error(self.model, "loading its data fails", is_mistake=True):
            inputs, targets = next(batches_of(step, self.cell.batch_size, self.model.shown))
        was_training = step.model.training
        with as_user_error(self.model, "the first forward pass, which makes its parameters, fails"):
            set_mode(step.model, training=False)
            _bound(step.model, inputs, targets if step.loss is None else None)()
            set_mode(step.model, was_training)


_default_dtypes: dict[Model, torch.dtype] = {}
"""Torch's default dtype after the last call of each model's function."""


_generator_states: dict[Model, tuple[Any, Any, torch.Tensor]] = {}
"""States of Python's, NumPy's and torch's generators before the first call of each model's function."""


_handed_out: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()
"""Parameters and buffers that users' functions have returned so far, by `id`."""


def _with_fresh_weights(step: Step, where: str) -> Step:
    """The step; model, loss and optimizer are copied if the user's function has returned these weights before."""
    tensors = _tensors_in(step)
    if any(_handed_out.get(id(tensor)) is tensor for tensor in tensors):
        try:
            model, loss, optimizer = copy.deepcopy((step.model, step.loss, step.optimizer))
        except Exception as error:
            raise UserError(
                f"{where} returns the same model each time, which cannot be copied ({cause_of(error)}); build a new "
                "one each time"
            ) from error
        for module in modules_of(model):  # a compiled forward pass would use the weights of the original
            if hasattr(vars(module).get("forward"), "_torchdynamo_orig_callable"):
                del module.forward
        return replace(step, model=model, loss=loss, optimizer=optimizer)
    _handed_out.update({id(tensor): tensor for tensor in tensors})
    return step


def _tensors_in(step: Step) -> list[torch.Tensor]:
    modules = [module for module in (step.model, step.loss) if isinstance(module, nn.Module)]
    return [tensor for module in modules for tensor in tensors_in(module)]


class ModelWithLoss(nn.Module):
    """A model and its loss with weights, which are moved, cast and trained together."""

    def __init__(self, model: nn.Module, loss: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs: Any, **named_inputs: Any) -> Any:
        return self.model(*inputs, **named_inputs)

    def to(self, device: torch.device, dtype: torch.dtype) -> None:  # type: ignore[override]
        for part in (self.model, self.loss):
            call_own_to(part, device, dtype)


def module_of(step: Step, mode: str) -> nn.Module:
    """The module that a task moves and casts: the model, and in training without `run` also a loss with weights."""
    model: nn.Module = step.model
    if mode == "train" and step.run is None and isinstance(step.loss, nn.Module) and tensors_in(step.loss):
        return ModelWithLoss(model, step.loss)
    return model


def _as_step(returned: Any, where: str) -> Step:
    if isinstance(returned, Step):
        step = returned
    elif isinstance(returned, tuple) and len(returned) in (2, 3):
        step = Step(model=returned[0], inputs=returned[1], targets=returned[2] if len(returned) == 3 else None)
    else:
        plain = "; if your function is the step itself, give it an argument `device`" if callable(returned) else ""
        raise UserError(f"{where} returns {kind_of(returned)}; allowed: {RETURNS}{plain}")
    if not isinstance(step.model, nn.Module):
        raise UserError(f"{where} returns {kind_of(step.model)} as the model; allowed: a torch.nn.Module")
    if not isinstance(step.inputs, Dataset | DataLoader) and not tensors_of(step.inputs):
        raise UserError(
            f"{where} returns {kind_of(step.inputs)} as the inputs; allowed: a tensor, a tuple or dict of them, a "
            "Dataset or a DataLoader"
        )
    if isinstance(step.loss, type):
        raise UserError(f"{where} returns the class {step.loss.__name__} as the loss; give an instance of it")
    check_parts(step, where)
    return step


PARTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "targets": (lambda value: bool(tensors_of(value)), "a tensor, a list or dict of them, or None"),
    "loss": (callable, "a function of the model's output, and of the targets if there are any"),
    "optimizer": (lambda value: callable(value) or _is_optimizer(value), OPTIMIZER),
    "run": (callable, "a function"),
    "samples": (lambda value: callable(value) or (type(value) is int and value > 0), "a whole number, or a function"),
    "host": (
        lambda value: isinstance(value, str | list | tuple) and all(isinstance(name, str) for name in value),
        "names of the model's arguments",
    ),
    "unit": (lambda value: isinstance(value, str), 'a string, such as "rows"'),
    "result": (callable, "a function without arguments"),
    "tolerance": (lambda value: isinstance(value, int | float) and value >= 0, "a number of at least 0, such as 1e-3"),
}
"""Whether the value of each part of a Step is allowed, and a text that says what is; None is always allowed."""


def check_parts(step: Step, where: str) -> None:
    """Raise a UserError that begins with `where` if a part of a Step is not allowed."""
    for name, (is_allowed, allowed) in PARTS.items():
        value = getattr(step, name)
        if value is not None and not is_allowed(value):
            raise UserError(f"{where} returns {kind_of(value)} as {name}; allowed: {allowed}")


def _on_table(returned: Any, table: Table, where: str) -> Step:
    step = Step(model=returned) if isinstance(returned, nn.Module) else returned
    if not isinstance(step, Step):
        raise UserError(f"{where} returns {kind_of(step)}; allowed with a table: the model alone, or a crossover.Step")
    return replace(step, inputs=samples_of(table))


def _is_optimizer(value: Any) -> bool:
    return callable(getattr(value, "step", None)) and callable(getattr(value, "zero_grad", None))


def _bound(model: nn.Module, inputs: Any, targets: Any = None) -> Callable[[], Any]:
    """The call of a model with a dict as keyword arguments, a tuple as positional ones, anything else as one argument.

    A list of dicts as targets is passed too, as detectors expect.
    """
    last = {"targets": targets} if is_list_of_dicts(targets) else {}
    if isinstance(inputs, dict | UserDict):
        return partial(model, **inputs, **last)
    return partial(model, *(inputs if type(inputs) is tuple else (inputs,)), *last.values())


MISPLACED = re.compile(r"\b(device|d?type)\b")
"""In the message of an error about tensors on several devices or of several types."""

REFUSALS = (ValueError, AssertionError, RuntimeError)
"""Errors with which a function or model may reject a size."""


def user_error(error: BaseException, model: Model, failure: str) -> Exception:
    """A UserError for an error of the user's code; UnsupportedError if that code may have rejected a default size."""
    text = f"{location_of(error, model)}: {failure}: {type(error).__name__}: {cause_of(error)}"
    return UnsupportedError(text) if model.may_refuse and isinstance(error, REFUSALS) else UserError(text)


def call_user(model: Model, call: str, tell: Tell, make: Callable[[], Any]) -> Any:
    """Import the user's module and return `make()`, which is described by `call`; raises the result of `user_error`."""
    file = model.shown.rpartition(":")[0]
    remedy = f"raise time_limit_s, or {GUARD}"
    tell({"doing": f"the import of {file}", "remedy": remedy, "builds": True})
    function_of(model)
    tell({"doing": f"{call} of {file}", "builds": True})
    before = read_switches()
    try:
        return make()
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        named = " (its sizes are names; for numbers: sizes=[64,256])" if model.names else ""
        raise user_error(error, model, f"{call} fails{named}") from error
    finally:
        restore_unset(before)


@contextmanager
def as_user_error(
    model: Model,
    failure: str | Callable[[Exception], str] = "its step fails",
    is_mistake: bool | Callable[[Exception], bool] = False,
) -> Iterator[None]:
    """Replace an error of the block by the result of `user_error`, unless the error has a status such as `oom`.

    The raised error keeps the original error as its cause. The device may be to blame, so `process.attempts` then tries
    a step on the CPU. With `is_mistake`, if the device cannot be to blame, the raised error has no cause.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) or early_end(error) is not None:
            raise
        mistake = user_error(error, model, failure if isinstance(failure, str) else failure(error))
        is_users = is_mistake(error) if callable(is_mistake) else is_mistake
        raise mistake from (None if is_users else error)


class _UserTask(Task):
    samples: int
    besides: Mapping[str, Any] = MappingProxyType({})
    """The modules and tensors that the step uses besides its arguments, by name."""
    build_fresh: Callable[[], Task]
    """Builds the task again, with a model that has never run."""
    untouched: Batch | None = None
    """A copy of the resident batch until `check_batch` has compared it; None for loaded batches."""

    def __init__(self, step: Step, model: Model, cell: Cell, arithmetic: Arithmetic) -> None:
        self.user_step, self.spec = step, model
        self.loaded = cell.protocol == "loaded"
        if self.loaded and not isinstance(step.inputs, Dataset | DataLoader):
            raise UserError(
                f"{model.shown}: it returns no Dataset or DataLoader, which protocol loaded needs; use resident"
            )
        batches = batches_of(step, cell.batch_size, model.shown)
        with as_user_error(model, "loading its data fails", is_mistake=True):
            self.first: Batch = next(batches)
        self.batches = chain([self.first], batches)
        self.count_samples = sample_counter(step, self.first, cell.batch_size, model.shown, model.takes_batch_size)
        with as_user_error(model, f"the count of its samples fails; {COUNT_THEM}"):
            self.first_samples = self.samples = self.count_samples(*self.first)
        self.samples_taken = 0 if self.loaded else None
        self.read_host_tensors = host_reader(step, self.first, model.shown)
        self.batched = _has_sample_rows(self.first, cell.batch_size)
        if not self.batched:
            self.checked_rows = sys.maxsize
        if note := cast_note(step.model, self.first[0], arithmetic, cell.precision):
            self.notes, self.flags = (note,), ("cast",)
        with as_user_error(model, "preparing the model for its device, precision and mode fails"):
            super().__init__(module_of(step, model.mode), arithmetic)
        if not self.loaded:
            self.resident_batch = self.place(self.first)
            on_host = self._ids_on_host(self.first)
            pairs = zip(tensors_of(self.first), tensors_of(self.resident_batch), strict=True)
            self.resident = tuple(placed for tensor, placed in pairs if id(tensor) not in on_host)
            self.untouched = self._host_copy()

    def place(self, batch: Batch) -> Batch:
        return self._changed(self.arithmetic.place, batch)

    def _changed(self, change: Change, batch: Batch) -> Batch:
        """The batch with `change` applied to each tensor, except to the parts that the Step's `host` names."""
        on_host = self._ids_on_host(batch) if self.user_step.host else ()
        kept: Change = lambda tensor: tensor if id(tensor) in on_host else change(tensor)  # noqa: E731
        changed: Batch = map_plain(kept if on_host else change, batch)
        return changed

    def move_batches(self, move: Change) -> None:
        self.resident_batch = self._changed(move, self.resident_batch)
        self.host_ids = self._ids_on_host(self.resident_batch)
        self.resident = ()
        self.untouched = self._host_copy()

    def _ids_on_host(self, batch: Batch) -> set[int]:
        return {id(tensor) for tensor in self.read_host_tensors(batch[0])}

    def next_inputs(self) -> Batch:
        if self.samples_taken is not None:
            try:
                batch = next(self.batches)
                self.samples = self.count_samples(*batch)
            except Exception:
                with as_user_error(self.spec, "loading its data fails", is_mistake=True):
                    raise
            self.samples_taken += self.samples
            return self.place(batch)
        for tensor in self.resident:
            tensor.grad = None  # otherwise gradients of the inputs would add up over steps
        return self.resident_batch

    def check_batch(self, *batch: Any) -> None:
        if changed := self._changed_parts(batch):
            raise UserError(
                f"{self.spec.shown}: its step changes its {' and '.join(changed)} in place, but each step gets the "
                "same batch; change a copy instead, as in x = x - 1 for x -= 1"
            )
        self.untouched = None

    def check(self) -> CheckResult | None:
        """Raise InvalidError if the work of later steps vanishes; the results are compared with double precision."""
        if not self.spec.checked or self.loaded:
            return None
        batch = self.next_inputs()
        reason, unchecked = remembered(self.run, batch, self.batched), None
        bytes_of_model = sum(tensor.nbytes for tensor in tensors_in(self.model))
        if reason is None and 4 * bytes_of_model < available_bytes():
            with suppress(Exception):
                reason, unchecked = dwindled(self.build_fresh().run, self.run, batch)
            if self.user_step.run is not None:  # which may call LBFGS, whose steps shorten as they converge
                reason, unchecked = None, reason or unchecked
        if reason:
            raise InvalidError(f"{self.spec.shown}: {reason}")
        return CheckResult(unchecked=unchecked) if unchecked else None

    def _host_copy(self) -> Batch:
        """A copy of the resident batch in host memory, so that it takes no part in the device's peak memory."""
        copied: Batch = map_tensors(lambda tensor: tensor.detach().to("cpu", copy=True), self.resident_batch)
        return copied

    def _changed_parts(self, batch: tuple[Any, ...]) -> list[str]:
        """Those of inputs and targets that steps have changed in place; none after `check_batch`."""
        if self.untouched is None:
            return []
        parts = zip(("inputs", "targets"), self.untouched, batch or self.resident_batch, strict=True)
        return [name for name, before, after in parts if not same_values(before, after)]

    @contextmanager
    def around(self) -> Iterator[None]:
        with self.as_users(), super().around():
            yield

    def as_users(self) -> AbstractContextManager[object]:
        return as_user_error(self.spec, self.failure, self.is_mistake)

    @property
    def has_fixed_batch(self) -> bool:
        """True if all steps run on `resident_batch` and leave no gradients on its tensors."""
        return not (self.loaded or self.copies or any(tensor.requires_grad for tensor in self.resident))

    def next_host_inputs(self) -> Batch:
        return self.first

    @property
    def is_short(self) -> bool:
        return self.samples < self.first_samples

    def failure(self, error: Exception) -> str:
        text = "its step fails"
        if self.is_short:
            counts = f"{self.samples} of {self.first_samples} samples"
            text += f" on a shorter batch ({counts}): give the DataLoader drop_last=True"
        if "should be a 1D CPU int64 tensor" in str(error):
            text += ", since lengths must stay in host memory: name their argument in Step(host=...)"
        if "created only for scalar outputs" in str(error) or "no attribute 'backward'" in str(error):
            text += ", since its loss is not a tensor with a single number"
        if self.arithmetic.device.type == "cpu" and (changed := self._changed_parts(())):
            text += f", perhaps since it changes its {' and '.join(changed)} in place"
        if names := self.left_behind(error):
            text += (
                f", perhaps since the tensor {' or '.join(names)}, used besides its arguments, is not moved or "
                "converted: convert it to the inputs' device and type, or make it a buffer of a module"
            )
        return text if not self.notes else f"{text} ({'; '.join(self.notes)})"

    def count_parameters(self) -> int:
        return parameter_count(self.user_step.model, self.spec.mode)

    def user_line(self, error: BaseException) -> str | None:
        return location_of(error, self.spec) if is_of_user(error) else None

    def is_mistake(self, error: Exception) -> bool:
        return self.is_short or bool(self.left_behind(error))

    def left_behind(self, error: Exception) -> list[str]:
        """Names of tensors that the step uses besides its arguments, on another device or of another type.

        They are not moved, unlike networks, since they may be data of any size. Empty if they cannot have caused the
        error.
        """
        if not MISPLACED.search(str(error)) or is_lacking(error):
            return []
        device, dtype = self.arithmetic.device, self.arithmetic.dtype
        return [
            name
            for name, tensor in self.besides.items()
            if isinstance(tensor, torch.Tensor)
            and (tensor.device.type != device.type or (tensor.is_floating_point() and tensor.dtype is not dtype))
        ]


def _has_sample_rows(batch: Batch, batch_size: int) -> bool:
    """Return True if a batch has only scalars and dense tensors whose first dimension is the batch size."""
    tensors = tensors_of(batch)
    plain = all(tensor.layout is torch.strided and not tensor.is_nested for tensor in tensors)
    simple = all(isinstance(leaf, torch.Tensor | None) for leaf in tree_leaves(batch))
    return plain and simple and all(tensor.size(0) == batch_size for tensor in tensors if tensor.dim())


def cast_note(model: nn.Module, inputs: Any, arithmetic: Arithmetic, precision: str) -> str | None:
    """A note if the user's model or inputs are in fp64, bf16 or fp16 and another precision is measured, else None."""
    of_model = {tensor.dtype for tensor in tensors_in(model)}
    of_inputs = {tensor.dtype for tensor in tensors_of(inputs) if tensor.is_floating_point() or tensor.is_complex()}
    if len(of_inputs) > 1:  # torch's collation turns Python floats into float64
        of_inputs = set()
    for subject, dtypes in {"the model is": of_model, "its inputs are": of_inputs}.items():
        if torch.complex128 in dtypes:
            dtypes.add(torch.float64)
        for name, dtype in PURE.items():
            if dtype in dtypes and dtype is not arithmetic.dtype:
                kind = str(dtype).removeprefix("torch.")
                return f"{subject} in {kind} and measured in {precision}; precisions: [{name}] measures it as it is"
    return None


class UserTraining(_UserTask, TrainingTask):
    torch_loss: Callable[[Any, Any], torch.Tensor] | None = None
    """The result of `loss_without_changes` for the last step."""

    def __init__(self, step: Step, model: Model, cell: Cell, arithmetic: Arithmetic) -> None:
        super().__init__(step, model, cell, arithmetic)
        with as_user_error(model, "its method train fails"):
            set_mode(self.model, training=True)
        self.loss = self.model.loss if isinstance(self.model, ModelWithLoss) else step.loss
        has_table = isinstance(step.inputs, TableSamples)
        labels = step.inputs.labels if has_table else ClassLabels.of_targets(self.first[1])
        self.labels = labels and replace(labels, shown=f"{model.shown}: {labels.shown}")
        trained = parameters_of(self.model)
        if step.run is not None and isinstance(step.loss, nn.Module):
            trained += parameters_of(arithmetic.place_model(step.loss))
        parameters = [parameter for parameter in trained if parameter.requires_grad]
        if not parameters:
            raise UserError(f"{model.shown}: the model has no parameters to train; use mode: infer")
        self.optimizer = self._optimizer(parameters)
        self._place_other_networks()
        self.amp: tuple[Arithmetic, ...] = ()
        if step.run is not None:
            if cell.protocol in COPYING:
                raise UnsupportedError(
                    f"{model.shown}: a step with its own `run` returns no loss, which protocol {cell.protocol} "
                    "copies to the host; use resident or loaded"
                )
            self.not_comparable = "its step is the user's own function"
            self._prepare_run(step.run, cell.precision)
            self.user_step = replace(step, run=self._checked_once(step.run))

    def _optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        shown = self.spec.shown
        optimizer: Any = self.user_step.optimizer
        if _is_optimizer(optimizer) and not isinstance(optimizer, type):
            groups = getattr(optimizer, "param_groups", [])
            trained = {id(parameter) for group in groups for parameter in group["params"]}
            if groups and trained.isdisjoint(map(id, parameters)):
                raise UserError(f"{shown}: its optimizer has none of the model's parameters; make it from them")
            if isinstance(optimizer, torch.optim.Optimizer) and optimizer.state:
                # Moves state that was created on the host, such as Adagrad's, to the device.
                optimizer.load_state_dict(optimizer.state_dict())
        else:
            with as_user_error(self.spec, "its optimizer fails"):
                optimizer = torch.optim.SGD(parameters, LEARNING_RATE) if optimizer is None else optimizer(parameters)
            if not _is_optimizer(optimizer):
                raise UserError(f"{shown}: its optimizer is {kind_of(optimizer)}; allowed: {OPTIMIZER}")
        needs_closure = any(argument.default is argument.empty for argument in positional(optimizer.step))
        if self.user_step.run is None and needs_closure:
            raise UserError(
                f"{shown}: the step of {type(optimizer).__name__} needs a closure; give the whole step, Step(run=...), "
                "which calls optimizer.step(closure)"
            )
        checked: torch.optim.Optimizer = optimizer
        return checked

    def _checked_once(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """The user's whole step, whose first call must not return unfinished work."""

        def first_run(*inputs: Any) -> None:
            if kind := pending_kind(run(*inputs)):
                raise UserError(f"{self.spec.shown}: its run returns {kind}{UNFINISHED}")
            self.user_step = replace(self.user_step, run=run)

        return first_run

    def _place_other_networks(self) -> None:
        """Move and convert the networks that the step's function uses besides the model, such as a teacher."""
        own = {id(module) for module in modules_of(self.model)}
        self.besides = captured(self.user_step.run or self.user_step.loss)
        for name, module in self.besides.items():
            if not isinstance(module, nn.Module) or id(module) in own:
                continue
            with as_user_error(self.spec, f"moving {name}, which its step uses, fails"):
                self.arithmetic.place_model(module)
            if tensors_in(module):
                self.not_comparable = f"its loss uses {name}, of which the reference has no copy"

    def _prepare_run(self, run: Callable[..., Any], precision: str) -> None:
        arithmetic = self.arithmetic
        if len(positional(run)) > 4:  # more than model, inputs, targets and optimizer
            self.amp = (arithmetic,)
        elif arithmetic.scaler is not None:
            raise UnsupportedError(
                f"{precision} needs a loss scaler, which its run does not take; define run(model, inputs, targets, "
                "optimizer, amp) with amp.autocast(), amp.backward(loss) and amp.step(optimizer)"
            )
        elif arithmetic.autocast_dtype is not None:
            self.model.forward = _autocasting(self.model.forward, arithmetic)
            self.notes += (f"its run takes no amp: in {precision} only the model's forward pass is under autocast",)

    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        return (self._bound_loss(model, *inputs)(),)

    def _bound_loss(self, model: nn.Module, values: Any, targets: Any) -> Callable[[], torch.Tensor]:
        """The loss of a batch, as a function without arguments that runs the forward pass."""
        if self.loss is None:
            call = _bound(model, values, targets)
            compared = None if is_list_of_dicts(targets) else targets

            def loss_by_default() -> torch.Tensor:
                output, known = call(), self.torch_loss
                self.torch_loss = loss = loss_without_changes(output, compared)
                if loss is not None and loss is known:
                    return loss(output, compared)
                return default_loss(output, compared, self.labels)

            return loss_by_default
        loss = model.loss if isinstance(model, ModelWithLoss) else self.loss
        if model is not self.model and not isinstance(model, ModelWithLoss):  # a fresh one, whose loss may refer to it
            loss = vars(model).get(LOSS, loss)
        call, given = _bound(model, values), () if targets is None else (targets,)
        return lambda: loss(call(), *given)

    def run(self, *inputs: Any) -> None:
        try:
            if self.user_step.run is None:
                super().run(*inputs)
            else:
                self.user_step.run(self.model, *inputs, self.optimizer, *self.amp)
        except Exception:
            with self.as_users():
                raise

    def timed_step(self) -> Callable[[], object]:
        run, optimizer = self.user_step.run, self.optimizer
        if run is not None:
            model, amp, next_inputs = self.model, self.amp, self.next_inputs
            if self.has_fixed_batch:
                return partial(run, model, *self.resident_batch, optimizer, *amp)
            return lambda: run(model, *next_inputs(), optimizer, *amp)
        if self.copies:
            return self.step
        if not self.has_fixed_batch or self.arithmetic.autocast_dtype is not None:
            return self.plain_step()
        values, targets = self.resident_batch
        loss = self._bound_loss(self.model, values, targets)
        if (torch_loss := self.torch_loss) is not None:
            call = _bound(self.model, values)
            loss = lambda: torch_loss(call(), targets)  # noqa: E731

        def step() -> None:
            loss().backward()
            optimizer.step()
            optimizer.zero_grad()

        return step


def _autocasting(forward: Callable[..., Any], arithmetic: Arithmetic) -> Callable[..., Any]:
    """A forward pass under autocast, with outputs in fp32 for a loss computed outside of autocast."""

    @wraps(forward)
    def autocasting(*inputs: Any, **named_inputs: Any) -> Any:
        with arithmetic.autocast():
            output = forward(*inputs, **named_inputs)
        return change_tensors(lambda t: t.float() if t.dtype is arithmetic.autocast_dtype else t, output)

    return autocasting


class UserInference(_UserTask, InferenceTask):
    has_run = False
    """True once a step has succeeded, so that a later error is not due to disabled gradients."""

    def move_batches(self, move: Change) -> None:
        self.resident_batch = (self.resident_batch[0], None)  # targets are not needed in inference
        super().move_batches(move)

    def part_read(self, batch: Any) -> Any:
        return batch[:1]  # an inference reads no targets

    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        output = _bound(model, inputs[0])()
        if not self.has_run and (kind := pending_kind(output)):
            raise UserError(f"{self.spec.shown}: its forward pass returns {kind}{UNFINISHED}")
        return tuple(outputs_of(output))

    def run(self, *inputs: Any) -> None:
        try:
            super().run(*inputs)
        except Exception as error:
            tried = self.has_run or self.takes_gradients or early_end(error) is not None
            if tried or not self._runs_with_gradients(inputs):
                with self.as_users():
                    raise
        self.has_run = True

    def timed_step(self) -> Callable[[], object]:
        if self.copies:
            return self.step
        model, next_inputs = self.model, self.next_inputs
        device, dtype = self.arithmetic.device.type, self.arithmetic.autocast_dtype
        fixed = _bound(model, self.resident_batch[0]) if self.has_fixed_batch else None
        call = fixed or (lambda: _bound(model, next_inputs()[0])())
        if dtype is None:
            return call

        def under_autocast() -> None:  # in each step, since its end drops the cast weights
            with torch.autocast(device, dtype):
                call()

        return under_autocast

    def _runs_with_gradients(self, inputs: Batch) -> bool:
        """Try the step with gradients, since it may take derivatives; if it succeeds, gradients stay enabled."""
        self.takes_gradients = True
        try:
            super().run(*inputs)
        except Exception:
            self.takes_gradients = False
            return False
        self.notes += ("its forward pass takes derivatives, so it ran with gradients",)
        return True
