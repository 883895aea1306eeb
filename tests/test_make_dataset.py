"""The script that makes a dataset, when that needs more memory than is available."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import safe_open

from make_dataset import make_dataset
from trials import ROOT


@pytest.mark.parametrize(
    ("name", "options", "generated"), [("digits", {"seed": 0}, "false"), ("disc", {"points": 9, "seed": 0}, "true")]
)
def test_the_file_records_whether_its_rows_are_generated(
    tmp_path: Path, name: str, options: dict[str, int], generated: str
) -> None:
    path = tmp_path / f"{name}.safetensors"
    make_dataset(name, options, "a key", path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert (metadata["dataset"], metadata["generated"]) == (name, generated)


LIMITED = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from crossover.errors import one_line_errors
from make_dataset import make_dataset, refuse_more_than

refuse_more_than(300_000_000)
with one_line_errors():
    options = {"rows": 20_000_000, "seed": 1, "csv": None}
    make_dataset("higgs", options, "a key", Path(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must keep a limit on memory")
def test_data_that_exceed_memory_are_reported_in_one_line(tmp_path: Path) -> None:
    """20 million rows of a label (int64) and two momenta (float64) are 480 MB."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(ROOT / "scripts"), str(tmp_path / "higgs.safetensors")],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: datasets.higgs: its data do not fit into this machine's memory (")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
