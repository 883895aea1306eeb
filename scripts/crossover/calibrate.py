"""Measure a function on the machine of whoever installs a library, within a given time, and write its thresholds."""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from crossover.files import atomic_path
from crossover.thresholds import read_thresholds

LEAST_OF_PLANE = 3
"""Fewest batch sizes for regions of sizes and batch sizes, as for the map of a study."""


def calibrate(arguments: Sequence[str], build_command: Callable[[Sequence[str]], list[str]]) -> int:
    """Run a benchmark and copy its thresholds; returns the exit status. `build_command` is that of `crossover`."""
    parser = argparse.ArgumentParser("crossover calibrate", allow_abbrev=False, description=__doc__)
    parser.add_argument("name", metavar="FILE.py:FUNCTION", help="the function or model to measure")
    parser.add_argument("--minutes", default="5", help="time that the run should take; default 5")
    parser.add_argument("--output", type=Path, default=Path("thresholds.json"), help="default thresholds.json")
    parser.add_argument(
        "--results", default="results/calibration", help="folder of the run; default results/calibration"
    )
    parser.add_argument("--batch-sizes", "--batch_sizes", dest="batch_sizes", help="three or more, for both variables")
    parser.add_argument("--effort", default="default")
    own, others = parser.parse_known_args(arguments)
    options = [own.name, "--minutes", own.minutes, "--results", own.results]
    if own.batch_sizes:
        options += ["--batch-sizes", own.batch_sizes]
    effort = own.effort
    if own.batch_sizes and own.batch_sizes.count(",") >= LEAST_OF_PLANE - 1:
        effort = f"{{preset: {effort}, refinement: {{pairs: [plane]}}}}"
    command = build_command([*options, "--effort", effort, *others])
    status = subprocess.run([sys.executable, *command]).returncode
    if status:
        return status
    with atomic_path(own.output) as temporary:
        temporary.write_bytes(Path(own.results, "thresholds.json").read_bytes())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_thresholds(own.output)
    print(f"Thresholds of this machine: {own.output}", *(f"Caution: {warning.message}" for warning in caught), sep="\n")
    return 0
