"""Benchmark your own model, or Crossover's studies, on the CPU and GPU of this machine.

  crossover quick                                          a first look: parts of two studies
  crossover my_net.py:build --sizes 64,256 --effort quick
  crossover disc_depth hsf_width --results results/two
  crossover my_study.yaml -- --cores 4 --resources gpu=4   what follows `--` is for Snakemake
  crossover run --configfile my.yaml --dry-run             Snakemake with these options alone
  crossover calibrate my_op.py:build --minutes 5           thresholds.json of this machine, for a library
  crossover compare OLD NEW                                two results folders, cell by cell
  crossover report RESULTS                                 a report of the finished part of a run
  crossover doctor                                         what a run finds on this machine
  crossover selftest                                       whether this installation works
  crossover --snakefile                                    the path of the Snakefile, for `snakemake -s`

The command that runs is printed first. A benchmark ends with its answers and the path of its report.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from crossover import __version__
from crossover.config.options import as_list
from crossover.errors import Parser, did_you_mean, one_line_errors
from crossover.home import IS_INSTALLED, NAME, ROOT
from crossover.machine.installed import requirement_of
from crossover.machine.invocation import TYPED

CONFIGS = ("quick", "full")
"""Config files of the workflow that can be named in place of studies."""

SELFTEST = ("studies=disc_depth", "sizes=[2,3]", "devices=[cpu]", "trials=1", "effort=quick", "repeat_disturbed=0")

SELFTEST_TARGETS = ("results/plan.json", "results/first_answers/disc_depth.txt")
"""What a report needs, but for the machine's peak rates, which take longer to measure."""

ALONE = ("selftest", "--snakefile", "--version")
"""What `main` answers without further arguments."""

SCRIPTS = {"compare": "compare_runs.py", "report": "report_rows.py", "doctor": "doctor.py"}


def build_command(arguments: Sequence[str]) -> list[str]:
    """Translate command-line arguments into the command to run, without the Python interpreter."""
    first, *others = arguments or [""]
    if first in SCRIPTS:
        return [os.path.relpath(ROOT / "scripts" / SCRIPTS[first]), *others]
    if first in ALONE:
        sys.exit(f"error: {first}: takes no arguments; allowed: crossover {first}")
    if first == "run":
        _check_config(others)
        has_profile = any(word.partition("=")[0] == "--profile" for word in others)
        return [*(snakemake_alone() if has_profile else snakemake()), *others]  # a profile has limits of its own
    end = arguments.index("--") if "--" in arguments else len(arguments)
    parser = _parser()
    _check_options(arguments[:end], parser)
    _check_snakemake_options(arguments[end + 1 :], parser)
    parsed, left = parser.parse_known_args(arguments[:end])
    if left:
        parser.error(
            f"{left[0]}: belongs to no option; allowed: names first, and lists with commas, such as --sizes 64,256"
        )
    options = vars(parsed)
    names = options.pop("names")
    if files := [name for name in names if name.endswith((".py", ".py:"))]:
        file = files[0].removesuffix(":")
        sys.exit(f"error: {files[0]}: a file without its function; allowed: {file}:FUNCTION, such as {file}:build")
    models = [name for name in names if ":" in name]
    if models and len(names) > 1:
        sys.exit(f"error: {models[0]}: a model is measured alone; to measure several, write a study for each")
    named = {"model": models[0]} if models else {"studies": ",".join(names)}
    entries = {key: value for key, value in options.items() if value is not None}
    configfile = []
    if names[0] in CONFIGS:
        if names[1:]:
            sys.exit(f"error: {names[0]} is a config file with studies of its own; name it alone")
        configfile = [f"--configfile={os.path.relpath(ROOT / 'config' / f'{names[0]}.yaml')}"]
    else:
        entries = named | entries
    words = [f"{key}={as_list(entries[key])}" for key in entries]
    # The last occurrence of an option counts, and all words after --config are entries.
    return [*snakemake(), *configfile, *arguments[end + 1 :], *(["--config", *words] if words else [])]


def snakemake() -> list[str]:
    """The command that runs the workflow on this machine, without the Python interpreter."""
    # Targets may follow --cores, but not --resources, which takes all words up to the next option.
    return [*snakemake_alone(), "--resources", "gpu=1", "--cores", "1"]


def snakemake_alone() -> list[str]:
    # Without -P, a queue.py in the working folder would shadow Python's.
    return ["-P", "-m", "snakemake", "-s", os.path.relpath(ROOT / "Snakefile")]


def _parser() -> argparse.ArgumentParser:
    from crossover.config.config_keys import ConfigKeys  # needs pydantic
    from crossover.config.key_types import json_schema

    description, _, examples = (__doc__ or "").partition("\n\n")
    parser = Parser(
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
            _refuse_key_of_study(name, parser)
            meant = did_you_mean(name, options, 1)
            parser.error(f"unknown option {name}{meant}; Snakemake's own options follow `--`: crossover NAME -- {name}")


def _refuse_key_of_study(name: str, parser: argparse.ArgumentParser) -> None:
    from crossover.config.configuration import STUDY_ONLY  # needs pydantic

    key = name.lstrip("-").replace("-", "_")
    if key in STUDY_ONLY:
        override = f"--overrides '{{STUDY: {{{key}: ...}}}}'"
        parser.error(f"{name}: a key of a study; give it to one: {override}; a model's study is named after its file")


def _check_snakemake_options(arguments: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Refuse a second `--config`, which would be ignored, a second `--snakefile`, and unreadable config files."""
    for word in arguments:
        if word.partition("=")[0] in ("--config", "-C"):
            parser.error(
                f"{word} after `--` would be ignored; give each key as an option before it, such as --trials 5"
            )
        if word.partition("=")[0] in ("--snakefile", "-s"):
            parser.error(f"{word} after `--`: the Snakefile is that of Crossover; to run another one, use snakemake")
    _check_config(arguments)


def _check_config(arguments: Sequence[str]) -> None:
    """Exit with one line if Snakemake could not read its config files and entries."""
    from crossover.config.layers import read_layers  # needs pydantic

    # Of an option that is given twice, the last occurrence counts.
    given: dict[str, list[str]] = {"": []}
    option = ""
    for word in arguments:
        if word.startswith("-"):
            option, sign, value = word.partition("=")
            given[option] = [value] if sign else []
            option = "" if sign else option
        else:
            given[option].append(word)
    files = given.get("--configfile", given.get("--configfiles", []))
    with one_line_errors():
        read_layers([*map(Path, files)], given.get("--config", given.get("-C", [])))


def selftest() -> int:
    """Measure two small cells on the CPU and report on them, in a temporary folder; returns the exit status."""
    print("Measuring two small cells on the CPU in a temporary folder, and reporting on them ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        measure = [*snakemake(), "--directory", folder, *SELFTEST_TARGETS, "--config", *SELFTEST]
        report = build_command(["report", str(Path(folder, "results"))])
        for command in (measure, report):
            done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
            if done.returncode:
                print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
                print("error: the self-test failed; see above", file=sys.stderr)
                return done.returncode
    print(f"Crossover {__version__} measures, analyses and reports here. `crossover doctor` lists the devices.")
    return 0


def shown_command(arguments: Sequence[str]) -> list[str]:
    """Print the command of `build_command`, and return it."""
    command = build_command(arguments)
    print(f"$ {shlex.join(command[2:] if command[0] == '-P' else ['python', *command])}", file=sys.stderr, flush=True)
    return command


def main() -> None:
    """Print and run the command for the command-line arguments."""
    answers = {"--snakefile": ROOT / "Snakefile", "--version": f"Crossover {__version__}"}
    if len(sys.argv) == 2 and sys.argv[1] in answers:
        print(answers[sys.argv[1]])
        return
    if importlib.util.find_spec("snakemake") is None:
        install = [requirement_of(NAME)] if IS_INSTALLED else ["-r", os.path.relpath(ROOT / "requirements.txt")]
        sys.exit(f"error: Snakemake is not installed in this environment; run `pip install {shlex.join(install)}`")
    if sys.argv[1:] == ["selftest"]:
        sys.exit(selftest())
    os.environ[TYPED] = shlex.join(["crossover", *sys.argv[1:]])
    if sys.argv[1:2] == ["calibrate"]:
        from crossover.calibrate import calibrate  # needs pydantic

        with one_line_errors():
            sys.exit(calibrate(sys.argv[2:], shown_command))
    command = shown_command(sys.argv[1:])
    os.execv(sys.executable, [sys.executable, *command])  # so that Snakemake receives signals
