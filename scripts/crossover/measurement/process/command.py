"""Read the job of a measuring command: JSON, and the options that its rule shows beside it."""

from __future__ import annotations

import argparse
import json
import operator
import shlex
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from crossover.config.models import Model, Table, find_file, read_model
from crossover.config.options import DEVICE_CHOICES, device, new_parser, workflow_command
from crossover.config.studies import MOST_THREADS, BatchSearch, Cell, Effort
from crossover.config.words import AS_WRITTEN, AXES, BASELINE_SETTINGS, EXECUTIONS, PRECISIONS, PROTOCOLS, ranks_of_side
from crossover.config.workloads import OWN, check_offered, known_workloads, workload_traits
from crossover.errors import UserError, allowed_names, shown_value
from crossover.files import why_not_writable
from crossover.machine.invocation import code_version
from crossover.measurement.process.jobs import Job, TryJob, model_of

AnyJob = TypeVar("AnyJob", bound=Job)
Made = TypeVar("Made")

BY_HAND = {"study": "by_hand", "protocol": PROTOCOLS[0], **BASELINE_SETTINGS}
"""Axes that a cell need not give."""

IN_BOTH = ("trial", "seed", "cpu_threads")
"""Fields that a job or an option may give; the option counts."""
THREADS = f"auto, or a whole number from 1 to {MOST_THREADS}"
CHOICES = {"isolation": ("auto", "server", "process"), "precisions": PRECISIONS}
"""Values that fields of jobs may have."""

BOUNDS = {
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "above"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "below"),
}
"""Comparison and wording of each kind of bound, by pydantic's name."""


def read_job(kind: type[AnyJob], documentation: str | None, arguments: list[str]) -> AnyJob:
    """The job that a command line describes, whose help shows a script's `documentation`.

    Makes the folder of the output. Raises UserError for a wrong value, or an output that cannot be written.
    """
    known = {field.name for field in fields(kind)}
    parser = new_parser(documentation)
    parser.add_argument("job", metavar="JOB", help="the job as JSON: its cell, and what the config sets")
    parser.add_argument("--device", required=True, type=device, help=DEVICE_CHOICES)
    parser.add_argument("--cpu-threads", default=argparse.SUPPRESS, type=_threads, help="auto: usable physical cores")
    for name in sorted(known & {"trial", "seed"}):
        parser.add_argument(f"--{name}", default=argparse.SUPPRESS, type=int)
    parser.add_argument("--dataset", type=lambda text: text or None, help="safetensors file, if the workload reads one")
    parser.add_argument("--output", required=True, help="file to write")
    options = vars(parser.parse_args(arguments))
    values = _read_object(options.pop("job")) | {name: options.pop(name) for name in IN_BOTH if name in options}
    values = {"cell": {}, **values}
    _check(kind, values, "JOB")
    if (threads := values.get("cpu_threads", "auto")) != "auto" and threads not in range(1, MOST_THREADS + 1):
        raise UserError(f"JOB.cpu_threads: {shown_value(threads)} is not allowed; allowed: {THREADS}")
    if kind.kind not in ("trial", "probe") and ranks_of_side(options["device"]) > 1:
        raise UserError(f"--device: {options['device']} is several devices; allowed here: a single one")
    cell = {**kind.axes, **_object(values["cell"], "JOB.cell")}
    if "device" in cell:
        raise UserError("cell.device: the option --device has it; leave it out")
    for name, nested in (("effort", Effort), ("search", BatchSearch)):
        if name in known:
            values[name] = made(nested, values.get(name, {}), name)
    if issubclass(kind, TryJob):
        cell["batch_size"] = values["search"].start
        limit_gb = values["search"].memory_limit_gb
        values["memory_limit_bytes"] = limit_gb and round(limit_gb * 1e9)
    values["cell"] = read_cell({**cell, "device": options.pop("device")}, any_batch=issubclass(kind, TryJob))
    command = shlex.join(["python3", sys.argv[0], *arguments])
    job = kind(**values, **options, command=command, code_version=code_version())
    dataset = workload_traits(job.cell.workload).dataset
    if dataset is not None and job.dataset is None:
        raise UserError(
            f"--dataset: workload '{job.cell.workload}' reads dataset '{dataset}'; give its safetensors file, which "
            f"`{workflow_command('--cores', '1', f'results/datasets/{dataset}.safetensors')}` makes"
        )
    check_writable(Path(job.output), kind.begins)
    return job


def _threads(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _read_object(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise UserError(f"JOB: no JSON ({error}); copy a job from a command in a log or a row") from None
    return _object(values, "JOB")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: {shown_value(value)} is not allowed; allowed: an object with names and values")
    return value


def made(kind: type[Made], values: Any, where: str) -> Made:
    """A dataclass made of values from JSON; raises UserError like `_check`."""
    _check(kind, values, where)
    return kind(**values)


def _check(kind: type, values: Any, where: str) -> None:
    """Raise UserError for a missing or unknown key of a dataclass, or a value not allowed.

    The bounds of numbers are those of `crossover.config.studies.number`.
    """
    types = get_type_hints(kind)
    known = {field.name: field for field in fields(kind) if not field.metadata.get("is_set_later")}
    for name, value in _object(values, where).items():
        if name not in known:
            raise UserError(f"{where}: '{name}' is unknown; {allowed_names(name, list(known))}")
        is_allowed, allowed = _is_of(value, types[name]), _type_words(types[name])
        if bounds := {bound: known[name].metadata[bound] for bound in BOUNDS if bound in known[name].metadata}:
            allowed += " " + " and ".join(f"{BOUNDS[bound][1]} {limit}" for bound, limit in bounds.items())
            within = (BOUNDS[bound][0](value, limit) for bound, limit in bounds.items())
            is_allowed = is_allowed and (value == known[name].default or all(within))
        if choices := CHOICES.get(name):
            is_allowed &= set(value if isinstance(value, list) else [value]) <= {*choices}
            allowed = ", ".join(choices)
        if not is_allowed:
            raise UserError(f"{where}.{name}: {shown_value(value)} is not allowed; allowed: {allowed}")
    for name, field in known.items():
        if name not in values and field.default is field.default_factory is MISSING:
            or_model = ", or a model of yours as `model`" if name == "workload" else ""
            raise UserError(f"{where}: '{name}' is missing; add it{or_model}")


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value from JSON is of a field's type; a nested dataclass is checked when it is made."""
    arguments = get_args(kind)
    if get_origin(kind) is UnionType:
        return any(_is_of(value, one) for one in arguments)
    if arguments:
        return isinstance(value, list) and all(_is_of(item, arguments[0]) for item in value)
    return is_dataclass(kind) or type(value) in ((int, float) if kind is float else (kind,))


def _type_words(kind: Any) -> str:
    if get_origin(kind) is UnionType:
        return " or ".join(map(_type_words, get_args(kind)))
    if get_origin(kind) is not None:
        return f"a list of {_type_words(get_args(kind)[0])}"
    words = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
    return words.get(kind, "an object with names and values")


def read_cell(given: Mapping[str, Any], *, any_batch: bool = False) -> Cell:
    """The cell of a job as JSON, in which `model` is as in a study, or a whole `Model`. Raises UserError."""
    values = {**BY_HAND, **given}
    if values.get("model") is not None:
        model = read_own_model(values["model"])
        values |= {"workload": OWN, "model": model}
        if model.is_function:  # which chooses its precision itself
            values |= {"precision": AS_WRITTEN, "execution": EXECUTIONS[0]}
        if not model.is_sized and not model.names:
            values["size"] = 1
    cell = made(Cell, values, "cell")
    allowed = {"protocol": PROTOCOLS, "precision": (*PRECISIONS, AS_WRITTEN), "execution": EXECUTIONS}
    allowed |= {} if cell.model else {"workload": tuple(known_workloads())}
    for axis, names in allowed.items():
        if values[axis] not in names:
            raise UserError(
                f"cell.{axis}: {shown_value(values[axis])} is unknown; {allowed_names(values[axis], names)}"
            )
    if cell.model and cell.model.names and cell.size > len(cell.model.names):
        raise UserError(
            f"cell.size: {cell.size} has no name; allowed: 1 to {len(cell.model.names)}, as many as `names`"
        )
    keys = {axis: f"cell.{axis}" for axis in AXES if axis != "batch_size" or not any_batch}
    check_offered(cell.workload, cell.values, keys)
    return cell


def read_own_model(given: str | Mapping[str, Any]) -> Model:
    """The user's model, with relative paths from the working directory."""
    if isinstance(given, str):
        return read_model(given, Path(), "cell.model")
    _check(Model, given, "cell.model")
    if given.get("table") is not None:
        _check(Table, given["table"], "cell.model.table")
    model = model_of(given)
    if model.table is not None:
        file = find_file(model.table.file, [Path()], "cell.model.table.file: there is", "the table's file")
        model = replace(model, table=replace(model.table, file=str(file)))
    if model.file is None:
        return model
    return replace(model, origin=str(find_file(model.origin, [Path()], "cell.model: there is", "the model's file")))


def check_writable(path: Path, begins: bytes) -> None:
    """Make the folder of an output; raises UserError if the output cannot be written.

    An existing file may be replaced only if it is empty or begins with `begins`.
    """
    if path.parts[:1] and path.parts[0].startswith("~"):
        raise UserError(f"--output: {path} begins with ~, which the shell did not expand; write out the folder's path")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        why = "it is a folder" if path.is_dir() else why_not_writable(path.parent)
    except OSError as error:
        why = error.strerror
    if why:
        raise UserError(f"--output: {path} cannot be written ({why}); name a file in a folder of yours")
    if path.is_file():
        with path.open("rb") as file:
            beginning = file.read(len(begins))
        if beginning not in (b"", begins):
            raise UserError(f"--output: {path} exists and was not written by this script; name a new file")
