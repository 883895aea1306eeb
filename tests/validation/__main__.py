"""Run a check of Crossover's own methods: python tests/validation coverage --simulations=100.

Without a name, the checks are listed. Each prints a table; the documentation cites their results.
"""

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
sys.path += [str(ROOT / "scripts"), str(ROOT / "tests")]

from crossover.errors import UserError, one_line_errors  # noqa: E402

NAMES = sorted(path.stem.removeprefix("check_") for path in FOLDER.glob("check_*.py"))

with one_line_errors():
    if sys.argv[1:2] in ([], ["-h"], ["--help"]):
        print(__doc__, *NAMES, sep="\n")
    elif sys.argv[1] not in NAMES:
        raise UserError(f"no check '{sys.argv[1]}'; allowed: {', '.join(NAMES)}")
    else:
        import_module(f"check_{sys.argv[1]}").main(sys.argv[2:])
