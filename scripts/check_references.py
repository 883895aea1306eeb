"""Shows how well the crossovers of machines are foretold by their CPU and the GPU of another, each held out in turn.

    python scripts/check_references.py config/reference/h200 ../colleague/a100

Each folder is a reference that `snakemake export_reference` made, of studies that they have in common.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from crossover.checks.references import predictions
from crossover.config.options import new_parser
from crossover.errors import UserError, one_line_errors
from crossover.tables.references import read_reference


def main(arguments: list[str]) -> None:
    """Print a row for each prediction, and how many hold."""
    parser = new_parser(__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folder of a reference")
    options = parser.parse_args(arguments)
    found = predictions([read_reference(folder) for folder in options.folders])
    if found.empty:
        raise UserError("no two of them have a study in common; name two or more of one study")
    print(found.to_string(index=False, float_format="{:.4g}".format))
    known = found.dropna(subset="holds")
    is_open = (known["foretold_low"] == 0) ^ (known["foretold_high"] == math.inf)
    counts = f"{is_open.sum()} open to one side; {len(found) - len(known)} more foretell nothing"
    print(f"{known['holds'].sum()} of {len(known)} hold, {counts}")


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])
