"""Command-line options that several scripts share, and the kinds of values that they take.

Only the standard library is imported, so that `--help` works in a bare environment.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import asdict, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from crossover.command_lines import option_name
from crossover.errors import UserError
from crossover.records import BASELINE, DEVICES, EXECUTIONS, HALF, HERE, PLAIN, PRECISIONS, PROTOCOLS
from crossover.studies import Cell, check_offered, known_workloads, workload_traits

LONGEST_S = 1e6

DEVICE_CHOICES = f"{', '.join(DEVICES)}; {BASELINE}-1, {BASELINE}-{HALF} and the like"

MACHINE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"

MEMORY_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
}
"""Bytes in each unit, by its name in small letters."""

MOST_MEMORY_BYTES = 2**60


def new_parser(documentation: str | None) -> argparse.ArgumentParser:
    """A parser that shows a script's docstring: its first paragraph before the options, the rest behind them."""
    description, _, example = (documentation or "").partition("\n\n")
    return argparse.ArgumentParser(
        description=description,
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_cell_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that name a cell, all but its batch size; returns their group."""
    cell = parser.add_argument_group("cell")
    cell.add_argument("--study", default="by_hand", help="name of the study the result belongs to")
    cell.add_argument("--workload", required=True, choices=known_workloads())
    cell.add_argument("--variant", default=PLAIN, help="what of the workload is switched on")
    cell.add_argument("--protocol", default="resident", choices=PROTOCOLS)
    cell.add_argument("--precision", default="fp32", choices=PRECISIONS)
    cell.add_argument("--execution", default="eager", choices=EXECUTIONS)
    cell.add_argument("--size", required=True, type=positive, help="position on the workload's size axis")
    cell.add_argument("--machine", default=HERE, type=machine, help="name of this machine, or of its class of nodes")
    cell.add_argument("--device", required=True, type=device, help=f"{DEVICE_CHOICES}: the CPU on fewer cores")
    return cell


def add_process_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that every measuring process takes."""
    group.add_argument("--seed", default=0, type=int)
    group.add_argument("--dataset", type=path_if_any, help="safetensors file; empty where the workload reads none")
    group.add_argument("--cpu-threads", default="auto", type=auto_or_positive, help="auto: usable physical cores")
    group.add_argument("--time-limit-s", default=300.0, type=seconds_above_0, help="of each measuring process")


def add_isolation_option(group: argparse._ArgumentGroup, **more: str) -> None:
    """Add the choice of how a measuring process comes to be; `more` are further choices, each with its words."""
    words = {"server": "forked by a preloaded server of this host", "process": "a fresh one", **more}
    text = "; ".join(f"{name}: {meaning}" for name, meaning in words.items())
    group.add_argument("--isolation", default="auto", choices=["auto", *words], help=text)


def cell_of(options: argparse.Namespace, **known: int) -> Cell:
    """The cell that a command line names, `known` fields aside; raises UserError where its workload cannot be so."""
    values: dict[str, Any] = {f.name: known.get(f.name, getattr(options, f.name, None)) for f in fields(Cell)}
    cell = Cell(**values)
    options_of_axes = {f.name: option_name(f.name) for f in fields(Cell) if f.name not in known}
    check_offered(cell.workload, asdict(cell), options_of_axes)
    needed = workload_traits(cell.workload).dataset
    if needed is not None and options.dataset is None:
        raise UserError(f"--dataset: workload '{cell.workload}' reads dataset '{needed}'; give its safetensors file")
    return cell


def device(text: str) -> str:
    """A device, or the CPU on a number of cores or half of them: cuda, cpu, cpu-1, cpu-half."""
    if text not in DEVICES and not re.fullmatch(rf"{BASELINE}-({HALF}|[1-9][0-9]*)", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text} is not allowed; allowed: {DEVICE_CHOICES}")
    return text


def machine(text: str) -> str:
    """The name of a machine, which a path can hold."""
    if not re.fullmatch(MACHINE_NAME, text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed: letters, digits, '.', '_' and '-'")
    return text


def path_if_any(text: str) -> str | None:
    """A path; None for an empty text."""
    return text or None


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _at_least(1, text)


def share(text: str) -> float:
    """A share between 0 and 1, neither of them."""
    number = float(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not allowed; allowed: a number between 0 and 1, such as 0.33")
    return number


def whole(text: str) -> int:
    """A whole number of at least 0."""
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{text} is not allowed; allowed: a whole number of at least {least}")
    return number


def seconds(text: str) -> float:
    """Seconds, at least 0 and finite."""
    number = float(text)
    if not 0 <= number <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text} is not allowed; allowed: seconds from 0 to {LONGEST_S:g}")
    return number


def seconds_above_0(text: str) -> float:
    """Seconds above 0."""
    if (number := seconds(text)) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not allowed; allowed: seconds above 0")
    return number


def auto_or_positive(text: str) -> int | str:
    """`auto`, or a whole number of at least 1."""
    return text if text == "auto" else positive(text)


def memory_size(text: str) -> int:
    """A size of memory in bytes: 8GB is 8 * 1000^3, 8GiB is 8 * 1024^3, and a bare number counts bytes."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]*)", text.strip().lower(), re.ASCII)
    unit_bytes = MEMORY_UNITS.get(found[2]) if found else None
    size = int(Decimal(found[1]) * unit_bytes) if found and unit_bytes else 0
    if not 1 <= size <= MOST_MEMORY_BYTES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed; allowed: bytes, from 1 to 2^60, such as 8GB, 8GiB, 800MB or 800000000"
        )
    return size


def check_writable(path: Path) -> None:
    """Make the folder of an output and raise UserError where the file could not be written there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writable = os.access(path.parent, os.W_OK) and not path.is_dir()
    except OSError:
        writable = False
    if not writable:
        raise UserError(f"--output: {path} cannot be written; name a file in a folder of yours")


def tell(line: str) -> None:
    """Print a line about what is under way, at once."""
    print(line, file=sys.stderr, flush=True)
