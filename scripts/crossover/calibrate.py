"""Measure a function on the machine of whoever installs a library, within a given time, and write its thresholds."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from crossover.config.studies import PRESETS
from crossover.config.study import LEAST_OF_MAP
from crossover.errors import Parser, UserError
from crossover.files import atomic_path
from crossover.thresholds import read_thresholds

SHORT = "timed_max_s: 0.2"
"""Change of the default effort: within a given time, many trials tell more than long ones, since trials differ."""


def calibrate(arguments: Sequence[str], build_command: Callable[[Sequence[str]], list[str]]) -> int:
    """Run a benchmark and copy its thresholds; returns the exit status. `build_command` is that of `crossover`.

    Raises UserError for wrong options, before the run.
    """
    parser = Parser("crossover calibrate", allow_abbrev=False, description=__doc__)
    parser.add_argument("name", metavar="FILE.py:FUNCTION", help="the function or model to measure")
    parser.add_argument("--minutes", default="5", help="time that the run should take; default 5")
    parser.add_argument("--output", type=Path, default=Path("thresholds.json"), help="default thresholds.json")
    parser.add_argument(
        "--results", default="results/calibration", help="folder of the run; default results/calibration"
    )
    parser.add_argument(
        "--batch-sizes", "--batch_sizes", dest="batch_sizes", help="of the second variable: none, or three or more"
    )
    parser.add_argument("--axes", help="two sizes by name, three or more values each: {m: [...], k: [...]}")
    parser.add_argument("--effort", choices=PRESETS, help="how thorough each trial is; by default, short")
    parser.epilog = "Other options, such as --sizes, are those of `crossover`."
    own, others = parser.parse_known_args(arguments)
    if "--" in arguments:
        raise UserError("-- and options of Snakemake; allowed: options of crossover, such as --sizes 64,256")
    batches = own.batch_sizes.count(",") + 1 if own.batch_sizes else 0
    if any(values.count(",") + 1 < LEAST_OF_MAP for values in re.findall(r"\[[^]]*\]", own.axes or "")):
        raise UserError(f"--axes {own.axes}; allowed: three or more values of each")
    if 0 < batches < LEAST_OF_MAP:
        raise UserError(f"--batch-sizes {own.batch_sizes}; allowed: three or more, or none for the size alone")
    if own.output.is_dir() or not own.output.absolute().parent.is_dir():
        raise UserError(f"--output {own.output}: not a file in an existing folder; give such a file")
    options = [own.name, f"--minutes={own.minutes}", "--results", own.results]
    options += ["--batch-sizes", own.batch_sizes] if batches else []
    options += ["--axes", own.axes] if own.axes else []
    plane = ["refinement: {pairs: [plane]}"] if batches or own.axes else []
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
