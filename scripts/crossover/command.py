"""Benchmark your own model, or Crossover's studies, on the CPU and GPU of this machine.

  crossover my_net.py:build --sizes 64,256 --effort quick
  crossover disc_depth hsf_width --results results/two
  crossover my_study.yaml -- --cores 4 --resources gpu=4   what follows `--` is for Snakemake
  crossover compare OLD NEW                                two results folders, cell by cell
  crossover report RESULTS                                 a report of the finished part of a run
  crossover doctor                                         what a run finds on this machine

The command that runs is printed first. A benchmark ends with its answers and the path of its report.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from crossover.errors import did_you_mean
from crossover.machine.invocation import TYPED

CHECKOUT = Path(__file__).parents[2]

SCRIPTS = {"compare": "compare_runs.py", "report": "report_rows.py", "doctor": "doctor.py"}


def build_command(arguments: Sequence[str]) -> list[str]:
    """Translate command-line arguments into the command to run, without the Python interpreter."""
    if arguments[:1] and arguments[0] in SCRIPTS:
        return [os.path.relpath(CHECKOUT / "scripts" / SCRIPTS[arguments[0]]), *arguments[1:]]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    parser = _parser()
    _check_options(arguments[:end], parser)
    _check_snakemake_options(arguments[end + 1 :], parser)
    options = vars(parser.parse_args(arguments[:end]))
    names = options.pop("names")
    models = [name for name in names if ":" in name]
    if models and len(names) > 1:
        sys.exit(f"error: {models[0]}: a model is measured alone; to measure several, write a study for each")
    entries = {"model": models[0]} if models else {"studies": ",".join(names)}
    entries |= {key: value for key, value in options.items() if value is not None}
    snakemake = [
        "-P",  # otherwise a queue.py in the working folder would shadow Python's
        "-m",
        "snakemake",
        "-s",
        os.path.relpath(CHECKOUT / "Snakefile"),
        "--cores",
        "1",
        "--resources",
        "gpu=1",
    ]
    # The last occurrence of an option counts, and all words after --config are entries.
    return [*snakemake, *arguments[end + 1 :], "--config", *(f"{key}={_as_list(entries[key])}" for key in entries)]


def _parser() -> argparse.ArgumentParser:
    from crossover.config.config_keys import ConfigKeys  # needs pydantic
    from crossover.config.key_types import json_schema

    description, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        "crossover",
        usage="crossover NAME [NAME ...] [--KEY VALUE ...] [-- SNAKEMAKE'S OPTIONS]",
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="a model as FILE.py:FUNCTION, or studies")
    for key, rule in json_schema(ConfigKeys)["properties"].items():
        if key not in ("model", "studies"):
            text = rule["description"].replace("%", "%%")
            spellings = sorted({f"--{key.replace('_', '-')}", f"--{key}"})
            parser.add_argument(*spellings, dest=key, metavar="VALUE", help=text)
    return parser


def _check_options(arguments: Sequence[str], parser: argparse.ArgumentParser) -> None:
    options = [spelling for action in parser._actions for spelling in action.option_strings]
    for word in arguments:
        name = word.partition("=")[0]
        if name.startswith("-") and name not in options:
            meant = did_you_mean(name, options, 1)
            parser.error(f"unknown option {name}{meant}; Snakemake's own options follow `--`: crossover NAME -- {name}")


def _check_snakemake_options(arguments: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Refuse a second `--config`, which would be ignored, and a second `--snakefile`."""
    for word in arguments:
        if word.partition("=")[0] in ("--config", "-C"):
            parser.error(
                f"{word} after `--` would be ignored; give each key as an option before it, such as --trials 5"
            )
        if word.partition("=")[0] in ("--snakefile", "-s"):
            parser.error(f"{word} after `--`: the Snakefile is that of Crossover; to run another one, use snakemake")


def _as_list(value: str) -> str:
    """The value as YAML: `[64,256]` for `64,256`."""
    return f"[{value}]" if "," in value and not value.startswith(("[", "{")) else value


def main() -> None:
    """Print and run the command for the command-line arguments."""
    if not (CHECKOUT / "Snakefile").is_file():
        sys.exit("error: the workflow is not in this installation; run `pip install -e .` in a checkout of Crossover")
    if importlib.util.find_spec("snakemake") is None:
        requirements = shlex.quote(os.path.relpath(CHECKOUT / "requirements.txt"))
        sys.exit(f"error: Snakemake is not installed in this environment; run `pip install -r {requirements}`")
    command = build_command(sys.argv[1:])
    shown = command[2:] if command[0] == "-P" else ["python", *command]
    print(f"$ {shlex.join(shown)}", file=sys.stderr, flush=True)
    os.environ[TYPED] = shlex.join(["crossover", *sys.argv[1:]])
    os.execv(sys.executable, [sys.executable, *command])  # so that Snakemake receives signals
