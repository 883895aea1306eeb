from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


def test_importing_the_models_is_quick_and_quiet_and_reaches_for_no_network(root: Path) -> None:
    environment = {"PYTHONPATH": str(root / "scripts")}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [[], "1"]
