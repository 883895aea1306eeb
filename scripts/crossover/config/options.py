"""Command-line options of the measuring scripts: how the scripts read them and how the workflow writes them.

Importing this module needs no installed package, so that `--help` works in a bare environment.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import operator
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from crossover.config.models import FORMS, MODES, Model, read_model
from crossover.config.studies import LONGEST_S, MOST, MOST_SEED, MOST_THREADS, Cell, Effort
from crossover.config.table_files import left_out, read_table
from crossover.config.words import (
    AS_WRITTEN,
    AXES,
    BASELINE,
    DEVICES,
    EXECUTIONS,
    HALF,
    HERE,
    PLAIN,
    PRECISIONS,
    PROTOCOLS,
)
from crossover.config.workloads import OWN, check_offered, known_workloads, workload_traits
from crossover.errors import UserError, shown_value
from crossover.files import relative_path, why_not_writable

DEVICE_CHOICES = f"{', '.join(DEVICES)}, or the CPU on fewer cores, such as {BASELINE}-1 or {BASELINE}-{HALF}"

MEMORY_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
}

MOST_MEMORY_BYTES = 2**60


def new_parser(documentation: str | None) -> argparse.ArgumentParser:
    """A parser whose help shows a script's docstring: the first paragraph before the options, the rest after them."""
    description, _, example = (documentation or "").partition("\n\n")
    return argparse.ArgumentParser(
        description=description,
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_cell_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of a cell other than its batch size; returns their group."""
    cell = parser.add_argument_group("cell")
    cell.add_argument("--study", default="by_hand", help="name of the study that the result belongs to")
    computed = cell.add_mutually_exclusive_group(required=True)
    computed.add_argument("--workload", choices=known_workloads())
    computed.add_argument("--model", help=f"a model of your own: {FORMS}")
    cell.add_argument("--mode", choices=MODES, help=f"what a step of --model does; default: {MODES[0]}")
    cell.add_argument("--names", default=(), type=names, help="names of sizes 1, 2, ..., such as resnet18,resnet34")
    cell.add_argument("--unchecked", action="store_true", help="skip the model's numerical check")
    refused = "record status unsupported, instead of an error, if the model rejects the size"
    cell.add_argument("--may-refuse", action="store_true", help=refused)
    cell.add_argument("--table", help="CSV or Parquet file of samples for the model")
    cell.add_argument("--targets", help="the table's column to predict")
    columns = 'columns to predict from, as a,b or "a, b",c; default: all except the targets and index columns'
    cell.add_argument("--inputs", default=(), type=column_names, help=columns)
    cell.add_argument("--variant", default=PLAIN, help="variant of the workload")
    cell.add_argument("--protocol", default="resident", choices=PROTOCOLS)
    cell.add_argument("--precision", default="fp32", choices=(*PRECISIONS, AS_WRITTEN))
    cell.add_argument("--execution", default="eager", choices=EXECUTIONS)
    cell.add_argument("--size", required=True, type=positive, help="position on the workload's size axis")
    cell.add_argument("--machine", default=HERE, type=machine, help="name of this machine, or of its class of nodes")
    cell.add_argument("--device", required=True, type=device, help=DEVICE_CHOICES)
    return cell


def add_process_options(group: argparse._ActionsContainer) -> None:
    """Add the options that all measuring scripts have."""
    group.add_argument("--seed", default=0, type=seed)
    group.add_argument(
        "--dataset", type=lambda text: text or None, help="safetensors file; empty if the workload reads none"
    )
    group.add_argument("--cpu-threads", default="auto", type=auto_or_threads, help="auto: usable physical cores")
    group.add_argument("--time-limit-s", default=300.0, type=seconds_above_0, help="seconds for each measuring process")
    group.add_argument("--limit-note", type=Path, help="file in which to note that the time limit ended the job")
    group.add_argument("--plan-key", help="hash of what the run was planned with, kept in the result")
    group.add_argument("--written-files", help="record of the files that the model's code writes, which are no inputs")
    isolation = "server: fork the measuring process from a preloaded server on this host; process: start a fresh one"
    group.add_argument("--isolation", default="auto", choices=["auto", "server", "process"], help=isolation)


def workflow_command(*arguments: str) -> str:
    """The command that runs this workflow with Snakemake in the working directory."""
    snakefile = relative_path(Path(__file__).parents[3] / "Snakefile")
    return shlex.join(["snakemake", *([] if snakefile == "Snakefile" else ["-s", snakefile]), *arguments])


def cell_of_options(options: argparse.Namespace, **more: int) -> Cell:
    """The cell given on a command line; `more` are fields without an option of their own. Raises UserError."""
    values: dict[str, Any] = {f.name: more.get(f.name, getattr(options, f.name, None)) for f in fields(Cell)}
    if unused := [option_name(name) for name in OF_MODEL if options.model is None and getattr(options, name)]:
        raise UserError(f"{unused[0]}: only a model of your own has this option; give --model, or remove it")
    if options.model is not None:
        model = _user_model(options)
        values |= {"workload": OWN, "model": model}
        values |= {"precision": AS_WRITTEN} if model.is_function else {}
    cell = Cell(**values)
    check_offered(cell.workload, cell.values, {axis: option_name(axis) for axis in AXES if axis not in more})
    dataset = workload_traits(cell.workload).dataset
    if dataset is not None and options.dataset is None:
        raise UserError(
            f"--dataset: workload '{cell.workload}' reads dataset '{dataset}'; give its safetensors file, which "
            f"`{workflow_command('--cores', '1', f'results/datasets/{dataset}.safetensors')}` makes"
        )
    return cell


OF_MODEL = ("mode", "names", "unchecked", "may_refuse", "table", "targets", "inputs")
"""Options that describe `--model`."""


def _user_model(options: argparse.Namespace) -> Model:
    if options.names and options.size > len(options.names):
        raise UserError(
            f"--size: {options.size} has no name; allowed: 1 to {len(options.names)}, as many as --names has"
        )
    table = None
    if options.table is not None:
        if options.targets is None:
            raise UserError("--table: --targets is missing; give the column to predict")
        keys = {"file": options.table, "targets": options.targets, "inputs": options.inputs}
        table = read_table(keys, Path(), "--table")
        if note := left_out(table):
            tell(note)
    elif options.targets or options.inputs:
        raise UserError("--table: missing; give the file that has the columns of --targets and --inputs")
    model = read_model(options.model, Path(), "--model")
    _check_of_model(options, model)
    return replace(
        model,
        mode=model.mode if model.is_function else options.mode or model.mode,
        names=options.names,
        checked=not options.unchecked,
        may_refuse=options.may_refuse,
        table=table,
    )


def _check_of_model(options: argparse.Namespace, model: Model) -> None:
    """Raise UserError if a size, precision or execution has no effect on a user's model or function."""
    if not model.is_sized and not options.names and options.size != 1:
        raise UserError(f"--size: {options.size}, but {model.signature} has no argument for a size; allowed: 1")
    if model.is_function and options.precision not in ("fp32", AS_WRITTEN):
        raise UserError(f"--precision: {options.precision}, but a function chooses its own; allowed: {AS_WRITTEN}")
    if model.is_function and options.execution != EXECUTIONS[0]:
        raise UserError(f"--execution: {options.execution}, but a function runs as written; allowed: {EXECUTIONS[0]}")


def device(text: str) -> str:
    """Parse a device, or the CPU on some or half of its cores: cuda, cpu, cpu-1, cpu-half."""
    if text not in DEVICES and not re.fullmatch(rf"{BASELINE}-({HALF}|[1-9][0-9]{{0,3}})", text, re.ASCII):
        raise refusal(text, DEVICE_CHOICES)
    return text


def machine(text: str) -> str:
    """Parse a machine's name, whose characters must be safe in a path."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text, re.ASCII):
        raise refusal(text, "letters, digits, '.', '_' and '-'")
    return text


def names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas."""
    return tuple(filter(None, text.split(",")))


def column_names(text: str) -> tuple[str, ...]:
    """Parse column names given as a line of CSV, in which a quoted name may contain commas."""
    return tuple(next(csv.reader([text]), ()))


COMPARISONS = {
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "above"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "below"),
}
"""Comparison and wording of each kind of bound, by pydantic's name."""


def number(kind: type[int] | type[float], *, other: int | str | None = None, **bounds: float) -> Callable[[str], Any]:
    """A parser of an option's value: a number within bounds, or the value `other`."""
    allowed = "a whole number " if kind is int else "a number "
    allowed += " and ".join(f"{COMPARISONS[bound][1]} {limit}" for bound, limit in bounds.items())
    if other is not None:
        allowed += f", or {other}"

    def read(text: str) -> int | float | str:
        if other is not None and text == str(other):
            return other
        value: float = math.nan
        with suppress(ValueError):
            value = kind(text)
        if not text.isascii() or not all(COMPARISONS[bound][0](value, limit) for bound, limit in bounds.items()):
            raise refusal(text, allowed)
        return value

    return read


positive = number(int, ge=1, le=MOST)
whole = number(int, ge=0, le=MOST)
seed = number(int, ge=0, le=MOST_SEED)
auto_or_threads = number(int, ge=1, le=MOST_THREADS, other="auto")
seconds_above_0 = number(float, gt=0, le=LONGEST_S)


def add_number(group: argparse._ActionsContainer, settings: type, name: str, **texts: Any) -> None:
    """Add the option for a numeric field of a dataclass, with the field's default and bounds."""
    (field,) = (field for field in fields(settings) if field.name == name)
    kind = int if field.default is None or isinstance(field.default, int) else float
    bounds = {bound: limit for bound, limit in field.metadata.items() if bound in COMPARISONS}
    group.add_argument(option_name(name), default=field.default, type=number(kind, **bounds), **texts)


def refusal(text: str, allowed: str) -> argparse.ArgumentTypeError:
    """The error for an option's value, with what is allowed instead."""
    return argparse.ArgumentTypeError(f"{shown_value(text)} is not allowed; allowed: {allowed}")


def memory_size(text: str) -> int:
    """Parse an amount of memory into bytes: 8GB is 8 * 1000^3, 8GiB is 8 * 1024^3, a number alone is in bytes."""
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]*)", text.strip().lower(), re.ASCII)
    unit_bytes = MEMORY_UNITS.get(parts[2]) if parts else None
    size = int(Decimal(parts[1]) * unit_bytes) if parts and unit_bytes else 0
    if not 1 <= size <= MOST_MEMORY_BYTES:
        raise refusal(text, "bytes, from 1 to 2^60, such as 8GB, 8GiB, 800MB or 800000000")
    return size


def check_writable(path: Path, begins: bytes = b"PAR1") -> None:
    """Make the folder of an output; raises UserError if the output cannot be written.

    An existing file may be replaced only if it is empty or begins with `begins`. By default, this is the beginning of a
    Parquet file.
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


def tell(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr, flush=True)


def setting_options(effort: Effort, **settings: Any) -> list[str]:
    """Options of scripts/measure_cell.py common to all trials of a study; `settings` are named like the options."""
    return as_options({**settings, **asdict(effort)})


def model_options(model: Model | None) -> dict[str, Any]:
    """The values of the options that give a user's model; empty without a model.

    Files are relative to the working directory, so that a moved project needs no new measurements.
    """
    if model is None:
        return {}
    values: dict[str, Any] = {"model": model.shown, "mode": model.mode, "names": ",".join(model.names) or None}
    values |= {"unchecked": not model.checked, "may_refuse": model.may_refuse}
    if model.table is None:
        return values
    values |= {"table": relative_path(model.table.file), "targets": model.table.targets}
    line = io.StringIO()
    csv.writer(line).writerow(model.table.inputs)
    return values | {"inputs": line.getvalue().removesuffix("\r\n") or None}


def as_options(values: Mapping[str, Any]) -> list[str]:
    """The options of a command line: `--name=value`, `--name` for True, and nothing for None or False."""
    return [
        option_name(name) if value is True else f"{option_name(name)}={value}"
        for name, value in values.items()
        if value is not None and value is not False
    ]


def option_name(field: str) -> str:
    """The command-line option that sets a field."""
    return f"--{field.replace('_', '-')}"
