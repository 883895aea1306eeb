"""A model of a user's own as a workload: what its function returns, and the steps that are made of it."""

from __future__ import annotations

import copy
import sys
import traceback
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from itertools import chain
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import nn
from torch.nn import functional
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, Dataset

from crossover import Step
from crossover.config.models import Model, Table
from crossover.config.studies import Cell
from crossover.errors import UnsupportedError, UserError
from crossover.measurement.class_labels import ClassLabels, class_loss
from crossover.measurement.own_batches import (
    COUNT_THEM,
    Batch,
    batches_of,
    host_reader,
    is_list_of_dicts,
    lengths_among,
    sample_counter,
)
from crossover.measurement.own_table import TableSamples, samples_of
from crossover.measurement.step.endings import early_end, is_lacking
from crossover.measurement.step.precision import PURE, Arithmetic
from crossover.measurement.step.tasks import InferenceTask, Task, TrainingTask, trainable_parameters
from crossover.measurement.step.trees import change_tensors, map_tensors, tensors_of
from crossover.measurement.user_module import GUARD, cause_of, function_of, place_of, positional, takes_batch_size

RETURNS = "(model, inputs), (model, inputs, targets) or a crossover.Step"
PARTS = {
    "loss": "a function of the model's output, and of the targets if there are any",
    "optimizer": "an optimizer of the model's parameters, or a function that makes one of them",
    "run": "a function of model, inputs, targets and optimizer",
    "samples": "a number, or a function of inputs and targets",
    "host": "names of the model's arguments",
}
"""What else a Step may hold."""
GIVE_CLOSURE = "give the whole step, Step(run=...), which calls optimizer.step(closure)"
LEARNING_RATE = 1e-3
"""Small, so that repeated steps on one batch stay finite."""
AMP_ARGUMENT = 5
"""The place of `amp` among the arguments of a step of the user's own."""


class OwnModel:
    """A user's model at a cell's size and batch size."""

    def __init__(self, cell: Cell, tell: Callable[[dict[str, Any]], None] = lambda _message: None) -> None:
        assert cell.model is not None
        self.model = cell.model
        self.cell = cell
        self.tell = tell
        """Takes what of the user's code is about to run, and the number of parameters."""

    def build_model(self, _size: int) -> nn.Module:
        """The model alone, as the function returns it, on the host."""
        made = self._made()
        return measured_model(made) if self.model.mode == "train" else made.model

    def build(self, cell: Cell, _data: object, arithmetic: Arithmetic) -> Task:
        """The step that the study's `mode` asks for."""
        kind = OwnTraining if self.model.mode == "train" else OwnInference
        made = self._made()
        self.tell({"known": {"parameters": trainable_parameters(made.model)}})
        task = kind(made, self.model, cell, arithmetic)
        self.tell({"doing": None})
        if not self.model.checked:
            task.not_comparable = "the study says check: false"
        dtype = _default_dtypes[self.model]
        if dtype is arithmetic.dtype and dtype is not torch.get_default_dtype():
            torch.set_default_dtype(dtype)
            task.switches = {"default_dtype": str(dtype)}
        return task

    def _made(self) -> Step:
        """What the user's function returns, as a Step; raises UserError with file and line where it fails."""
        size = self.model.argument(self.cell.size)
        call = f"{self.model.name}({size!r}, {self.cell.batch_size})"
        place = self.model.shown.rpartition(":")[0]
        with _default_dtype_of(self.model):
            self.tell({"doing": f"the import of {place}", "remedy": f"raise time_limit_s, or {GUARD}"})
            function = function_of(self.model)
            self.tell({"doing": f"{call} of {place}"})
            try:
                returned = function(size, self.cell.batch_size)
            except UserError:
                raise
            except (Exception, SystemExit) as error:
                raise refused(error, self.model, f"{call} fails") from error
        where = f"{self.model.shown}: {call}"
        made = _as_step(returned, where) if self.model.table is None else _on_table(returned, self.model.table, where)
        made = _own_copy(made, where)
        if any(map(is_lazy, _tensors_in(made))):
            self._run_lazy(made)
        if any(tensor.is_meta for tensor in _tensors_in(made)):
            raise UserError(f"{where} returns a model on the meta device, without values; build it on the CPU")
        return made

    def _run_lazy(self, made: Step) -> None:
        """Run a forward pass, in which lazy modules find their shapes."""
        with explaining(self.model, "its data fail", certain=True):
            inputs, targets = next(batches_of(made, self.cell.batch_size, self.model.shown))
        was_training = made.model.training
        with explaining(self.model, "the first forward pass, which its lazy modules need, fails"):
            _outputs(made.model.eval(), inputs, targets if made.loss is None else None)
        made.model.train(was_training)


_default_dtypes: dict[Model, torch.dtype] = {}
"""Torch's default type as each model's file set it."""


@contextmanager
def _default_dtype_of(model: Model) -> Iterator[None]:
    """Let a user's file set torch's default type for itself alone: steps have the type of their precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(_default_dtypes.get(model, before))
    try:
        yield
    finally:
        _default_dtypes[model] = torch.get_default_dtype()
        torch.set_default_dtype(before)


_handed_out: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()
"""Parameters and buffers that users' functions have returned, by their identity."""


def _own_copy(made: Step, where: str) -> Step:
    """The step as it is, or a copy of what holds weights if the function has returned them before, as a cache does."""
    tensors = _tensors_in(made)
    if any(_handed_out.get(id(tensor)) is tensor for tensor in tensors):
        try:
            model, loss, optimizer = copy.deepcopy((made.model, made.loss, made.optimizer))
        except Exception as error:
            raise UserError(
                f"{where} returns the same model each time, which cannot be copied ({cause_of(error)}); build a new "
                "one each time"
            ) from error
        for module in model.modules():  # which would run the first model's weights
            if hasattr(vars(module).get("forward"), "_torchdynamo_orig_callable"):
                del module.forward
        return replace(made, model=model, loss=loss, optimizer=optimizer)
    _handed_out.update({id(tensor): tensor for tensor in tensors})
    return made


def _tensors_in(made: Step) -> list[torch.Tensor]:
    """Parameters and buffers of a step's model and loss."""
    modules = [module for module in (made.model, made.loss) if isinstance(module, nn.Module)]
    return [tensor for module in modules for tensor in chain(module.parameters(), module.buffers())]


class ModelWithLoss(nn.Module):
    """A model and its loss, whose tensors are moved, cast and trained with the model's."""

    def __init__(self, model: nn.Module, loss: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs: Any, **named_inputs: Any) -> Any:
        """The model's output."""
        return self.model(*inputs, **named_inputs)


def measured_model(made: Step) -> nn.Module:
    """The model that a training moves, casts and trains: with its loss, if that has tensors of its own."""
    model: nn.Module = made.model
    if made.run is None and isinstance(made.loss, nn.Module) and made.loss.state_dict():
        return ModelWithLoss(model, made.loss)
    return model


def _as_step(returned: Any, where: str) -> Step:
    if isinstance(returned, Step):
        made = returned
    elif isinstance(returned, tuple) and len(returned) in (2, 3):
        made = Step(model=returned[0], inputs=returned[1], targets=returned[2] if len(returned) == 3 else None)
    else:
        raise UserError(f"{where} returns {_kind(returned)}; allowed: {RETURNS}")
    if not isinstance(made.model, nn.Module):
        raise UserError(f"{where} returns {_kind(made.model)} as the model; allowed: a torch.nn.Module")
    if not isinstance(made.inputs, Dataset | DataLoader) and not tensors_of(made.inputs):
        raise UserError(
            f"{where} returns {_kind(made.inputs)} as the inputs; allowed: a tensor, a tuple or dict of them, a "
            "Dataset or a DataLoader"
        )
    allowed = {
        "loss": callable(made.loss),
        "optimizer": callable(made.optimizer) or _is_optimizer(made.optimizer),
        "run": callable(made.run),
        "samples": callable(made.samples) or (type(made.samples) is int and made.samples > 0),
        "host": isinstance(made.host, str | list | tuple) and all(isinstance(name, str) for name in made.host),
    }
    if isinstance(made.loss, type):
        raise UserError(f"{where} returns the class {made.loss.__name__} as the loss; give an instance of it")
    for part, is_allowed in allowed.items():
        value = getattr(made, part)
        if value is not None and not is_allowed:
            raise UserError(f"{where} returns {_kind(value)} as the {part}; allowed: {PARTS[part]}")
    if made.targets is not None and not tensors_of(made.targets):
        raise UserError(
            f"{where} returns {_kind(made.targets)} as the targets; allowed: a tensor, a list or dict of them, or none"
        )
    return made


def _on_table(returned: Any, table: Table, where: str) -> Step:
    """A model on the samples of a table."""
    if isinstance(returned, Step):
        return replace(returned, inputs=samples_of(table))
    if not isinstance(returned, nn.Module):
        raise UserError(
            f"{where} returns {_kind(returned)}; allowed with a table: the model alone, or a crossover.Step"
        )
    return Step(model=returned, inputs=samples_of(table))


def _is_optimizer(value: Any) -> bool:
    return callable(getattr(value, "step", None)) and callable(getattr(value, "zero_grad", None))


def _kind(value: Any) -> str:
    count = f" of {len(value)}" if isinstance(value, tuple) else ""
    return "None" if value is None else f"a {type(value).__name__}{count}"


def _outputs(model: nn.Module, inputs: Any, targets: Any) -> Any:
    """The model's output; a list of dicts as the targets goes to the model, as detectors take it."""
    if not is_list_of_dicts(targets):
        return called(model, inputs)
    if isinstance(inputs, dict | UserDict):
        return model(**inputs, targets=targets)
    return model(*(inputs if type(inputs) is tuple else (inputs,)), targets)


def called(model: nn.Module, inputs: Any) -> Any:
    """The model's output: a dict becomes keywords, a tuple several arguments, all else is one argument."""
    if isinstance(inputs, dict | UserDict):
        return model(**inputs)
    return model(*inputs) if type(inputs) is tuple else model(inputs)


def first_tensor(output: Any) -> torch.Tensor:
    """The tensor of a model's output that counts: logits, or else the first one of floating point or complex."""
    if isinstance(logits := getattr(output, "logits", None), torch.Tensor):
        return logits
    if hasattr(output, "to_tuple"):  # an output of transformers
        output = output.to_tuple()
    numbers = [tensor for tensor in tensors_of(output) if tensor.is_floating_point() or tensor.is_complex()]
    if not numbers:
        raise ValueError(
            f"the model returns {_kind(output)} without a tensor of floating point; give a crossover.Step with a loss"
        )
    return numbers[0]


def outputs_of(output: Any) -> list[torch.Tensor]:
    """All tensors of a model's output, also those in an object of a class of its own."""
    return tensors_of(output) or tensors_of(getattr(output, "__dict__", None))


def default_loss(output: Any, targets: Any, labels: ClassLabels | None = None) -> torch.Tensor:
    """The output's own loss; else what the targets ask for; without targets the mean square, which costs as much.

    Raises UserError if the model has too few outputs for the known `labels`.
    """
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    if isinstance(output, Mapping) and (losses := _losses(output, targets)):
        return torch.stack(losses).sum()
    scores = first_tensor(output)
    if targets is None:
        return scores if scores.dim() == 0 and scores.is_floating_point() else _mean_square(scores)
    if not isinstance(targets, torch.Tensor):
        raise ValueError(f"no default loss takes {_kind(targets)} as the targets; give a crossover.Step with a loss")
    if targets.is_floating_point() or targets.is_complex():
        if scores.shape != targets.shape and scores.numel() == targets.numel():
            scores = scores.reshape(targets.shape)
        if scores.shape == targets.shape:
            is_real = scores.is_floating_point() and targets.is_floating_point()
            return functional.mse_loss(scores, targets) if is_real else _mean_square(scores - targets)
    elif scores.shape[:-1] == targets.shape:
        return class_loss(scores.flatten(0, -2), targets.flatten(), labels)
    elif scores.dim() > 1 and scores.shape[:1] + scores.shape[2:] == targets.shape:
        return class_loss(scores, targets, labels)
    elif scores.dim() > 1 and scores.shape == targets.shape:
        raise ValueError(
            "targets in whole numbers have the shape of the outputs: make them floats, or give a crossover.Step with a "
            "loss, such as nn.BCEWithLogitsLoss()"
        )
    elif scores.numel() == targets.numel() and labels is not None:
        labels.check(outputs=1)
    raise ValueError(
        f"the model returns {list(scores.shape)} for targets of {list(targets.shape)} in {str(targets.dtype)[6:]}, "
        "which no default loss compares; give a crossover.Step with a loss"
    )


def _losses(output: Mapping[str, Any], targets: Any) -> list[torch.Tensor]:
    """The losses in a model's dict: its scalars that require gradients."""
    numbers = [value for value in tensors_of(list(output.values())) if value.is_floating_point()]
    losses = [value for value in numbers if value.dim() == 0 and value.requires_grad]
    if losses and isinstance(targets, torch.Tensor) and any(value.dim() for value in numbers):
        raise ValueError("the model returns losses and other tensors in one dict; give a crossover.Step with a loss")
    return losses


def _mean_square(values: torch.Tensor) -> torch.Tensor:
    return (values.abs() if values.is_complex() else values).square().mean()


REFUSALS = (ValueError, AssertionError, RuntimeError)
"""What a function or a model says of a size that it does not offer; other errors are mistakes."""


def refused(error: BaseException, model: Model, what: str) -> Exception:
    """The user's mistake with its line; a result where nobody asked for the size."""
    text = f"{place_of(error, model)}: {what}: {type(error).__name__}: {cause_of(error)}"
    return UnsupportedError(text) if model.may_refuse and isinstance(error, REFUSALS) else UserError(text)


@contextmanager
def explaining(
    model: Model, what: str | Callable[[Exception], str] = "its step fails", certain: bool = False
) -> Iterator[None]:
    """Raise an error of a model's step as the user's mistake, with its line, unless it is a result of its own.

    `what` failed, or says so of an error. What the device refuses looks the same here, and keeps the error as its
    cause: a try of the step on the CPU tells them apart (`process.attempts`). `certain`: no device has a part in it.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) or early_end(error) is not None:
            raise
        mistake = refused(error, model, what if isinstance(what, str) else what(error))
        raise mistake from (None if certain else error)


def explained(error: Exception, model: Model, what: str) -> Exception:
    """What an error of a model's step means by its words alone, where it cannot be found out by trying."""
    if isinstance(error, UserError) or early_end(error) is not None:
        return error
    return UnsupportedError(cause_of(error)) if is_lacking(error) else refused(error, model, what)


class _Own(Task):
    """What both modes share: batches, and how they travel."""

    def __init__(self, made: Step, model: Model, cell: Cell, arithmetic: Arithmetic) -> None:
        self.made, self.own_model = made, model
        self.loaded = cell.protocol == "loaded"
        if self.loaded and not isinstance(made.inputs, Dataset | DataLoader):
            raise UserError(
                f"{model.shown}: it returns no Dataset or DataLoader, which protocol loaded takes; take resident"
            )
        batches = batches_of(made, cell.batch_size, model.shown)
        with explaining(model, "its data fail", certain=True):
            self.first: Batch = next(batches)
        self.batches = chain([self.first], batches)
        self.count = sample_counter(made, self.first, cell.batch_size, model.shown, takes_batch_size(model))
        with explaining(model, f"the count of its samples fails; {COUNT_THEM}"):
            self.first_samples = self.samples = self.count(*self.first)
        self.samples_taken: int = 0
        self.host = host_reader(made, self.first, model.shown)
        self.batched = _is_of_rows(self.first, cell.batch_size)
        if not self.batched:
            self.checked_rows = sys.maxsize
        if note := cast_note(made.model, self.first[0], arithmetic, cell.precision):
            self.notes, self.flags = (note,), ("cast",)
        super().__init__(measured_model(made) if model.mode == "train" else made.model, arithmetic)
        if not self.loaded:
            self.held = self.place(self.first)
            on_host = self._ids_on_host(self.first)
            placed = zip(tensors_of(self.first), tensors_of(self.held), strict=True)
            self.resident = tuple(tensor for own, tensor in placed if id(own) not in on_host)

    def place(self, batch: Batch) -> Batch:
        """The batch on the device, but for what the step keeps on the host."""
        if self.host is None:
            return super().place(batch)  # type: ignore[no-any-return]
        on_host = self._ids_on_host(batch)
        place = self.arithmetic.place
        return map_tensors(lambda tensor: tensor if id(tensor) in on_host else place(tensor), batch)  # type: ignore[no-any-return]

    def _ids_on_host(self, batch: Batch) -> set[int]:
        return set() if self.host is None else {id(tensor) for tensor in self.host(batch[0])}

    def next_inputs(self) -> Batch:
        if self.loaded:
            with explaining(self.own_model, "its data fail", certain=True):
                batch = next(self.batches)
                self.samples = self.count(*batch)
            self.samples_taken += self.samples
            return self.place(batch)
        for tensor in self.resident:
            tensor.grad = None  # of inputs that require gradients, which would add up over steps
        self.samples_taken += self.samples
        return self.held

    def next_host_inputs(self) -> Batch:
        return self.first

    @property
    def is_short(self) -> bool:
        """Whether the batch has fewer samples than the first one."""
        return self.samples < self.first_samples

    def failure(self, error: Exception) -> str:
        """What a failing step means, with advice where the cause is known."""
        what = "its step fails"
        if self.is_short:
            counts = f"{self.samples} of {self.first_samples} samples"
            what += f" on a shorter batch ({counts}): give the DataLoader drop_last=True"
        if "should be a 1D CPU int64 tensor" in str(error):
            names = lengths_among(self.made.model, self.first[0])
            what += f", since lengths must stay in host memory: Step(host={names or '[NAME]'})"
        if "created only for scalar outputs" in str(error) or "no attribute 'backward'" in str(error):
            what += ", since its loss is not a tensor of one number"
        last = traceback.extract_tb(error.__traceback__)[-1]
        if last.name == "step" and "closure" in (last.line or ""):
            what += f", since its optimizer needs a closure: {GIVE_CLOSURE}"
        return what if not self.notes else f"{what} ({'; '.join(self.notes)})"


def _is_of_rows(batch: Batch, batch_size: int) -> bool:
    """Whether each tensor of a batch holds a sample in each row."""
    tensors = tensors_of(batch)
    plain = all(tensor.layout is torch.strided and not tensor.is_nested for tensor in tensors)
    simple = all(isinstance(leaf, torch.Tensor | None) for leaf in tree_leaves(batch))
    return plain and simple and all(tensor.size(0) == batch_size for tensor in tensors if tensor.dim())


def cast_note(model: nn.Module, inputs: Any, arithmetic: Arithmetic, precision: str) -> str | None:
    """That a model, or all numbers of its inputs, had another precision than they are measured in; None otherwise."""
    whose = {
        "the model is": {tensor.dtype for tensor in chain(model.parameters(), model.buffers())},
        "its inputs are": _only_dtype(tensors_of(inputs)),
    }
    for subject, dtypes in whose.items():
        if torch.complex128 in dtypes:
            dtypes.add(torch.float64)
        for name, dtype in PURE.items():
            if dtype in dtypes and dtype is not arithmetic.dtype:
                kind = str(dtype).removeprefix("torch.")
                return f"{subject} in {kind} and measured in {precision}; precisions: [{name}] measures it as it is"
    return None


def _only_dtype(tensors: list[torch.Tensor]) -> set[torch.dtype]:
    """The type of all tensors of fractions, if they have one: a loader makes numbers of Python double."""
    dtypes = {tensor.dtype for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()}
    return dtypes if len(dtypes) == 1 else set()


class OwnTraining(_Own, TrainingTask):
    """Forward, loss, backward, optimizer; or the user's own step."""

    def __init__(self, made: Step, model: Model, cell: Cell, arithmetic: Arithmetic) -> None:
        super().__init__(made, model, cell, arithmetic)
        self.model.train()
        self.loss = self.model.loss if isinstance(self.model, ModelWithLoss) else made.loss
        of_table = isinstance(made.inputs, TableSamples)
        labels = made.inputs.labels if of_table else ClassLabels.of_targets(self.first[1])
        self.labels = labels and replace(labels, shown=f"{model.shown}: {labels.shown}")
        trained = list(self.model.parameters())
        if made.run is not None and isinstance(made.loss, nn.Module):
            trained += arithmetic.place_model(made.loss).parameters()
        parameters = [parameter for parameter in trained if parameter.requires_grad]
        if not parameters:
            raise UserError(f"{model.shown}: the model has no parameters to train; take mode: infer")
        self.optimizer = self._optimizer(parameters)
        self.amp: tuple[Arithmetic, ...] = ()
        if made.run is not None:
            self.not_comparable = "its step is the user's own function"
            self._prepare_run(made.run, cell.precision)

    def _optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """The step's optimizer; raises UserError for one that trains something else or needs a closure."""
        shown = self.own_model.shown
        optimizer: Any = self.made.optimizer
        if _is_optimizer(optimizer) and not isinstance(optimizer, type):
            groups = getattr(optimizer, "param_groups", [])
            trained = {id(parameter) for group in groups for parameter in group["params"]}
            if groups and trained.isdisjoint(map(id, parameters)):
                raise UserError(f"{shown}: its optimizer has none of the model's parameters; make it of these")
            if isinstance(optimizer, torch.optim.Optimizer) and optimizer.state:
                optimizer.load_state_dict(optimizer.state_dict())  # moves what it made on the host, as Adagrad does
        else:
            with explaining(self.own_model, "its optimizer fails"):
                optimizer = torch.optim.SGD(parameters, LEARNING_RATE) if optimizer is None else optimizer(parameters)
            if not _is_optimizer(optimizer):
                raise UserError(f"{shown}: its optimizer is {_kind(optimizer)}; allowed: {PARTS['optimizer']}")
        if self.made.run is None and _needs_closure(optimizer):
            raise UserError(f"{shown}: the step of {type(optimizer).__name__} needs a closure; {GIVE_CLOSURE}")
        return optimizer  # type: ignore[no-any-return]

    def _prepare_run(self, run: Callable[..., Any], precision: str) -> None:
        """Give the user's own step what the precision needs, and note what it does not take."""
        arithmetic = self.arithmetic
        if len(positional(run)) >= AMP_ARGUMENT:
            self.amp = (arithmetic,)
        elif arithmetic.scaler is not None:
            raise UnsupportedError(
                f"{precision} needs a loss scaler, which its run does not take; define run(model, inputs, targets, "
                "optimizer, amp) with amp.autocast(), amp.backward(loss) and amp.step(optimizer)"
            )
        elif arithmetic.autocast_dtype is not None:
            self.model.forward = _autocasting(self.model.forward, arithmetic)
            self.notes += (f"its run takes no amp: in {precision} the model's forward pass alone is under autocast",)

    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        values, targets = inputs
        if self.loss is None:
            wanted = None if is_list_of_dicts(targets) else targets
            return (default_loss(_outputs(model, values, targets), wanted, self.labels),)
        loss = model.loss if isinstance(model, ModelWithLoss) else self.loss
        return (loss(called(model, values), *(() if targets is None else (targets,))),)

    def run(self, *inputs: Any) -> None:
        """The user's own step, if there is one."""
        with explaining(self.own_model, self.failure, self.is_short):
            if self.made.run is None:
                super().run(*inputs)
            else:
                self.made.run(self.model, *inputs, self.optimizer, *self.amp)


def _needs_closure(optimizer: Any) -> bool:
    return any(argument.default is argument.empty for argument in positional(optimizer.step))


def _autocasting(forward: Callable[..., Any], arithmetic: Arithmetic) -> Callable[..., Any]:
    """A forward pass under autocast, with outputs in single precision for a loss outside."""

    @wraps(forward)
    def autocasting(*inputs: Any, **named_inputs: Any) -> Any:
        with arithmetic.autocast():
            output = forward(*inputs, **named_inputs)
        return change_tensors(lambda t: t.float() if t.dtype is arithmetic.autocast_dtype else t, output)

    return autocasting


class OwnInference(_Own, InferenceTask):
    """The forward pass alone."""

    has_run = False
    """Whether a step has ended well: what fails later does not fail for want of gradients."""

    def forward(self, model: nn.Module, *inputs: Any) -> tuple[torch.Tensor, ...]:
        return tuple(outputs_of(called(model, inputs[0])))

    def run(self, *inputs: Any) -> None:
        """The forward pass without gradients, or with them if it takes derivatives itself."""
        with explaining(self.own_model, self.failure, self.is_short):
            try:
                super().run(*inputs)
            except Exception as error:
                tried = self.has_run or self.takes_gradients or early_end(error) is not None
                if tried or not self._runs_with_gradients(inputs):
                    raise
        self.has_run = True

    def _runs_with_gradients(self, inputs: Batch) -> bool:
        """Whether the forward pass runs with gradients on, as one that takes derivatives itself; then they stay on."""
        self.takes_gradients = True
        try:
            super().run(*inputs)
        except Exception:
            self.takes_gradients = False
            return False
        self.notes += ("its forward pass takes derivatives, so it ran with gradients",)
        return True
