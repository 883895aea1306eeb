# Runs before the config is read: a YAML mistake is shown as one line with its place.

import atexit
import gc
import sys
from pathlib import Path

# Jobs live as long as the run: looking among them for garbage every few hundred objects takes a sixth of a dry-run.
gc.set_threshold(100_000, 50, 100)
# Nor does it pay to free them one by one at the end, which takes over a second for 10,000.
atexit.register(gc.freeze)

sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from crossover.errors import one_line_errors
from crossover.config.validation import read_mapping

with one_line_errors():
    read_mapping(Path(workflow.basedir) / "config" / "config.yaml")
