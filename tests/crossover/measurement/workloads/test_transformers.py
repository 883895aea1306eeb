"""Importing the models leaves out what would slow it down, says nothing, and reaches for no network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[4] / "scripts"

CODE = """
import json, os, socket, sys
def refuse(*_): raise AssertionError("network")
socket.socket.connect = socket.getaddrinfo = refuse
from crossover.measurement.workloads import bert, efficientnet, gpt_block, matmul, resnet
bert.SHAPE = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100}
for code, size in ((bert, 1), (efficientnet, 32), (gpt_block, 64), (resnet, 18)):
    code.build_model(size)
unwanted = {"pandas", "sklearn", "scipy", "matplotlib"} & set(sys.modules)
print(json.dumps([sorted(unwanted), os.environ["HF_HUB_OFFLINE"]]))
import scipy.special  # can be imported all the same
"""


def test_what_an_import_brings_and_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], env={"PYTHONPATH": str(SCRIPTS)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [[], "1"]
