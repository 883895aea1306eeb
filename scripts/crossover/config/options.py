"""What the command-line options of several scripts share, and lines that they print.

Importing this module needs no installed package, so that `--help` works in a bare environment.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys

from crossover.config.words import BASELINE, DEVICES, HALF, SEVERAL
from crossover.errors import Parser, shown_value
from crossover.files import relative_path
from crossover.home import IS_INSTALLED, ROOT

DEVICE_CHOICES = f"{', '.join(DEVICES)}, fewer cores (cpu-1, cpu-{HALF}), two GPUs (cuda-2), two processes (cpu-2x1)"


def new_parser(documentation: str | None) -> Parser:
    """A parser whose help shows a script's docstring: the first paragraph before the options, the rest after them."""
    description, _, example = (documentation or "").partition("\n\n")
    return Parser(
        description=description,
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def workflow_command(*arguments: str) -> str:
    """The command that runs this workflow with Snakemake in the working directory."""
    snakefile = relative_path(ROOT / "Snakefile")
    return shlex.join(["snakemake", *([] if snakefile == "Snakefile" else ["-s", snakefile]), *arguments])


def report_command(*arguments: str) -> str:
    """The command that reports on existing rows, from the working directory."""
    script = relative_path(ROOT / "scripts" / "report_rows.py")
    return shlex.join([*(["crossover", "report"] if IS_INSTALLED else ["python", script]), *arguments])


def as_list(value: str) -> str:
    """The value as YAML: `[64,256]` for `64,256`."""
    return f"[{value}]" if "," in value and not value.startswith(("[", "{")) else value


def device(text: str) -> str:
    """Parse a device, the CPU on some or half of its cores, or several: cuda, cpu, cpu-1, cpu-half, cuda-2, cpu-2x1."""
    if text not in DEVICES and not re.fullmatch(rf"{BASELINE}-({HALF}|[1-9][0-9]{{0,3}})|{SEVERAL}", text, re.ASCII):
        raise refusal(text, DEVICE_CHOICES)
    return text


def machine(text: str) -> str:
    """Parse a machine's name, whose characters must be safe in a path."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text, re.ASCII):
        raise refusal(text, "letters, digits, '.', '_' and '-'")
    return text


def refusal(text: str, allowed: str) -> argparse.ArgumentTypeError:
    """The error for an option's value, with what is allowed instead."""
    return argparse.ArgumentTypeError(f"{shown_value(text)} is not allowed; allowed: {allowed}")


def tell(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr, flush=True)
