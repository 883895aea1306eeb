"""Says which time to expect of a study's step and run at your size, on each device that was measured.

For example: python scripts/predict_time.py --study hsf_width --size 1500
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crossover.config.options import new_parser
from crossover.errors import UserError, one_line_errors
from crossover.statistics.predictions import prediction_text
from crossover.tables.frames import read_table


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = new_parser(__doc__)
    parser.add_argument("--study", required=True, help="a study of the run")
    parser.add_argument("--size", required=True, type=int, help="your size, on the axis of the study's workload")
    parser.add_argument("--results", default=Path("results"), type=Path, help="folder of the run")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Print the times to expect; raises UserError where the folder lacks the tables of a finished run."""
    options = parse_arguments(arguments)
    paths = [options.results / f"{name}.parquet" for name in ("cells", "cost_models")]
    for path in paths:
        if not path.is_file():
            raise UserError(f"--results: {path} is not there; name the folder of a finished run, or run it again")
    cells, models = map(read_table, paths)
    print(prediction_text(cells, models, options.study, options.size))


if __name__ == "__main__":
    with one_line_errors():
        main(sys.argv[1:])
