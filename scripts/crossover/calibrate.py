"""Measure a function on the machine of whoever installs a library, within a given time, and write its thresholds."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import yaml

from crossover.config.options import as_list
from crossover.config.studies import PRESETS
from crossover.config.study import LEAST_OF_MAP
from crossover.config.words import is_cpu
from crossover.errors import Parser, UserError
from crossover.files import atomic_path
from crossover.machine.discovery import find_machine
from crossover.thresholds import read_thresholds

SHORT = "timed_max_s: 0.2"
"""Change of the default effort: within a given time, many trials tell more than long ones, since trials differ."""


def calibrate(arguments: Sequence[str], build_command: Callable[[Sequence[str]], list[str]]) -> int:
    """Run a benchmark and copy its thresholds; returns the exit status. `build_command` is that of `crossover`.

    Raises UserError for wrong options, before the run.
    """
    parser = Parser("crossover calibrate", allow_abbrev=False, description=__doc__)
    parser.add_argument("name", metavar="FILE.py:FUNCTION", help="the function or model to measure")
    parser.add_argument(
        "--minutes", default="5", help="time of the run, whose first grid is measured in any case; default 5"
    )
    parser.add_argument("--output", type=Path, default=Path("thresholds.json"), help="default thresholds.json")
    parser.add_argument(
        "--results", default="results/calibration", help="folder of the run; default results/calibration"
    )
    parser.add_argument("--sizes", help="of the first variable, with --batch-sizes three or more")
    parser.add_argument(
        "--batch-sizes", "--batch_sizes", dest="batch_sizes", help="of the second variable: none, or three or more"
    )
    parser.add_argument("--axes", help="two sizes by name, three or more values each: {m: [...], k: [...]}")
    parser.add_argument("--effort", choices=PRESETS, help="how thorough each trial is; by default, short")
    parser.epilog = "Other options, such as --devices, are those of `crossover`."
    own, others = parser.parse_known_args(arguments)
    if "--" in arguments:
        raise UserError("-- and options of Snakemake; allowed: options of crossover, such as --sizes 64,256")
    values = {"--sizes": own.sizes, "--batch-sizes": own.batch_sizes, "--axes": own.axes}
    given_values = {option: given for option, given in values.items() if given}
    for option, given in given_values.items():
        if (own.batch_sizes or option == "--axes") and _fewest(given) < LEAST_OF_MAP:
            raise UserError(f"{option} {given}; allowed: {LEAST_OF_MAP} or more values of each of two variables")
    machine = find_machine()
    if all(map(is_cpu, machine.devices)):
        raise UserError(f"no GPU to compare with the CPU: {machine.note or 'none was found'}; run this where one is")
    if own.output.is_dir() or not own.output.absolute().parent.is_dir():
        raise UserError(f"--output {own.output}: not a file in an existing folder; give such a file")
    options = [own.name, f"--minutes={own.minutes}", "--results", own.results]
    options += chain(*given_values.items())
    plane = ["refinement: {pairs: [plane]}"] if own.batch_sizes or own.axes else []
    efforts = [f"preset: {own.effort}" if own.effort else SHORT, *plane]
    options += ["--effort", f"{{{', '.join(efforts)}}}"]
    status = subprocess.run([sys.executable, *build_command([*options, *others])]).returncode
    if status:
        return status
    measured = Path(own.results, "thresholds.json")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thresholds = read_thresholds(measured)
    if not any(series["device"] for series in thresholds):
        print(f"error: no GPU was measured, so {own.output} is not written", file=sys.stderr)
        return 1
    with atomic_path(own.output) as temporary:
        temporary.write_bytes(measured.read_bytes())
    print(f"Thresholds of this machine: {own.output}", *(f"Caution: {warning.message}" for warning in caught), sep="\n")
    return 0


def _fewest(given: str) -> int:
    """The number of values in a list, or in the shortest list of a mapping in YAML."""
    try:
        parsed = yaml.safe_load(as_list(given))
    except yaml.YAMLError:
        return LEAST_OF_MAP  # the run's config says what is wrong
    lists = parsed.values() if isinstance(parsed, dict) else [parsed if isinstance(parsed, list) else [parsed]]
    return min((len(values) for values in lists if isinstance(values, list)), default=LEAST_OF_MAP)
