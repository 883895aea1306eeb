# Runs before the config is read: a YAML mistake is shown as one line with its place.

import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from crossover.errors import one_line_errors
from crossover.validation import read_mapping

with one_line_errors():
    read_mapping(Path(workflow.basedir) / "config" / "config.yaml")
